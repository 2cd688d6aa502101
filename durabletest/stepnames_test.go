package durabletest_test

import (
	"context"
	"errors"
	"strings"
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
	go func() { defer close(done); es.RequireStepFailed("o", "pay") }()
	<-done
	if len(s.errors) > 0 {
		t.Errorf("Failed: %q", s.errors)
	}
	s.errors = nil
	es.AssertStepsCompleted("o", "pay")
	if len(s.errors) == 0 {
		t.Error("AssertCompleted passes, and the step has failed")
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
	go func() { defer close(done); e.RequireStepFailed("o", "items/*") }()
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

// The export of a run that waits for a child replays as one that waits, not as one whose child is lost.
func TestReplayOfARunThatWaitsForAChild(t *testing.T) {
	t.Parallel()
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) { return n, c.Sleep("nap", 10*day) })
	parent := func(after string) *durable.Workflow[int, int] {
		return durable.Define("parent", func(c *durable.Ctx, n int) (int, error) {
			early := c.Go("branch", func(c *durable.Ctx) (int, error) { return c.Child("kid", child, n) })
			_, err := c.Child("kid", child, n+1)
			if err != nil {
				return step(c, "refund", n)
			}
			if _, err := step(c, after, n); err != nil {
				return 0, err
			}
			return early.Wait()
		})
	}
	w := parent("thanks")
	e := durabletest.New(t, w, child)
	if _, err := w.Start(quickly(t), e.Engine, 1, durable.ID("o")); err != nil {
		t.Fatal(err)
	}
	e.Advance(day)
	waiting := exported(t, e, "o")
	e.Advance(10 * day)
	ended := exported(t, e, "o")
	for name, c := range map[string]struct {
		exported []byte
		code     *durable.Workflow[int, int]
		want     string
	}{
		"waiting":                          {waiting, w, ""},
		"waiting, renamed after the child": {waiting, parent("cheers"), ""},
		"ended":                            {ended, w, ""},
		"ended, renamed after the child":   {ended, parent("cheers"), `which holds ["thanks"]`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			v := durabletest.Replay(t, c.code, c.exported)
			if v.Diverged != (c.want != "") || !strings.Contains(v.String(), c.want) || c.want == "" && len(v.NewCalls)+len(v.NotCalled) > 0 {
				t.Errorf("%v, want %q (%+v)", v, c.want, v)
			}
		})
	}
}

// A workflow that has moved to another queue replays what was exported before.
func TestReplayOfAMovedWorkflow(t *testing.T) {
	t.Parallel()
	body := func(c *durable.Ctx, n int) (int, error) { return step(c, "one", n) }
	w := durable.Define("w", body)
	e := durabletest.New(t, w)
	if _, err := w.Call(quickly(t), e.Engine, 1, durable.ID("o")); err != nil {
		t.Fatal(err)
	}
	if v := durabletest.Replay(t, durable.Define("w", body, durable.Queue("slow")), exported(t, e, "o")); v.Diverged {
		t.Error(v)
	}
}
