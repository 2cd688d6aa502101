package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// A run that its queue lets through without a place, because its time is over, ends as expired, and its function is not called:
// neither by the worker that claims it, nor by the next one if that has died.
func TestARunThatItsQueueLetsThroughToExpireIsNotExecuted(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var calls atomic.Int32
		w := durable.Define("w", func(_ *durable.Ctx, in int) (int, error) {
			calls.Add(1)
			return in, nil
		})
		client := engineOn(t, s)
		if err := client.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1}); err != nil {
			t.Fatal(err)
		}
		runs := make(map[string]*durable.Run[int])
		for i, claimed := range []string{"started first", "started later"} {
			for name, option := range map[string]durable.StartOption{"StartBy": durable.StartBy(time.Microsecond), "Timeout": durable.Timeout(time.Microsecond)} {
				runs[name+", "+claimed] = orFail(w.Start(ctx, client, i, durable.InQueue("mail"), option))(t)
			}
		}
		for _, run := range runs {
			waitUntil(t, s, orFail(client.Get(ctx, run.ID()))(t).CreatedAt)
		}
		now := orFail(s.Now(ctx))(t).Add(time.Millisecond)
		for more := true; more; {
			a := store.AdmissionRequest{Queue: "mail", Now: now, CloseDurationAfterRewind: time.Minute}
			if err := s.AdmitRuns(ctx, &a); err != nil {
				t.Fatal(err)
			}
			more = a.HasMoreWork || a.QueueLocked
		}
		for name, run := range runs {
			if p := orFail(client.Get(ctx, run.ID()))(t).Place; p == nil || p.State != durable.PlacePassing {
				t.Fatalf("%s: the place is %v, want one that lets the run through", name, p)
			}
		}
		claims := orFail(s.Claim(ctx, store.ClaimQuery{ // its worker dies at once
			Worker: uuid.New(), EpochNonce: 7, Now: now, LeaseUntil: now.Add(time.Millisecond), Limit: 2,
			Filter: store.NewClaimFilter([]string{"w"}, nil), QueueRules: store.NewQueueClaimRules([]string{"mail"}, nil, nil),
		}))(t)
		if len(claims.Runs) != 2 {
			t.Fatalf("%d runs were claimed, want 2", len(claims.Runs))
		}
		running(t, engineOn(t, s, w))
		for name, run := range runs {
			if _, err := run.Result(ctx); !errors.Is(err, durable.ErrTimeout) {
				t.Errorf("%s: %v, want ErrTimeout", name, err)
			}
			if info := orFail(client.Get(ctx, run.ID()))(t); info.Status != durable.StatusExpired {
				t.Errorf("%s: the run is %s, want expired", name, info.Status)
			}
		}
		if n := calls.Load(); n > 0 {
			t.Errorf("the function was called %d times without a place", n)
		}
	})
}

// A cancelled run executes its compensations although the worker executes as many runs of its queue as it may.
func TestACancelledRunNeedsNoRoomOfPerWorker(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		release, busy := make(chan struct{}), make(chan struct{}, 1)
		var undone atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, blocks bool) (int, error) {
			if blocks {
				return 0, c.Do("block", func(ctx context.Context) error {
					busy <- struct{}{}
					select {
					case <-release:
					case <-ctx.Done():
					}
					return ctx.Err()
				})
			}
			err := c.Compensate("undo", func(context.Context) error {
				undone.Add(1)
				return nil
			})
			if err != nil {
				return 0, err
			}
			return c.Receive[int]("never")
		}, durable.Queue("mail"))
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecutingPerWorker: 1}); err != nil {
			t.Fatal(err)
		}
		running(t, e)
		waits := orFail(w.Start(ctx, e, false))(t)
		await(t, "the run to wait", func() bool { return orFail(e.Get(ctx, waits.ID()))(t).Status == durable.StatusWaiting })
		blocks := orFail(w.Start(ctx, e, true))(t)
		<-busy
		if _, err := e.Cancel(ctx, waits.ID()); err != nil {
			t.Fatal(err)
		}
		if _, err := waits.Result(ctx); !errors.Is(err, durable.ErrCancelled) || undone.Load() != 1 {
			t.Errorf("the cancelled run ends with %v after %d compensations, want ErrCancelled after 1", err, undone.Load())
		}
		if info := orFail(e.Get(ctx, blocks.ID()))(t); info.Status != durable.StatusRunning {
			t.Errorf("the other run is %s, want running", info.Status)
		}
		close(release)
		if _, err := blocks.Result(ctx); err != nil {
			t.Error(err)
		}
	})
}
