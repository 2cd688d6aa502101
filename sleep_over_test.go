package durable_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// behind is a store whose clock is behind.
type behind struct {
	durable.Store
	by time.Duration
}

func (s *behind) Now(ctx context.Context) (time.Time, error) {
	now, err := s.Store.Now(ctx)
	return now.Add(-s.by), err
}

func (s *behind) RenewLeases(ctx context.Context, h store.Heartbeat) (store.RenewResult, error) {
	p, err := s.Store.RenewLeases(ctx, h)
	if !p.Now.IsZero() {
		p.Now = p.Now.Add(-s.by)
	}
	return p, err
}

// A sleep that was over stays over when the database's clock is behind after a failover: a compensation that was registered after
// the sleep is executed.
func TestSleepStaysOverWhenTheClockIsBehind(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		var undone atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Sleep("nap", 100*time.Millisecond); err != nil {
				return 0, err
			}
			if err := c.Compensate("refund", func(context.Context) error { undone.Add(1); return nil }); err != nil {
				return 0, err
			}
			if err := c.Do("charge", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return 0, c.Do("hold", g.pass)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		stop()
		close(g.open)
		e = engineOn(t, &behind{s, 2 * time.Second}, w)
		running(t, e)
		must(t)(e.Cancel(within(t), "x"))
		if _, err = run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) || undone.Load() != 1 {
			t.Errorf("%v; charged, and refunded %d times", err, undone.Load())
		}
	})
}

// lateNews is a store that withholds the changes of owned runs from a worker.
type lateNews struct {
	durable.Store
	open chan struct{}
}

func (s *lateNews) OwnedRunChanges(ctx context.Context, w store.UUID, held []store.Lease) (store.OwnedRunChanges, error) {
	select {
	case <-s.open:
	case <-ctx.Done():
		return store.OwnedRunChanges{}, ctx.Err()
	}
	return s.Store.OwnedRunChanges(ctx, w, held)
}

// If a loser's sleep was over before its run learned of a pause, FreezeTimers does not move the sleep behind the choice: the
// compensations for what the loser did after it are executed.
func TestFreezeTimersLeavesASleepThatWasOver(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		late := &lateNews{Store: s, open: make(chan struct{})}
		var reserved, undone atomic.Int32
		begun, win, finish := make(chan struct{}, 10), make(chan struct{}), make(chan struct{})
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			a := c.Go("a", func(c *durable.Ctx) (string, error) {
				if err := c.Sleep("z", 2*time.Second); err != nil {
					return "", err
				}
				if err := c.Compensate("undo", func(context.Context) error { undone.Add(1); return nil }); err != nil {
					return "", err
				}
				return c.Step("reserve", func(context.Context) (string, error) {
					reserved.Add(1)
					begun <- struct{}{}
					<-finish
					return "reserved", nil
				})
			})
			b := c.Go("b", func(c *durable.Ctx) (string, error) { <-win; return "b", nil })
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, a, b); err != nil {
				return "", err
			}
			if _, err := a.Wait(); err != nil {
				return "", err // its last call was under way at the choice, so it keeps its result
			}
			return "", errDeclined
		})
		e, other := engineWith(t, late, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Minute}), engineOn(t, s)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		recorded := func(name string, status durable.CheckpointStatus) func() bool {
			return func() bool {
				return slices.ContainsFunc(historyOf(t, other, "x"), func(c durable.Checkpoint) bool { return c.Name == name && c.Status == status })
			}
		}
		waitFor(t, recorded("a/z", durable.CheckpointStarted))
		must(t)(other.Pause(within(t), "x"))
		<-begun
		close(win)
		waitFor(t, recorded("first", durable.CheckpointCompleted))
		close(late.open)
		close(finish)
		awaitStatus(t, other, "x", durable.StatusPaused)
		must(t)(other.Resume(within(t), "x", durable.FreezeTimers()))
		if _, err = run.Result(within(t)); !errors.Is(err, errDeclined) || reserved.Load() != 1 || undone.Load() != 1 {
			t.Errorf("reserved %d, undone %d times: %v", reserved.Load(), undone.Load(), err)
		}
	})
}

// FreezeTimers does not count a pause into a step's total timeout.
func TestFreezeTimersMovesTotalTimeout(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const total = 3 * time.Second
		var tries atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			return c.Step("s", func(context.Context) (int, error) {
				if tries.Add(1) == 1 {
					return 0, errors.New("busy")
				}
				return 1, nil
			}, durable.Retry(durable.Fixed(total/2, 5)), durable.TotalTimeout(total))
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return tries.Load() > 0 })
		must(t)(e.Pause(within(t), "x"))
		awaitStatus(t, e, "x", durable.StatusPaused)
		until := dbNow(t, s).Add(total)
		waitFor(t, func() bool { return dbNow(t, s).After(until) })
		must(t)(e.Resume(within(t), "x", durable.FreezeTimers()))
		if got, err := run.Result(within(t)); got != 1 || err != nil {
			t.Errorf("after %d tries: %d, %v", tries.Load(), got, err)
		}
	})
}
