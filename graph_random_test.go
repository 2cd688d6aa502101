package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// drawnNode is a node of a random graph.
type drawnNode struct {
	needs, after, of []int
	k                int
	losers           durable.LoserPolicy
	unmet            durable.UnmetNeedPolicy
	fails            bool
	condition        int // the index in needs of the node on whose value the condition is; -1: none
	holds            bool
	kind             durable.NodeKind
}

func drawGraph(t *rapid.T, most int) []drawnNode {
	nodes := make([]drawnNode, rapid.IntRange(1, most).Draw(t, "nodes"))
	for i := range nodes {
		some := func(what string, most int) []int {
			if i == 0 {
				return nil
			}
			return rapid.SliceOfNDistinct(rapid.IntRange(0, i-1), 0, min(i, most), rapid.ID[int]).Draw(t, what)
		}
		n := &nodes[i]
		*n = drawnNode{
			needs: some("needs", 2), after: some("after", 1), of: some("choice", 3), condition: -1,
			losers: rapid.SampledFrom([]durable.LoserPolicy{durable.KeepLosers, durable.CancelLosers}).Draw(t, "losers"),
			unmet:  rapid.SampledFrom([]durable.UnmetNeedPolicy{durable.SkipNode, durable.SkipNode, durable.RunAnyway, durable.FailRun}).Draw(t, "policy"),
			fails:  rapid.IntRange(0, 5).Draw(t, "fails") == 0,
			kind:   rapid.SampledFrom([]durable.NodeKind{durable.NodeStep, durable.NodeStep, durable.NodeStep, durable.NodeChild}).Draw(t, "kind"),
		}
		if len(n.of) > 0 {
			n.k = rapid.IntRange(1, len(n.of)).Draw(t, "k")
		}
		if len(n.needs) > 0 && rapid.IntRange(0, 3).Draw(t, "conditional") == 0 {
			n.condition, n.holds = 0, rapid.Bool().Draw(t, "holds")
		}
	}
	return nodes
}

// randomGraph is a random graph whose functions count their calls.
type randomGraph struct {
	nodes []drawnNode
	calls []atomic.Int32
	w     *durable.Workflow[int, int]
	child *durable.Workflow[int, int]
}

func newRandomGraph(nodes []drawnNode) *randomGraph {
	r := &randomGraph{nodes: nodes, calls: make([]atomic.Int32, len(nodes))}
	r.child = durable.Define("child", func(c *durable.Ctx, i int) (int, error) {
		return c.Step("value", func(context.Context) (int, error) { return r.value(i) })
	})
	r.w = durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
		var handles []*durable.Node[int]
		of := func(indexes []int) (all []durable.AnyNode) {
			for _, i := range indexes {
				all = append(all, handles[i])
			}
			return all
		}
		for i, n := range nodes {
			opts := []durable.NodeOption{durable.Needs(of(n.needs)...), durable.After(of(n.after)...), durable.OnUnmetNeed(n.unmet)}
			if n.k > 0 {
				opts = append(opts, durable.NeedsQuorum(n.k, n.losers, of(n.of)...))
			}
			if n.condition >= 0 {
				opts = append(opts, durable.When(handles[n.needs[n.condition]], func(int) bool { return n.holds }))
			}
			name := fmt.Sprint("n", i)
			if n.kind == durable.NodeChild {
				handles = append(handles, g.Child(name, r.child, func(*durable.NodeInput) (int, error) { return i, nil }, opts...))
				continue
			}
			handles = append(handles, g.Step(name, func(context.Context, *durable.NodeInput) (int, error) { return r.value(i) }, opts...))
		}
		return handles[len(handles)-1]
	})
	return r
}

// value is what the function of the node returns.
func (r *randomGraph) value(i int) (int, error) {
	r.calls[i].Add(1)
	if r.nodes[i].fails {
		return 0, errBroken
	}
	return i, nil
}

