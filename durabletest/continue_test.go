package durabletest_test

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// continuing continues as new three times, with all that carries over.
func continuing() (w, child *durable.Workflow[int, int]) {
	child = durable.Define("child", func(c *durable.Ctx, n int) (int, error) { return step(c, "double", 2*n) })
	w = durable.Define("continuing", func(c *durable.Ctx, n int) (int, error) {
		if _, err := step(c, "count", n); err != nil {
			return 0, err
		}
		if _, err := c.Child("child", child, n); err != nil {
			return 0, err
		}
		if err := c.Sleep("nap", time.Hour); err != nil {
			return 0, err
		}
		got, err := c.Receive[int]("go on", durable.Within(time.Hour), durable.Else(7))
		if err != nil {
			return 0, err
		}
		if n < 3 {
			return 0, c.ContinueAsNew(n + 1)
		}
		return 10*n + got, nil
	})
	return w, child
}

// A crash at each write of a run that continues as new leads to the same end.
func TestCrashWhereARunContinuesAsNew(t *testing.T) {
	t.Parallel()
	w, child := continuing()
	durabletest.CrashEverywhere(t, w, 0, durabletest.Workflows(child))
}

// Each generation waits for times of its own, and a replay of the run is one of the newest generation.
func TestReplayOfARunThatContinuesAsNew(t *testing.T) {
	t.Parallel()
	w, child := continuing()
	e := durabletest.New(t, w, child)
	run, err := w.Start(t.Context(), e.Engine, 0, durable.ID("c"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(t.Context()); err != nil || got != 37 {
		t.Fatalf("the run ended with %d, %v", got, err)
	}
	all, err := e.Generations(t.Context(), "c")
	if err != nil || len(all) != 4 {
		t.Fatalf("the generations are %+v, %v", all, err)
	}
	export, err := e.Export(t.Context(), "c")
	if err != nil {
		t.Fatal(err)
	}
	if r := durabletest.Replay(t, w, export); r.Diverged {
		t.Errorf("the replay is %+v", r)
	}
}

// Generations may call different names, and a call of one name may return another value in each generation.
func TestCrashWhereGenerationsMakeDifferentCalls(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, at time.Time) (time.Time, error) {
		if !at.IsZero() {
			if err := c.Sleep("night", time.Hour); err != nil {
				return at, err
			}
			_, err := c.Now("now")
			return at, err
		}
		if _, err := step(c, "first", 1); err != nil {
			return at, err
		}
		now, err := c.Now("now")
		if err != nil {
			return at, err
		}
		return at, c.ContinueAsNew(now)
	})
	durabletest.CrashEverywhere(t, w, time.Time{})
}

// A detached child that goes on after its parent's end is compared as it is then.
func TestCrashWithADetachedChildThatGoesOn(t *testing.T) {
	t.Parallel()
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) {
		if _, err := step(c, "one", n); err != nil {
			return 0, err
		}
		if err := c.Sleep("a day", day); err != nil {
			return 0, err
		}
		return step(c, "two", n)
	})
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
		if _, err := c.StartChild("child", child, n, durable.Detached()); err != nil {
			return 0, err
		}
		return step(c, "own", n)
	})
	durabletest.CrashEverywhere(t, w, 1, durabletest.Workflows(child))
}

// A detached child that nobody awaits may have another ID in each execution, also if its parent continues as new.
func TestCrashWithADetachedChildOfAnEarlierGeneration(t *testing.T) {
	t.Parallel()
	grandchild := durable.Define("grandchild", func(c *durable.Ctx, n int) (int, error) { return step(c, "deep", n) })
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) {
		if _, err := c.StartChild("kid", grandchild, n, durable.Detached()); err != nil {
			return 0, err
		}
		return step(c, "one", n)
	})
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
		if n < 3 {
			if _, err := c.StartChild("child", child, n, durable.Detached()); err != nil {
				return 0, err
			}
			return 0, c.ContinueAsNew(n + 1)
		}
		return step(c, "own", n)
	})
	durabletest.CrashEverywhere(t, w, 1, durabletest.Workflows(child, grandchild))
}
