package durabletest_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// A name means the step that is called so, before those which are called so within a scope.
func TestFailedMeansTheStepItself(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
		if _, err := c.Go("a", func(c *durable.Ctx) (int, error) { return step(c, "pay", 1) }).Wait(); err != nil {
			return 0, err
		}
		return c.Step("pay", func(context.Context) (int, error) { return 0, errors.New("declined") })
	})
	s := &spy{TB: t}
	e := durabletest.New(t, w)
	es := durabletest.New(s, w)
	_, _ = w.Call(quickly(t), e.Engine, 1, durable.ID("o"))
	_, _ = w.Call(quickly(t), es.Engine, 1, durable.ID("o"))
	s.errors = nil
	done := make(chan struct{})
	go func() { defer close(done); es.Failed("o", "pay") }()
	<-done
	if len(s.errors) > 0 {
		t.Errorf("Failed: %q", s.errors)
	}
	s.errors = nil
	es.Ran("o", "pay")
	if len(s.errors) == 0 {
		t.Error("Ran passes, and the step has failed")
	}
}

// A pattern stands for all that it means: one item of a Map has failed.
func TestRanOfAPattern(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
		_, err := c.Map("items", []int{0, 1}, func(_ context.Context, i int) (int, error) {
			if i == 1 {
				return 0, errors.New("no")
			}
			return i, nil
		})
		return 0, err
	})
	s := &spy{TB: t}
	e := durabletest.New(s, w)
	_, _ = w.Call(quickly(t), e.Engine, 1, durable.ID("o"))
	s.errors = nil
	done := make(chan struct{})
	go func() { defer close(done); e.Failed("o", "items/*") }()
	<-done
	if len(s.errors) > 0 {
		t.Errorf("Failed does not find the item that has: %q", s.errors)
	}
}

// A replacement does nothing in Replay, and so fails the test as options of others do.
func TestReplayWithAStub(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) { return step(c, "one", n) })
	e := durabletest.New(t, w)
	if _, err := w.Call(quickly(t), e.Engine, 1, durable.ID("o")); err != nil {
		t.Fatal(err)
	}
	s := &spy{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		durabletest.Replay(s, w, exported(t, e, "o"), durabletest.Stub("one", func(context.Context) (int, error) { return 2, nil }))
	}()
	<-done
	if len(s.errors) == 0 {
		t.Error("the stub is taken, and does nothing")
	}
}
