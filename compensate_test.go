package durable_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// A failed run executes its compensations, also if the process dies during them.
func TestCompensationGoesOnElsewhere(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		var a, b atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Compensate("a", func(ctx context.Context) error { a.Add(1); return g.pass(ctx) }); err != nil {
				return 0, err
			}
			if err := c.Compensate("b", func(context.Context) error { b.Add(1); return nil }); err != nil {
				return 0, err
			}
			return 0, errDeclined
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		stop()
		close(g.open)
		running(t, engineOn(t, s, w))
		if _, err := run.Result(within(t)); !errors.Is(err, errDeclined) || errors.Is(err, durable.ErrCompensation) {
			t.Errorf("got %v", err)
		}
		if a.Load() != 2 || b.Load() != 1 {
			t.Errorf("a was called %d times, b %d times; want 2 and 1", a.Load(), b.Load())
		}
	})
}

func TestCompensationThatFails(t *testing.T) {
	var tries, other atomic.Int32
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Compensate("other", func(context.Context) error { other.Add(1); return nil }); err != nil {
			return 0, err
		}
		if err := c.Compensate("refund", func(context.Context) error { tries.Add(1); return errors.New("bank closed") },
			durable.Retry(durable.Exponential(time.Millisecond, time.Millisecond, 3))); err != nil {
			return 0, err
		}
		return 0, errDeclined
	})
	if !errors.Is(err, errDeclined) || !errors.Is(err, durable.ErrCompensation) || tries.Load() != 3 || other.Load() != 1 {
		t.Errorf("got %v after %d tries, the other ran %d times", err, tries.Load(), other.Load())
	}
}

// A run whose compensation waits for its next attempt is not claimed repeatedly meanwhile.
func TestACompensationInBackoffIsNotOvertaken(t *testing.T) {
	for name, cancelled := range map[string]bool{"timeout": false, "cancel": true} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			held := make(chan struct{}, 100)
			w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
				if err := c.Compensate("undo", func(ctx context.Context) error {
					if durable.Attempt(ctx) == 1 {
						return errDeclined
					}
					return nil
				}, durable.Retry(durable.Fixed(2*time.Second, 3))); err != nil {
					return 0, err
				}
				return 0, c.Do("hold", func(ctx context.Context) error {
					held <- struct{}{}
					<-ctx.Done()
					return ctx.Err()
				})
			})
			e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 100 * time.Millisecond})
			running(t, e)
			d := 300 * time.Millisecond
			if cancelled {
				d = time.Hour
			}
			run, err := w.Start(within(t), e, 0, durable.ID("a"), durable.Timeout(d))
			if err != nil {
				t.Fatal(err)
			}
			<-held
			if cancelled {
				if _, err := e.Cancel(within(t), "a"); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := run.Result(within(t)); cancelled && !errors.Is(err, durable.ErrCancelled) || !cancelled && !errors.Is(err, durable.ErrTimeout) {
				t.Errorf("the run ended with %v", err)
			}
			info, err := e.Get(within(t), "a")
			if err != nil || info.Epoch > 10 {
				t.Errorf("it was claimed %d times while one compensation waited 2 s for its second attempt", info.Epoch)
			}
		})
	}
}

// A compensation that calls runtime.Goexit counts as failed.
func TestACompensationThatExitsFails(t *testing.T) {
	s := openStore(t)
	var calls atomic.Int32
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Compensate("undo", func(context.Context) error { calls.Add(1); runtime.Goexit(); return nil }); err != nil {
			return 0, err
		}
		return 0, errDeclined
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
	running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrCompensation) {
		info, _ := e.Get(t.Context(), "a")
		t.Errorf("%v; it is %s (%s) after %d calls and %d crashes", err, info.Status, info.Reason, calls.Load(), info.Crashes)
	}
}

// A cancel executes the compensations after the running step has returned, whether the step has a timeout or not.
func TestCancelWaitsForATimedStep(t *testing.T) {
	for name, opts := range map[string][]durable.StepOption{"untimed": nil, "timed": {durable.AttemptTimeout(time.Minute)}} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t)
			entered, release := make(chan struct{}), make(chan struct{})
			var charged, early atomic.Bool
			w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
				if err := c.Compensate("refund", func(context.Context) error {
					early.Store(!charged.Load())
					return nil
				}); err != nil {
					return 0, err
				}
				return 0, c.Do("charge", func(context.Context) error {
					close(entered)
					<-release // a call that does not end with its context
					charged.Store(true)
					return nil
				}, opts...)
			})
			e := engineOn(t, s, w)
			running(t, e)
			run, err := w.Start(within(t), e, 0, durable.ID("a"))
			if err != nil {
				t.Fatal(err)
			}
			<-entered
			if _, err := e.Cancel(within(t), "a"); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return read(e.Get(within(t), "a"))(t).Cancellation != nil })
			realtime.Pass(250*time.Millisecond, "nothing tells that a compensation does not begin")
			close(release)
			_, _ = run.Result(within(t))
			if early.Load() {
				t.Error("the refund was made while the charge was still on its way, which then took effect")
			}
			history, err := e.History(within(t), "a")
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range history {
				if c.Name == "charge" && c.Status == "completed" {
					return
				}
			}
			t.Errorf("the charge is not recorded: %+v", history)
		})
	}
}

// Durable calls inside a compensation are refused.
func TestCallInsideACompensation(t *testing.T) {
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Compensate("undo", func(context.Context) error {
			return c.Do("inner", func(context.Context) error { return nil })
		}); err != nil {
			return 0, err
		}
		return 0, errDeclined
	})
	if err == nil || strings.Contains(err.Error(), "suspended") {
		t.Errorf("the error misleads: %v", err)
	}
}
