package durabletest_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// failing fails at a step in each generation, after a step, a child and a receive, and compensates in the end.
func failing(kid *durable.Workflow[int, int]) *durable.Workflow[int, int] {
	return durable.Define("failing", func(c *durable.Ctx, n int) (int, error) {
		if err := c.Compensate("undo", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		if _, err := step(c, "first", n); err != nil {
			return 0, err
		}
		if _, err := c.Child("kid", kid, n); err != nil {
			return 0, err
		}
		if _, err := c.Receive[int]("news", durable.Within(time.Minute), durable.Else(7)); err != nil {
			return 0, err
		}
		return 0, c.Do("fails", func(context.Context) error { return errors.New("no") })
	}, durable.RetryRun(durable.Fixed(time.Hour, 3)))
}

// A crash at each write of a run that retries itself leads to the same end, after the same number of generations.
func TestCrashWhereARunRetriesItself(t *testing.T) {
	t.Parallel()
	kid := durable.Define("kid", func(c *durable.Ctx, n int) (int, error) { return step(c, "double", 2*n) })
	durabletest.CrashEverywhere(t, failing(kid), 0, durabletest.Workflows(kid))
}

// The waits of a run that retries itself take no time in a test.
func TestTheWaitsOfARunThatRetriesItself(t *testing.T) {
	t.Parallel()
	kid := durable.Define("kid", func(c *durable.Ctx, n int) (int, error) { return step(c, "double", 2*n) })
	w := failing(kid)
	e := durabletest.New(t, w, kid)
	run, err := w.Start(t.Context(), e.Engine, 0, durable.ID("f"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Result(t.Context()); err == nil {
		t.Fatal("the run did not fail")
	}
	all, err := e.Generations(t.Context(), "f")
	if err != nil || len(all) != 3 {
		t.Fatalf("the generations are %+v, %v", all, err)
	}
	if took := all[2].EndedAt.Sub(all[0].StartedAt); took < 2*time.Hour || took > 2*time.Hour+2*time.Minute {
		t.Errorf("the run took %v of the test's clock", took)
	}
}
