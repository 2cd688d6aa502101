package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Runs whose time in line is over expire while every slot of the worker is taken, also while their queue is paused. Their functions
// are not called. A run that has begun, and so needs a slot for its compensations, waits for one.
func TestRunsExpireWhileAllSlotsAreTaken(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		release, held := make(chan struct{}), make(chan struct{}, 2)
		holder := durable.Define("holder", func(c *durable.Ctx, _ int) (int, error) {
			held <- struct{}{}
			<-release
			return 0, nil
		})
		var called atomic.Int64
		waits := durable.Define("waits", func(c *durable.Ctx, n int) (int, error) {
			called.Add(1)
			if err := c.Compensate("undo", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return n, c.Sleep("long", time.Hour)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{holder, waits}, Concurrency: 2, Poll: 50 * time.Millisecond, ParkAfter: 10 * time.Millisecond})
		for _, queue := range []string{"open", "paused"} {
			if err := e.SetQueue(within(t), queue, durable.QueueSettings{MaxExecuting: 1}); err != nil {
				t.Fatal(err)
			}
		}
		if err := e.PauseQueue(within(t), "paused"); err != nil {
			t.Fatal(err)
		}
		running(t, e)
		free := sync.OnceFunc(func() { close(release) })
		t.Cleanup(free)
		begun := read(waits.Start(within(t), e, 1, durable.InQueue("open")))(t)
		waitFor(t, func() bool { return read(e.Get(within(t), begun.ID()))(t).Status == durable.StatusWaiting })
		for i := range 2 {
			read(holder.Start(within(t), e, i))(t)
			<-held
		}
		if err := e.SetTimeout(within(t), begun.ID(), time.Second); err != nil {
			t.Fatal(err)
		}
		var late []*durable.Run[int]
		for i := range 20 {
			for _, queue := range []string{"open", "paused"} {
				o := durable.StartBy(10 * time.Millisecond)
				if i%2 == 0 {
					o = durable.Timeout(10 * time.Millisecond)
				}
				late = append(late, read(waits.Start(within(t), e, i, durable.ID(fmt.Sprint(queue, i)), durable.InQueue(queue), o))(t))
			}
		}
		ctx := within(t)
		for _, run := range late {
			if _, err := run.Result(ctx); !errors.Is(err, durable.ErrTimeout) {
				t.Errorf("run %s: %v", run.ID(), err)
			}
			if info := read(e.Get(within(t), run.ID()))(t); info.Status != durable.StatusExpired || info.Crashes != 0 {
				t.Errorf("run %s is %s, %d crashes", run.ID(), info.Status, info.Crashes)
			}
		}
		waitFor(t, func() bool { return read(e.Now(within(t)))(t).After(read(e.Get(within(t), begun.ID()))(t).Deadline) })
		if n := called.Load(); n != 1 {
			t.Errorf("%d functions of runs that wait were called, want 1", n)
		}
		if info := read(e.Get(within(t), begun.ID()))(t); !info.EndedAt.IsZero() {
			t.Errorf("a run with a compensation ended without a slot: %+v", info)
		}
		free()
		if _, err := begun.Result(within(t)); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("the run that had begun: %v", err)
		}
	})
}

// A run that a worker has claimed, and given back without calling its function, still expires if it does not begin by its StartBy.
func TestARunThatWasClaimedInVainExpires(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var called atomic.Int64
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) {
			called.Add(1)
			return 0, nil
		})
		client := engineOn(t, s)
		run := orFail(w.Start(ctx, client, 1, durable.StartBy(time.Millisecond)))(t)
		waitUntil(t, s, orFail(client.Get(ctx, run.ID()))(t).CreatedAt)
		now := orFail(s.Now(ctx))(t)
		claims := orFail(s.Claim(ctx, store.ClaimQuery{
			Worker: uuid.New(), Now: now, LeaseUntil: now.Add(time.Minute), Limit: 1, EpochNonce: 7, Filter: store.NewClaimFilter([]string{"w"}, nil),
		}))(t)
		if len(claims.Runs) != 1 {
			t.Fatalf("%d runs were claimed", len(claims.Runs))
		}
		end := &store.OwnershipEnd{UUID: claims.Runs[0].Run.UUID, Epoch: claims.Runs[0].Run.Epoch, Status: store.Pending, WakeAt: now, Now: now}
		if err := s.Commit(ctx, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end}}); err != nil || end.Outcome != store.Written {
			t.Fatal(end.Outcome, err)
		}
		running(t, engineOn(t, s, w))
		if _, err := run.Result(ctx); !errors.Is(err, durable.ErrTimeout) || called.Load() > 0 {
			t.Errorf("the run was executed %d times, and ended with %v", called.Load(), err)
		}
	})
}

// endlessStore is a store that refuses to record that a run has expired. It tells the test of each refusal.
type endlessStore struct {
	durable.Store
	refused chan struct{}
}

func (s *endlessStore) Commit(ctx context.Context, b *store.Batch) error {
	if slices.ContainsFunc(b.OwnershipEnds, func(end *store.OwnershipEnd) bool { return end.Status == store.Expired }) {
		select {
		case s.refused <- struct{}{}:
		default:
		}
		return store.ErrUnavailable
	}
	return s.Store.Commit(ctx, b)
}

// A run that was found too late, by a process that ended before it could record that, expires in the next process. It leaves no place
// behind that would count once its queue has settings.
func TestALateRunExpiresAfterTheProcessThatFoundItLateHasEnded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var called atomic.Int64
		w := durable.Define("w", func(_ *durable.Ctx, n int) (int, error) {
			called.Add(int64(n))
			return n, nil
		})
		e := engineOn(t, s, w)
		late := read(w.Start(ctx, e, 1, durable.ID("late"), durable.InQueue("q"), durable.StartBy(time.Millisecond)))(t)
		waitFor(t, func() bool {
			return read(e.Now(ctx))(t).After(read(e.Get(ctx, "late"))(t).CreatedAt.Add(time.Millisecond))
		})
		refusing := &endlessStore{Store: s, refused: make(chan struct{}, 1)}
		dying := engineWith(t, refusing, durable.Config{Workflows: []durable.Definition{w}, Patience: 10 * time.Millisecond})
		stop := running(t, dying)
		<-refusing.refused
		stop()

		running(t, e)
		if _, err := late.Result(ctx); !errors.Is(err, durable.ErrTimeout) || called.Load() > 0 {
			t.Errorf("the run was executed %d times, and ended with %v", called.Load(), err)
		}
		if err := e.SetQueue(ctx, "q", durable.QueueSettings{MaxInProgress: 1}); err != nil {
			t.Fatal(err)
		}
		if v, err := w.Call(ctx, e, 2, durable.InQueue("q")); v != 2 || err != nil {
			t.Errorf("the next run of the queue: %d, %v", v, err)
		}
		if _, err := e.Retry(ctx, "late"); err != nil {
			t.Fatal(err)
		}
		if v, err := late.Result(ctx); v != 1 || err != nil {
			t.Errorf("the run that an operator has retried: %d, %v", v, err)
		}
	})
}
