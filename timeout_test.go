package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The time of a Timeout begins when the run is due.
func TestTimeoutCountsFromWhenTheRunIsDue(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (time.Duration, error) {
			deadline, ok := c.Deadline()
			if !ok {
				return 0, errors.New("the Ctx has no deadline")
			}
			return time.Until(deadline), nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		left, err := w.Call(within(t), e, 0, durable.ID("run"), durable.Delay(500*time.Millisecond), durable.Timeout(time.Hour))
		if err != nil || left > time.Hour+time.Minute || left < time.Hour-time.Minute {
			t.Errorf("the function has %v left, %v", left, err)
		}
		info := read(e.Get(within(t), "run"))(t)
		if got := info.Deadline.Sub(info.CreatedAt); got != time.Hour+500*time.Millisecond {
			t.Errorf("the deadline is %v after the start", got)
		}
		// The timeout is shorter than the delay, and the run is executed.
		if _, err := w.Call(within(t), e, 0, durable.Delay(time.Second), durable.Timeout(900*time.Millisecond)); err != nil {
			t.Errorf("a timeout that is shorter than the delay: %v", err)
		}
	})
}

// A run that expires before any process has executed it ends without a call of its function.
func TestExpiredBeforeItBegan(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var calls atomic.Int32
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { calls.Add(1); return 0, nil })
		client := engineOn(t, s)
		run, err := w.Start(within(t), client, 0, durable.ID("run"), durable.Timeout(time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		for now := read(client.Get(within(t), "run"))(t); !now.Deadline.Before(dbNow(t, s)); {
		}
		running(t, engineOn(t, s, w))
		_, err = run.Result(within(t))
		var failed *durable.RunError
		if !errors.Is(err, durable.ErrTimeout) || !errors.As(err, &failed) || failed.Status != durable.StatusExpired {
			t.Errorf("got %v", err)
		}
		if calls.Load() != 0 {
			t.Errorf("the function was called %d times", calls.Load())
		}
		page, err := client.List(within(t), durable.Filter{Status: []durable.Status{durable.StatusExpired}}, durable.Page{})
		if err != nil || len(page.Runs) != 1 || page.Runs[0].Status != durable.StatusExpired {
			t.Errorf("listed %+v, %v", page, err)
		}
		if counted := read(client.TreeCounts(within(t), "run"))(t); counted.Statuses[durable.StatusExpired] != 1 {
			t.Errorf("counts %v", counted)
		}
	})
}

// SetTimeout applies to a running run, in whatever process.
func TestSetTimeoutOfARunningRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		begun, deadlines := make(chan struct{}, 2), make(chan time.Time, 2)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (bool, error) {
			err := c.Do("hang", func(ctx context.Context) error {
				begun <- struct{}{}
				<-ctx.Done()
				at, _ := ctx.Deadline()
				deadlines <- at
				return ctx.Err()
			})
			return errors.Is(err, durable.ErrTimeout), nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		for name, by := range map[string]*durable.Engine{"here": e, "elsewhere": engineOn(t, s)} {
			run, err := w.Start(within(t), e, name, durable.ID(name), durable.Timeout(time.Hour))
			if err != nil {
				t.Fatal(err)
			}
			<-begun
			if err := by.SetTimeout(within(t), name, 50*time.Millisecond); err != nil {
				t.Fatal(err)
			}
			if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrTimeout) {
				t.Errorf("%s: got %v", name, err)
			}
			if at := <-deadlines; time.Until(at) > time.Minute {
				t.Errorf("%s: the step's context has its deadline in %v", name, time.Until(at))
			}
			if err := by.SetTimeout(within(t), name, time.Hour); !errors.Is(err, durable.ErrState) {
				t.Errorf("%s: after its end: %v", name, err)
			}
		}
	})
}

// An extension or a removal of a timeout takes effect once it is acknowledged.
func TestSetTimeoutExtends(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ int) (bool, error) {
			if err := c.Do("work", g.pass); err != nil {
				return false, err
			}
			_, bounded := c.Deadline()
			return bounded, nil
		})
		e, other := engineOn(t, s, w), engineOn(t, s)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"), durable.Timeout(4*time.Second))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		if err := other.SetTimeout(within(t), "run", time.Hour); err != nil {
			t.Fatal(err)
		}
		if err := other.SetTimeout(within(t), "run", 0); err != nil {
			t.Fatal(err)
		}
		info := read(e.Get(within(t), "run"))(t)
		for first := info.CreatedAt.Add(4500 * time.Millisecond); dbNow(t, s).Before(first); {
		}
		close(g.open)
		if bounded, err := run.Result(within(t)); err != nil || bounded {
			t.Errorf("bounded %v, %v", bounded, err)
		}
		if !info.Deadline.IsZero() {
			t.Errorf("it still expires at %v", info.Deadline)
		}
		if err := e.SetTimeout(within(t), "run", -1); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a negative timeout: %v", err)
		}
		if err := e.SetTimeout(within(t), "nobody", 1); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("of no run: %v", err)
		}
	})
}

// A waiting run that is not in memory also expires by its new deadline.
func TestSetTimeoutOfAWaitingRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusWaiting)
		if err := engineOn(t, s).SetTimeout(within(t), "run", 20*time.Millisecond); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("got %v", err)
		}
	})
}

// A run whose cancel was acknowledged ends as cancelled, also if it expires meanwhile.
func TestACancelGoesBeforeTheTimeout(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		undoing, g := make(chan struct{}), newGate()
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Compensate("undo", func(context.Context) error { close(undoing); <-g.open; return nil }); err != nil {
				return 0, err
			}
			return c.Receive[int]("never")
		})
		e := engineOn(t, s, w)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"), durable.Timeout(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(historyOf(t, e, "run")) > 0 }) // its compensation is registered
		if err := e.SetTimeout(within(t), "run", time.Millisecond); err != nil {
			t.Fatal(err)
		}
		<-undoing // its time is over, and its compensations are executed
		if got := must(t)(engineOn(t, s).Cancel(within(t), "run")); got.Requested != 1 {
			t.Errorf("%+v", got)
		}
		close(g.open)
		_, err = run.Result(within(t))
		var failed *durable.RunError
		if !errors.As(err, &failed) || failed.Status != durable.StatusCancelled {
			t.Errorf("got %v", err)
		}
	})
}

// The deadline of a Ctx is the earlier one of its run and of the context that the function has put into its field Context.
func TestTheDeadlineOfAReplacedContextCounts(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		whole, _ := c.Deadline()
		run := c.Context
		var ends []string
		for _, d := range []time.Duration{time.Minute, 24 * time.Hour} {
			ctx, cancel := context.WithTimeout(run, d)
			defer cancel()
			c.Context = ctx
			at, ok := c.Deadline()
			ends = append(ends, fmt.Sprint(ok, at.Before(whole), at.Equal(whole)))
		}
		return strings.Join(ends, ", "), nil
	})
	e := engineOn(t, s, w)
	if out, err := w.Call(within(t), e, 0, durable.Timeout(time.Hour)); out != "true true false, true false true" || err != nil {
		t.Errorf("earlier, later: %q, %v", out, err)
	}
}
