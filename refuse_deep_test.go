package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// deep calls fn below the given number of stack frames.
func deep(frames int, fn func() error) error {
	if frames > 0 {
		return errors.Join(deep(frames-1, fn))
	}
	return fn()
}

// A durable call inside a step is refused however deep the stack is. A durable call with the step's context is refused in any
// goroutine.
func TestNestedHoweverDeep(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	for name, inside := range map[string]func(c *durable.Ctx, ctx context.Context) error{
		"200 frames": func(c *durable.Ctx, _ context.Context) error {
			return deep(200, func() error { return c.Do("inner", nothing) })
		},
		"10,000 frames": func(c *durable.Ctx, _ context.Context) error {
			return deep(10_000, func() error { return c.Do("inner", nothing) })
		},
		"a goroutine with the step's context": func(c *durable.Ctx, ctx context.Context) error {
			own := *c
			own.Context = ctx
			failed := make(chan error)
			go func() { failed <- own.Do("inner", nothing) }()
			return <-failed
		},
		"a branch with a context of the step's": func(c *durable.Ctx, ctx context.Context) error {
			own := *c
			own.Context = context.WithValue(ctx, new(int), 1)
			_, err := own.Go("inner", func(*durable.Ctx) (int, error) { return 0, nil }).Wait()
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
				return 0, c.Do("outer", func(ctx context.Context) error { return inside(c, ctx) })
			})
			if !errors.Is(err, durable.ErrNestedStep) {
				t.Errorf("got %v, want ErrNestedStep", err)
			}
		})
	}
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		own := *c
		own.Context = context.WithValue(c, new(int), 1)
		return 0, deep(200, func() error { return own.Do("not inside", nothing) })
	})
	if err != nil {
		t.Errorf("a deep call of the workflow's own: %v", err)
	}
}

// A Wait for a child inside a step is refused: it would keep the run in memory, and the child's end would be recorded within the
// step.
func TestWaitForAChildInsideAStep(t *testing.T) {
	s := openStore(t)
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) { return c.Receive[int]("never") })
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		h, err := c.StartChild("kid", child, 0)
		if err != nil {
			return 0, err
		}
		return c.Step("outer", func(context.Context) (int, error) { return h.Wait() })
	})
	if _, err := w.Call(within(t), engineOn(t, s, w, child), 0, durable.ID("run")); !errors.Is(err, durable.ErrNestedStep) {
		t.Errorf("got %v, want ErrNestedStep", err)
	}
}
