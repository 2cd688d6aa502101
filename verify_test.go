package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The process of an attempt died, and Verify reports that the step did not happen. The attempt that follows is bounded by the
// TotalTimeout.
func TestVerifiedAttemptIsBounded(t *testing.T) {
	s := openStore(t)
	var tries atomic.Int32
	entered := make(chan struct{}, 9)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("pay", func(ctx context.Context) (string, error) {
			if tries.Add(1) == 1 {
				entered <- struct{}{}
				<-ctx.Done() // ends with the process
				return "", ctx.Err()
			}
			<-ctx.Done() // stands for a call that hangs until its time is over
			return "", ctx.Err()
		}, durable.TotalTimeout(3*time.Second), durable.Verify(func(context.Context) (string, bool, error) { return "", false, nil }))
	})
	cfg := durable.Config{Workflows: []durable.Definition{w}, Grace: time.Millisecond}
	e := engineWith(t, s, cfg)
	stop := running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	e = engineWith(t, s, cfg)
	running(t, e)
	_ = run
	if !becomes(t, e, "a", durable.StatusFailed) {
		info, _ := e.Get(t.Context(), "a")
		t.Errorf("a step with a TotalTimeout of 3 s still runs (%d tries); the run is %s", tries.Load(), info.Status)
	}
}

// If Verify reports that the step did not happen and the TotalTimeout is over, the step fails, and the error says so.
func TestVerifyTooLate(t *testing.T) {
	s := openStore(t)
	entered := make(chan struct{}, 3)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("charge", func(ctx context.Context) (string, error) {
			entered <- struct{}{}
			<-ctx.Done()
			return "", ctx.Err()
		}, durable.TotalTimeout(time.Second), durable.Verify(func(context.Context) (string, bool, error) { return "", false, nil }))
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
		t.Fatal(err)
	}
	<-entered
	stop()
	waitUntil(t, s, historyOf(t, engineOn(t, s), "a")[0].StartedAt.Add(time.Second)) // no process executes the run meanwhile
	_, err := w.Call(within(t), engineOn(t, s, w), 0, durable.ID("a"))
	if err == nil || !errors.Is(err, durable.ErrTimeout) || !strings.Contains(err.Error(), "total timeout of 1s") {
		t.Errorf("got %v", err)
	}
}

// A pause lets an at-most-once step finish, and what the step returned is recorded, even if it is ErrSuspended, which the
// function got while it waited for a branch of its run. The step's outcome is not unknown.
func TestAtMostOnceMeetsAPause(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for name, c := range map[string]struct {
			opts []durable.StepOption
			want string // of its error; empty: the step succeeds
		}{
			"finishes": {[]durable.StepOption{durable.AtMostOnce()}, ""},
			"bounded":  {[]durable.StepOption{durable.AtMostOnce(), durable.AttemptTimeout(time.Minute)}, ""},
			"waits":    {[]durable.StepOption{durable.AtMostOnce()}, "suspended"},
		} {
			t.Run(name, func(t *testing.T) {
				held := newGate()
				var calls atomic.Int32
				opts := c.opts
				w := durable.Define(name, func(c *durable.Ctx, _ int) (int, error) {
					f := c.Go("b", func(c *durable.Ctx) (int, error) { return c.Receive[int]("go") })
					return c.Step("pay", func(ctx context.Context) (int, error) {
						calls.Add(1)
						if name == "waits" {
							held.entered <- struct{}{}
							return f.Wait()
						}
						return 7, held.pass(ctx)
					}, opts...)
				})
				e := engineOn(t, s, w)
				defer running(t, e)()
				run, err := w.Start(within(t), e, 0, durable.ID(name))
				if err != nil {
					t.Fatal(err)
				}
				<-held.entered
				must(t)(e.Pause(within(t), name))
				close(held.open)
				if !becomes(t, e, name, durable.StatusPaused) {
					t.Fatal("it was not paused")
				}
				must(t)(e.Resume(within(t), name))
				if err := e.Signal(within(t), name, "go", 7); err != nil && !errors.Is(err, durable.ErrState) { // the run may have ended
					t.Fatal(err)
				}
				got, err := run.Result(within(t))
				switch {
				case c.want == "" && (got != 7 || err != nil):
					t.Errorf("got %d, %v", got, err)
				case c.want != "" && (err == nil || errors.Is(err, durable.ErrOutcomeUnknown) || !strings.Contains(err.Error(), c.want)):
					t.Errorf("got %v, want an error that says %q, and nothing of an unknown outcome", err, c.want)
				}
				if n := calls.Load(); n != 1 {
					t.Errorf("it ran %d times", n)
				}
			})
		}
	})
}
