package durable_test

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// callCounts counts how often the functions of nodes were called.
type callCounts struct {
	mu     sync.Mutex
	counts map[string]int
}

func (c *callCounts) add(node string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == nil {
		c.counts = make(map[string]int)
	}
	c.counts[node]++
}

// take returns the counts since the last call.
func (c *callCounts) take() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	counts := c.counts
	c.counts = nil
	return counts
}

// repairable returns a graph whose node "left" fails until it is mended, and whose functions count their calls.
func repairable(calls *callCounts, mended *atomic.Bool) *durable.Workflow[int, int] {
	counted := func(node string, value int) func(context.Context, *durable.NodeInput) (int, error) {
		return func(context.Context, *durable.NodeInput) (int, error) {
			calls.add(node)
			return value, nil
		}
	}
	return durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
		list := g.Step("list", counted("list", 1))
		other := g.Step("other", counted("other", 2))
		left := g.Step("left", func(context.Context, *durable.NodeInput) (int, error) {
			calls.add("left")
			if !mended.Load() {
				return 0, errBroken
			}
			return 3, nil
		}, durable.Needs(list), durable.Retry(durable.NoRetry))
		right := g.Step("right", counted("right", 4), durable.Needs(list))
		g.Step("late", counted("late", 5), durable.After(left))
		g.Step("any", counted("any", 6), durable.NeedsAny(durable.KeepLosers, right, left), durable.Needs(right))
		report := g.Step("report", counted("report", 7), durable.Needs(left), durable.OnUnmetNeed(durable.RunAnyway))
		never := g.Step("never", counted("never", 8), durable.When(report, func(int) bool { return mended.Load() }))
		return g.Step("out", sum(left, right, other, never), durable.Needs(left, right, other), durable.After(never))
	})
}

func wantCalls(t *testing.T, what string, calls *callCounts, want map[string]int) {
	t.Helper()
	if got := calls.take(); !maps.Equal(got, want) {
		t.Errorf("%s called %v, want %v", what, got, want)
	}
}

// A retry and a fork of a graph follow its edges.
func TestGraphIsRepairedAlongItsEdges(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var calls callCounts
		var mended atomic.Bool
		w := repairable(&calls, &mended)
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		if _, err := w.Call(within(t), e, 1, durable.ID("run")); !errors.Is(err, errBroken) {
			t.Fatalf("%v", err)
		}
		wantCalls(t, "the run", &calls, map[string]int{"list": 1, "other": 1, "left": 1, "right": 1, "late": 1, "any": 1, "report": 1})
		mended.Store(true)
		orFail(e.Retry(within(t), "run"))(t)
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != 17 || err != nil {
			t.Errorf("the retry returned %d, %v", out, err)
		}
		wantCalls(t, "the retry", &calls, map[string]int{"left": 1, "late": 1, "report": 1, "never": 1})
		orFail(e.Fork(within(t), "run", durable.From("right")))(t)
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != 17 || err != nil {
			t.Errorf("the fork returned %d, %v", out, err)
		}
		wantCalls(t, "the fork", &calls, map[string]int{"right": 1, "any": 1})
		orFail(e.Fork(within(t), "run", durable.From("report"), durable.NewID("copy")))(t)
		if out, err := w.Call(within(t), e, 1, durable.ID("copy")); out != 17 || err != nil {
			t.Errorf("the copy returned %d, %v", out, err)
		}
		wantCalls(t, "the copy", &calls, map[string]int{"report": 1, "never": 1})
		orFail(e.Fork(within(t), "run", durable.From("report/step")))(t)
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != 17 || err != nil {
			t.Errorf("the fork from a call returned %d, %v", out, err)
		}
		wantCalls(t, "the fork from a call", &calls, map[string]int{"report": 1, "never": 1})
		orFail(e.Override(within(t), "run", "right/step", 10))(t)
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != 23 || err != nil {
			t.Errorf("the override returned %d, %v", out, err)
		}
		wantCalls(t, "the override", &calls, map[string]int{"any": 1})
		if _, err := e.Fork(within(t), "run", durable.From("nothing")); !errors.Is(err, durable.ErrNoStep) {
			t.Errorf("a fork from no node returned %v", err)
		}
	})
}

// A fork that drops a choice lets the loser complete, and executes again what had run because the loser was cancelled.
func TestForkOfAGraphRepeatsWhatFollowedACancelledNode(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var calls callCounts
		var waits atomic.Bool
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[string] {
			a := g.Step("a", func(ctx context.Context, _ *durable.NodeInput) (string, error) {
				if calls.add("a"); waits.Load() {
					<-ctx.Done()
				}
				return "a", ctx.Err()
			})
			late := g.Receive[string]("late")
			follows := g.Step("follows", func(_ context.Context, in *durable.NodeInput) (string, error) {
				calls.add("follows")
				if late, err := late.Get(in); err == nil {
					return "after " + late, nil
				}
				return "without it", nil
			}, durable.After(late))
			c := g.Step("c", func(context.Context, *durable.NodeInput) (int, error) { return 1, nil }, durable.NeedsAny(durable.CancelLosers, a, late))
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (string, error) { return follows.Of(in), nil }, durable.Needs(c, follows))
		})
		e := engineOn(t, s, w)
		running(t, e)
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != "without it" || err != nil {
			t.Fatalf("%q, %v", out, err)
		}
		wantCalls(t, "the run", &calls, map[string]int{"a": 1, "follows": 1})
		waits.Store(true)
		orFail(e.Fork(within(t), "run", durable.From("a")))(t)
		if err := e.Signal(within(t), "run", "late", "the news"); err != nil {
			t.Fatal(err)
		}
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != "after the news" || err != nil {
			t.Errorf("the fork returned %q, %v", out, err)
		}
		if got := calls.take(); got["follows"] != 1 {
			t.Errorf("the fork called %v", got)
		}
	})
}

// A Skip of a failed step makes the nodes run again that acted on the failure, and keeps the others.
func TestSkipOfAFailedNodeExecutesWhatFollowedTheFailure(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var calls callCounts
		counted := func(node string) { calls.add(node) }
		e, _, err := graphOf(t, s, func(g *durable.Graph[int]) *durable.Node[int] {
			other := g.Step("other", func(context.Context, *durable.NodeInput) (int, error) { counted("other"); return 1, nil })
			a := g.Step("a", broken, durable.Retry(durable.NoRetry))
			b := g.Step("b", func(_ context.Context, in *durable.NodeInput) (bool, error) {
				counted("b")
				_, err := a.Get(in)
				return err == nil, nil
			}, durable.Needs(a), durable.OnUnmetNeed(durable.RunAnyway))
			c := g.Step("c", constant(4), durable.When(b, func(ok bool) bool { return ok }))
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (int, error) { return c.Of(in) + other.Of(in), nil }, durable.Needs(c, other))
		})
		if err == nil {
			t.Fatal("the run completed")
		}
		if _, err := e.Skip(within(t), "run", "a/step", 5); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusCompleted)
		if got := calls.take(); got["b"] != 2 || got["other"] != 1 {
			t.Errorf("the nodes were executed %v times", got)
		}
	})
}
