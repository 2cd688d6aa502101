package durable_test

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable"
)

// An override that makes a list longer corrects the number of items that the run has: in its graph, in its progress and in its history.
func TestOverrideWithALongerListCountsTheNewItems(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		gate := make(chan struct{})
		kid := durable.Define("kid", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("step", func(context.Context) (int, error) {
				if n > 2 {
					<-gate
				}
				return n, nil
			})
		})
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			list := g.Step("list", constant([]int{1, 2}))
			kids := g.EachChild("kids", list, kid)
			over := g.Each("over", kids, same)
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (int, error) { return len(over.Of(in)), nil }, durable.Needs(over))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w, kid}})
		defer running(t, e)()
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		check := func(what string, over durable.NodeItemCounts, state durable.NodeState, status durable.CheckpointStatus, done ...int) {
			t.Helper()
			graph := orFail(e.Graph(within(t), "run"))(t)
			if n := graph.Nodes[2]; *n.Items != over || n.State != state {
				t.Errorf("%s, the node over the children is %s with the items %+v; want %s, %+v", what, n.State, *n.Items, state, over)
			}
			for i, m := range orFail(e.Get(within(t), "run"))(t).Progress {
				if m.Total != 4 || m.Done != done[i] {
					t.Errorf("%s, the progress is %+v, want %d of 4", what, m, done[i])
				}
			}
			at := slices.IndexFunc(orFail(e.History(within(t), "run"))(t), func(c durable.Checkpoint) bool { return c.Name == "kids/children" && c.Status == status })
			if at < 0 {
				t.Errorf("%s, the history does not show the children as %s", what, status)
			}
		}
		orFail(e.Override(within(t), "run", "list/step", []int{1, 2, 3, 4}, durable.FromEnd()))(t)
		check("before the new items have ended", durable.NodeItemCounts{Total: 4, Completed: 2}, "running", durable.CheckpointStarted, 2, 2)
		close(gate)
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		check("at the end", durable.NodeItemCounts{Total: 4, Completed: 4}, "completed", durable.CheckpointCompleted, 4, 4)
	})
}

// A loser over a list completes before a repair makes the list longer. A fork that drops the choice lets the loser execute the new items, and
// what had followed the loser is executed again.
func TestForkRepeatsWhatFollowedALoserWhoseListIsLonger(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		chosen := make(chan struct{})
		begun := make(chan struct{})
		first := true
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[string] {
			list := g.Step("list", constant([]int{1}))
			each := g.Each("each", list, func(_ context.Context, n int, _ *durable.NodeInput) (int, error) {
				if n == 1 {
					close(begun)
					<-chosen // a loser that has begun keeps its result
				}
				return n, nil
			})
			won := g.Step("won", func(context.Context, *durable.NodeInput) (int, error) { <-begun; return 1, nil })
			any := g.Step("any", func(context.Context, *durable.NodeInput) (int, error) {
				if first {
					first = false
					close(chosen)
				}
				return 1, nil
			}, durable.NeedsAny(durable.CancelLosers, won, each))
			after := g.Step("after", func(_ context.Context, in *durable.NodeInput) (string, error) {
				v, err := each.Get(in)
				return fmt.Sprint(v, err), nil
			}, durable.After(each))
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (string, error) { return after.Of(in), nil }, durable.Needs(any, after))
		})
		e := engineOn(t, s, w)
		running(t, e)
		if out := orFail(w.Call(within(t), e, 1, durable.ID("run")))(t); out != "[1] <nil>" {
			t.Fatalf("the run returned %q", out)
		}
		orFail(e.Override(within(t), "run", "list/step", []int{1, 2}, durable.FromEnd()))(t)
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		wantNodes(t, e, map[string]durable.NodeState{"list": "completed", "each": "cancelled", "won": "completed", "any": "completed", "after": "completed", "out": "completed"})
		r := orFail(e.Fork(within(t), "run", durable.From("any")))(t)
		if !slices.Contains(r.Dropped, "after/step") {
			t.Errorf("the fork keeps what followed the loser: it drops %q", r.Dropped)
		}
	})
}

// The progress of a Map never shows more items as done than there are, also if the list is longer than when the Map began.
func TestProgressOfAMapWhoseListIsLonger(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("order", func(c *durable.Ctx, _ int) (int, error) {
			list, err := c.Step("list", func(context.Context) ([]int, error) { return []int{1, 2}, nil })
			if err != nil {
				return 0, err
			}
			out, err := c.Map("all", list, func(_ context.Context, n int) (int, error) { return n, nil })
			return len(out), err
		})
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		orFail(e.Override(within(t), "run", "list", []int{1, 2, 3, 4}, durable.FromEnd()))(t)
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		if got := orFail(e.Get(within(t), "run"))(t).Progress[0]; got != (durable.MapProgress{Name: "all", Done: 4, Total: 4}) {
			t.Errorf("the progress is %+v", got)
		}
	})
}
