package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// runUntil runs e until stop is called. The channel receives what Run returned.
func runUntil(t *testing.T, e *durable.Engine) (stop context.CancelFunc, returned <-chan error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	waitFor(t, func() bool { workers, err := e.Workers(within(t)); return err == nil && len(workers) == 1 })
	return cancel, done
}

// Run drains and returns when its context ends, also if a Call waits in the same process. The Call returns the result when
// another process has executed the run.
func TestRunEndsUnderACall(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		begun := make(chan struct{}, 9)
		var finish atomic.Bool
		slow := durable.Define("slow", func(c *durable.Ctx, _ int) (int, error) {
			begun <- struct{}{}
			if finish.Load() {
				return 7, nil
			}
			return 1, c.Sleep("s", time.Hour)
		}, durable.OnDrift(durable.DriftContinues)) // the next execution does not sleep
		quick := durable.Define("quick", double)
		cfg := durable.Config{Workflows: []durable.Definition{slow, quick}, ParkAfter: 2 * time.Hour}
		e := engineWith(t, s, cfg)
		stop, returned := runUntil(t, e)
		type result struct {
			got int
			err error
		}
		called := make(chan result, 2)
		call := func(id string) {
			got, err := slow.Call(within(t), e, 1, durable.ID(id))
			called <- result{got, err}
		}
		go call("r")
		<-begun
		stop()
		select {
		case err := <-returned:
			if err != nil {
				t.Error(err)
			}
		case <-within(t).Done():
			t.Fatal("Run has not returned")
		}
		select {
		case it := <-called:
			t.Fatalf("the Call did not wait: %d, %v", it.got, it.err)
		default:
		}
		// No run begins in this process, not even by a Call that begins now.
		go call("later")
		run, err := quick.Start(within(t), e, 2)
		if err != nil {
			t.Fatal(err)
		}
		if workers, err := e.Workers(within(t)); err != nil || len(workers) != 0 {
			t.Error("workers after Run has returned:", workers, err)
		}
		if _, ended, err := run.TryResult(within(t)); ended || err != nil {
			t.Error("a run was executed after Run had returned:", err)
		}
		finish.Store(true)
		other := engineWith(t, s, cfg)
		stopOther, otherReturned := runUntil(t, other)
		for range 2 {
			if it := <-called; it.got != 7 || it.err != nil {
				t.Error("the Call returned", it.got, it.err)
			}
		}
		stopOther()
		<-otherReturned
	})
}

// A step that waits in a Call ends when its context does, and Run returns.
func TestRunEndsUnderACallInAStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var e *durable.Engine
		begun := make(chan struct{}, 9)
		slow := durable.Define("slow", func(c *durable.Ctx, _ int) (int, error) {
			begun <- struct{}{}
			return 1, c.Sleep("s", time.Hour)
		})
		outer := durable.Define("outer", func(c *durable.Ctx, _ int) (int, error) {
			return c.Step("call", func(ctx context.Context) (int, error) { return slow.Call(ctx, e, 1, durable.ID("slow")) })
		})
		e = engineWith(t, s, durable.Config{Workflows: []durable.Definition{slow, outer}, Grace: 100 * time.Millisecond})
		t.Run("Run", func(t *testing.T) {
			stop, returned := runUntil(t, e)
			if _, err := outer.Start(within(t), e, 1, durable.ID("o")); err != nil {
				t.Fatal(err)
			}
			<-begun
			stop()
			select {
			case err := <-returned:
				if err != nil {
					t.Error(err)
				}
			case <-within(t).Done():
				t.Fatal("Run has not returned")
			}
		})
		t.Run("Call alone", func(t *testing.T) {
			alone := engineWith(t, s, durable.Config{Workflows: []durable.Definition{slow, outer}, Grace: 100 * time.Millisecond})
			e = alone
			ctx, cancel := context.WithCancel(within(t))
			done := make(chan error, 1)
			go func() { _, err := outer.Call(ctx, alone, 1, durable.ID("p")); done <- err }()
			waitFor(t, func() bool { h, err := alone.History(within(t), "p"); return err == nil && len(h) == 1 })
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Error("the Call returned", err)
			}
			if workers, err := alone.Workers(within(t)); err != nil || len(workers) != 0 {
				t.Error("a worker is left behind:", workers, err)
			}
		})
	})
}

// Run returns when the store is closed.
func TestRunEndsWithItsStore(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e := engineOn(t, s, durable.Define("double", double))
		_, returned := runUntil(t, e)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		select {
		case err := <-returned:
			if !errors.Is(err, durable.ErrClosed) {
				t.Error("Run returned", err)
			}
		case <-within(t).Done():
			t.Fatal("Run has not returned")
		}
	})
}

// Runs whose steps wait for other runs do not keep those from being executed, however many slots they use.
func TestStepsThatWaitForRunsLendTheirSlots(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var e *durable.Engine
		kid := durable.Define("kid", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
		started := durable.Define("started", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("wait", func(ctx context.Context) (int, error) {
				run, err := kid.Start(ctx, e, n)
				if err != nil {
					return 0, err
				}
				return run.Result(ctx)
			})
		})
		called := durable.Define("called", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("wait", func(ctx context.Context) (int, error) { return kid.Call(ctx, e, n) })
		})
		e = engineWith(t, s, durable.Config{Workflows: []durable.Definition{started, called, kid}, Concurrency: 2, StepConcurrency: 2})
		var runs []*durable.Run[int]
		for n := range 10 { // five times the number of slots
			for _, w := range []*durable.Workflow[int, int]{started, called} {
				run, err := w.Start(within(t), e, n)
				if err != nil {
					t.Fatal(err)
				}
				runs = append(runs, run)
			}
		}
		stop := running(t, e)
		for i, run := range runs {
			if got, err := run.Result(within(t)); got != i/2*2 || err != nil {
				t.Fatal(i, got, err)
			}
		}
		stop() // returns only if each slot was released once
	})
}

// When all slots, including those that can be lent, are taken by runs that wait in steps, a warning is logged.
func TestRunsThatAllWaitAreLogged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var e *durable.Engine
		deep := durable.Define[int, int]("deep", nil)
		deep = durable.Define("deep", func(c *durable.Ctx, n int) (int, error) {
			if n == 0 {
				return 1, nil
			}
			return c.Step("wait", func(ctx context.Context) (int, error) {
				run, err := deep.Start(ctx, e, n-1)
				if err != nil {
					return 0, err
				}
				return run.Result(ctx)
			})
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{deep}, Concurrency: 2, Grace: -1})
		e = engineWith(t, s, cfg)
		running(t, e)
		if run, err := deep.Start(within(t), e, 2); err != nil {
			t.Fatal(err)
		} else if got, err := run.Result(within(t)); got != 1 || err != nil {
			t.Error(got, err)
		}
		if _, err := deep.Start(within(t), e, 60); err != nil {
			t.Fatal(err)
		}
		log.await(t, "all runs in memory wait in steps for results of other runs")
	})
}
