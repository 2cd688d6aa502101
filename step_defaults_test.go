package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Defaults apply to steps, items of Maps and compensations, and options of a call win over them.
func TestDefaultsApplyToEachStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var calls [5]atomic.Int32
		attempts := func(i int) func(context.Context) error {
			return func(ctx context.Context) error {
				calls[i].Add(1)
				return errDeclined
			}
		}
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			_ = c.Compensate("undo", func(ctx context.Context) error { calls[4].Add(1); return errors.New("not yet") })
			_ = c.Do("default", attempts(0))
			_ = c.Do("once", attempts(1), durable.AtMostOnce())
			_ = c.Do("own", attempts(2), durable.Retry(durable.RetryPolicy{Attempts: 2, Initial: time.Millisecond}))
			_, _ = c.Map("items", []int{1}, func(ctx context.Context, _ int) (int, error) { return 0, attempts(3)(ctx) })
			return "", errDeclined
		}, durable.Defaults(durable.Retry(durable.RetryPolicy{Attempts: 3, Initial: time.Millisecond})))
		e := engineOn(t, s, w)
		running(t, e)
		if _, err := w.Call(within(t), e, 0); !errors.Is(err, durable.ErrCompensation) {
			t.Error(err)
		}
		for i, want := range []int32{3, 1, 2, 3, 3} {
			if got := calls[i].Load(); got != want {
				t.Errorf("step %d was executed %d times, want %d", i, got, want)
			}
		}
	})
}

// A default timeout that contradicts a call's own does not apply, and a default that does not contradict it does.
func TestOwnTimeoutsReplaceDefaults(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		long := c.Do("long", func(ctx context.Context) error {
			if _, bounded := ctx.Deadline(); !bounded {
				return errors.New("no deadline")
			}
			return nil
		}, durable.AttemptTimeout(time.Hour))
		short := c.Do("short", func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() })
		return fmt.Sprint(long, " ", errors.Is(short, durable.ErrTimeout)), nil
	}, durable.Defaults(durable.TotalTimeout(30*time.Millisecond)))
	e := engineOn(t, openStore(t), w)
	running(t, e)
	if got, err := w.Call(within(t), e, 0); err != nil || got != "<nil> true" {
		t.Error(got, err)
	}
}

// Options that concern a single step, and options that contradict each other, are refused when the engine is made.
func TestDefaultsAreChecked(t *testing.T) {
	fn := func(*durable.Ctx, int) (int, error) { return 0, nil }
	for name, option := range map[string]durable.WorkflowOption{
		"Verify":      durable.Defaults(durable.Verify(func(context.Context) (int, bool, error) { return 0, false, nil })),
		"Undoes":      durable.Defaults(durable.Undoes("charge")),
		"both":        durable.Defaults(durable.AtMostOnce(), durable.Retry(durable.RetryPolicy{Attempts: 2})),
		"timeouts":    durable.Defaults(durable.AttemptTimeout(2), durable.TotalTimeout(1)),
		"no duration": durable.Defaults(durable.AttemptTimeout(0)),
		"nil":         durable.Defaults(nil),
	} {
		if _, err := durable.New(openStore(t), durable.Config{Workflows: []durable.Definition{durable.Define("w", fn, option)}}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
	twice := durable.Define("w", fn, durable.Defaults(), durable.Defaults())
	if _, err := durable.New(openStore(t), durable.Config{Workflows: []durable.Definition{twice}}); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Error(err)
	}
}

// A step's function finds out its own name, item and attempt.
func TestStepInfo(t *testing.T) {
	var seen []durable.RunningStep
	note := func(ctx context.Context) error {
		i, ok := durable.StepInfo(ctx)
		if !ok {
			return errors.New("no step")
		}
		seen = append(seen, i)
		return nil
	}
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		if _, ok := durable.StepInfo(c); ok {
			t.Error("the workflow's own Ctx belongs to a step")
		}
		flaky := func(ctx context.Context) error {
			if err := note(ctx); err != nil || durable.Attempt(ctx) == 2 {
				return err
			}
			return errDeclined
		}
		item := func(ctx context.Context, n int) (int, error) { return n, note(ctx) }
		if err := c.Do("a", flaky, durable.Retry(durable.RetryPolicy{Attempts: 4, Initial: time.Millisecond})); err != nil {
			return 0, err
		}
		if err := c.Do("b", flaky, durable.Retry(durable.RetryPolicy{Attempts: durable.Unlimited, Initial: time.Millisecond})); err != nil {
			return 0, err
		}
		if _, err := c.Map("plain", []int{5}, item); err != nil {
			return 0, err
		}
		return c.Go("branch", func(c *durable.Ctx) (int, error) {
			_, err := c.Map("keyed", []int{6, 7}, item, durable.Parallel(1), durable.Key(func(n int) string { return fmt.Sprint("k", n) }))
			return 0, err
		}).Wait()
	})
	e := engineOn(t, openStore(t), w)
	running(t, e)
	if _, err := w.Call(within(t), e, 0); err != nil {
		t.Fatal(err)
	}
	want := []durable.RunningStep{
		{Name: "a", Index: -1, Attempt: 1, MaxAttempts: 4},
		{Name: "a", Index: -1, Attempt: 2, MaxAttempts: 4},
		{Name: "b", Index: -1, Attempt: 1},
		{Name: "b", Index: -1, Attempt: 2},
		{Name: "plain/0", Map: "plain", Index: 0, Attempt: 1, MaxAttempts: 1},
		{Name: "branch/keyed/k6", Map: "branch/keyed", Index: 0, Key: "k6", Attempt: 1, MaxAttempts: 1},
		{Name: "branch/keyed/k7", Map: "branch/keyed", Index: 1, Key: "k7", Attempt: 1, MaxAttempts: 1},
	}
	if fmt.Sprint(seen) != fmt.Sprint(want) {
		t.Errorf("steps saw %+v, want %+v", seen, want)
	}
}