// check compares what became of a run with the model: what each node must be, given what those are that it needs, and the recorded
// winners and ends.
func (r *randomGraph) check(t interface{ Errorf(string, ...any) }, info *durable.GraphInfo, err error) {
	state := func(i int) durable.NodeState { return info.Nodes[i].State }
	failed, ended := false, false
	for i, n := range r.nodes {
		failed = failed || state(i) == durable.NodeFailed && r.calls[i].Load() == 0
		won := 0
		for _, e := range info.Edges {
			if e.To == info.Nodes[i].Name && e.Won {
				won++
				if e.State != durable.NodeCompleted {
					t.Errorf("%q won for %q and is %s", e.From, e.To, e.State)
				}
			}
		}
		met := n.k == 0 || won == n.k
		for _, need := range n.needs {
			met = met && state(need) == durable.NodeCompleted
		}
		if won != 0 && won != n.k {
			t.Errorf("node %d has %d winners of %d", i, won, n.k)
		}
		possible := 0
		for _, member := range n.of {
			if state(member) == durable.NodeCompleted {
				possible++
			}
		}
		holds := n.condition < 0 || n.holds && state(n.needs[n.condition]) == durable.NodeCompleted
		switch s := state(i); s {
		case durable.NodeCompleted, durable.NodeFailed:
			if s == durable.NodeFailed && r.calls[i].Load() == 0 {
				if met || n.unmet != durable.FailRun {
					t.Errorf("node %d failed the run: %+v", i, n)
				}
				break
			}
			if !met && n.unmet != durable.RunAnyway || !holds || n.fails != (s == durable.NodeFailed) || r.calls[i].Load() == 0 {
				t.Errorf("node %d is %s: needs are met: %t, its condition holds: %t, it was called %d times: %+v", i, s, met, holds, r.calls[i].Load(), n)
			}
		case durable.NodeSkipped:
			if met && holds || r.calls[i].Load() != 0 {
				t.Errorf("node %d is skipped: needs are met: %t, its condition holds: %t, it was called %d times: %+v", i, met, holds, r.calls[i].Load(), n)
			}
		case durable.NodeCancelled:
			ended = true
		default:
			t.Errorf("node %d is %s after the end", i, s)
		}
	}
	cancels := slices.ContainsFunc(r.nodes, func(n drawnNode) bool { return n.k > 0 && n.losers == durable.CancelLosers })
	if ended && !failed && !cancels {
		t.Errorf("nodes are ended, and nothing ended them")
	}
	if output := state(len(r.nodes) - 1); (err == nil) != (output == durable.NodeCompleted && !failed) {
		t.Errorf("the output is %s, a node failed the run: %t, and the run returned %v", output, failed, err)
	}
}

// Random graphs with all policies end as the model says, also if the worker is replaced by another one while they run.
func TestRandomGraphs(t *testing.T) {
	s := openFile(t)
	runs := 0
	rapid.Check(t, func(rt *rapid.T) {
		r := newRandomGraph(drawGraph(rt, 30))
		runs++
		id := durable.ID(fmt.Sprint("run-", runs))
		stops := rapid.IntRange(0, 2).Draw(rt, "stops")
		for range stops {
			e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{r.w, r.child}})
			stop := running(t, e)
			if _, err := r.w.Start(within(t), e, 1, id); err != nil {
				rt.Fatal(err)
			}
			after := int32(rapid.IntRange(0, len(r.nodes)).Draw(rt, "calls before the stop"))
			ctx, cancel := context.WithTimeout(within(t), 20*time.Millisecond)
			poll(ctx, func() bool { return r.calls[after%int32(len(r.calls))].Load() > 0 })
			cancel()
			stop()
		}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{r.w, r.child}})
		stop := running(t, e)
		defer stop()
		_, err := r.w.Call(within(t), e, 1, id)
		if err != nil && !errors.Is(err, errBroken) && !errors.Is(err, durable.ErrNodeSkipped) && !errors.Is(err, durable.ErrCancelled) {
			rt.Fatalf("%v", err)
		}
		info, gone := e.Graph(within(t), fmt.Sprint("run-", runs))
		if gone != nil {
			rt.Fatal(gone)
		}
		r.check(rt, info, err)
	})
}

// Random graphs without choices end the same after a crash at each write.
func TestRandomGraphsCrashEverywhere(t *testing.T) {
	draw := rapid.Custom(func(t *rapid.T) []drawnNode {
		nodes := drawGraph(t, 7)
		for i := range nodes {
			if nodes[i].k = 0; nodes[i].unmet == durable.FailRun {
				nodes[i].unmet = durable.SkipNode // which nodes it ends is a matter of time
			}
		}
		return nodes
	})
	for seed := range 4 {
		r := newRandomGraph(draw.Example(seed))
		durabletest.CrashEverywhere(t, r.w, 1, durabletest.Workflows(r.child))
	}
}
