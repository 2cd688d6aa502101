package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A failed run undoes what it did, also when the process dies in the middle of it.
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
	_, err := call(t, 0, func(c *durable.Ctx, _ int) (int, error) {
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
