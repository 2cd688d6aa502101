package durable_test

import (
	"context"
	"database/sql"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
)

func same(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n, nil }

// A node over a list that a choice ended before the list had a value stays cancelled, also if the list is empty.
func TestEndedNodeOverAnEmptyListStaysCancelled(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			list := g.Receive[[]int]("list")
			each := g.Each("each", list, same)
			executed := g.Each("executed", list, same)
			won := g.Step("won", constant([]int{}))
			any := g.Step("any", constant(1), durable.NeedsAny(durable.CancelLosers, won, each))
			return g.Step("out", constant(1), durable.Needs(any, executed))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}})
		defer running(t, e)()
		run := orFail(w.Start(within(t), e, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "any/step", "completed")
		wantStates(t, e, db, prefix, map[string]durable.NodeState{"each": "cancelled"})
		orFail(0, e.Signal(within(t), "run", "list", []int{}))(t)
		orFail(run.Result(within(t)))(t)
		wantStates(t, e, db, prefix, map[string]durable.NodeState{"each": "cancelled", "executed": "completed"})
	})
}

// The items of a list of bytes are its bytes.
func TestStateOfANodeOverBytes(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			each := g.Each("each", g.Step("list", constant([]byte("abcd"))), func(_ context.Context, b byte, _ *durable.NodeInput) (int, error) { return int(b), nil })
			none := g.Each("none", g.Step("empty", constant([]byte{})), func(_ context.Context, b byte, _ *durable.NodeInput) (int, error) { return int(b), nil })
			return g.Step("out", constant(1), durable.Needs(each, none))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}})
		defer running(t, e)()
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		wantStates(t, e, db, prefix, map[string]durable.NodeState{"each": "completed", "none": "completed"})
		if got := textsOf(t, db, `SELECT items FROM `+prefix+`nodes WHERE items IS NOT NULL ORDER BY number`); len(got) != 2 || got[0] != "4" || got[1] != "0" {
			t.Errorf("the view counts %q items, want 4 and 0", got)
		}
		if n := orFail(e.Graph(within(t), "run"))(t).Nodes[1]; n.Items.Total != 4 {
			t.Errorf("Graph counts %d items, want 4", n.Items.Total)
		}
	})
}

// A list whose choice ends it after an item has failed, and before all items have ended, is cancelled.
func TestListWithAFailedItemThatAChoiceEnds(t *testing.T) {
	for what, opts := range map[string][]durable.NodeOption{"Collect": {durable.Collect()}, "stopping": nil} {
		t.Run(what, func(t *testing.T) {
			withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
				begun := make(chan struct{})
				begin := sync.OnceFunc(func() { close(begun) })
				w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[string] {
					each := g.Each("each", g.Step("list", constant([]int{0, 1})), func(ctx context.Context, n int, _ *durable.NodeInput) (int, error) {
						if n == 0 {
							<-begun
							return 0, errBroken
						}
						begin()
						<-ctx.Done()
						return 0, ctx.Err()
					}, append(opts, durable.Retry(durable.NoRetry))...)
					any := g.Step("any", constant(1), durable.NeedsAny(durable.CancelLosers, g.Receive[[]int]("go"), each))
					after := g.Step("after", func(_ context.Context, in *durable.NodeInput) (string, error) {
						_, err := each.Get(in)
						return string(err.(*durable.NodeError).State), nil
					}, durable.After(each))
					return g.Step("out", func(_ context.Context, in *durable.NodeInput) (string, error) { return after.Of(in), nil }, durable.Needs(any, after))
				})
				e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}})
				defer running(t, e)()
				run := orFail(w.Start(within(t), e, 1, durable.ID("run")))(t)
				awaitCheckpoint(t, e, "run", "each/each/0", "failed")
				orFail(0, e.Signal(within(t), "run", "go", []int{}))(t)
				if out, err := run.Result(within(t)); out != "cancelled" || err != nil {
					t.Errorf("Get returned an error with the state %s, %v; want cancelled", out, err)
				}
				wantStates(t, e, db, prefix, map[string]durable.NodeState{"each": "cancelled"})
			})
		})
	}
}

// A list whose children were open when its run was cancelled is cancelled.
func TestListsOfACancelledRunAreCancelled(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			kids := g.EachChild("kids", g.Step("list", constant([]int{0, 1})), forever)
			return g.Step("out", constant(1), durable.Needs(kids))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w, forever}})
		defer running(t, e)()
		orFail(w.Start(within(t), e, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "kids/children/0", "started")
		awaitCheckpoint(t, e, "run", "kids/children/1", "started")
		must(t)(e.Cancel(within(t), "run"))
		awaitStatus(t, e, "run", durable.StatusCancelled)
		wantStates(t, e, db, prefix, map[string]durable.NodeState{"kids": "cancelled"})
	})
}

// A list that an override made shorter leaves the nodes completed that keep the results of all former items.
func TestOverrideWithAShorterListKeepsTheNodesCompleted(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			each := g.Each("each", g.Step("list", constant([]int{1, 2, 3})), same)
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (int, error) { return len(each.Of(in)), nil }, durable.Needs(each))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}})
		defer running(t, e)()
		orFail(w.Call(within(t), e, 1, durable.ID("run")))(t)
		for _, list := range [][]int{{1, 2}, {}} {
			orFail(e.Override(within(t), "run", "list/step", list, durable.FromEnd()))(t)
			if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != 3 || err != nil {
				t.Errorf("%d, %v", out, err)
			}
			wantStates(t, e, db, prefix, map[string]durable.NodeState{"each": "completed"})
			if items := *read(e.Graph(within(t), "run"))(t).Nodes[1].Items; items != (durable.NodeItemCounts{Total: 3, Completed: 3}) {
				t.Errorf("after the list became %v, the items are %+v", list, items)
			}
		}
	})
}
