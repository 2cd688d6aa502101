package durable_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run that has not begun shows the graph of its workflow, if this process knows it.
func TestGraphOfARunThatHasNotBegun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.DefineGraph("graph", gated)
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		read(w.Start(within(t), e, 1, durable.ID("run")))(t)
		info := read(e.Graph(within(t), "run"))(t)
		if info.ShapeRevision != 0 || info.Shape.Mermaid() != w.Shape().Mermaid() || len(info.Edges) != 2 {
			t.Errorf("%+v", info)
		}
		wantNodes(t, e, map[string]durable.NodeState{"gate": durable.NodeWaiting, "gone": durable.NodeWaiting, "last": durable.NodeWaiting})
		stranger := engineWith(t, s, durable.Config{})
		if _, err := stranger.Graph(within(t), "run"); !errors.Is(err, durable.ErrNoGraph) {
			t.Errorf("a process without the workflow says %v", err)
		}
		must(t)(e.Cancel(within(t), "run"))
		wantNodes(t, e, map[string]durable.NodeState{"gate": durable.NodeCancelled, "gone": durable.NodeSkipped, "last": durable.NodeSkipped})
	})
}

// The state of a graph says why nodes were skipped or fail the run, and how far choices are.
func TestGraphSaysWhy(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e, _, err := graphOf(t, s, func(g *durable.Graph[int]) *durable.Node[int] {
			a, bad := g.Step("a", constant(1)), g.Step("bad", broken, durable.Retry(durable.NoRetry))
			g.Step("never", constant(1), durable.When(a, func(int) bool { return false }))
			after := g.Step("after", constant(1), durable.Needs(bad))
			further := g.Step("further", constant(1), durable.Needs(after))
			g.Step("some", constant(1), durable.NeedsQuorum(1, durable.KeepLosers, a, bad, after))
			return g.Step("strict", constant(1), durable.Needs(further), durable.OnUnmetNeed(durable.FailRun))
		})
		if !errors.Is(err, errBroken) {
			t.Errorf("%v", err)
		}
		info := read(e.Graph(within(t), "run"))(t)
		why := make(map[string]string)
		for _, n := range info.Nodes {
			if n.Err != nil {
				why[n.Name] = n.Err.Error()
			}
			if n.Name == "some" && n.State == durable.NodeCompleted {
				if got := fmt.Sprintf("%+v", n.Choices); got != "[{K:1 Of:3 Completed:1 Without:2 Won:[a]}]" {
					t.Errorf("the choice is %s", got)
				}
			}
			if n.Name == "strict" && !errors.Is(n.Err, errBroken) {
				t.Errorf("%v does not wrap the failure", n.Err)
			}
		}
		for node, want := range map[string]string{
			"never":   `node "never" has no value: durable: the node was skipped: its condition on the value of node "a" does not hold`,
			"after":   `node "after" has no value: durable: the node was skipped: its needs are not met, because of node "bad"`,
			"further": `node "further" has no value: durable: the node was skipped: its needs are not met, because of node "bad"`,
			"strict":  `node "strict" failed: it fails the run, because a need is not met: ` + why["bad"],
		} {
			if why[node] != want && !(node == "never" && why[node] == `node "never" has no value: `+durable.ErrCancelled.Error()) {
				t.Errorf("%s: %s", node, why[node])
			}
		}
	})
}
