package durable_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A node with FailRun fails the run and ends the other nodes, however long the name of the failed node is.
func TestFailRunAfterANodeWithALongName(t *testing.T) {
	const maxName = 512
	onStores(t, func(t *testing.T, s durable.Store) {
		long := strings.Repeat("€", maxName/len("€")) + "ab"
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			bad := g.Step(long, broken)
			g.Receive[int]("never")
			g.Step("stop", constant(1), durable.Needs(bad), durable.OnUnmetNeed(durable.FailRun))
			return g.Step("out", constant(1))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		running(t, e)
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); !errors.Is(err, errBroken) {
			t.Errorf("%d, %v", out, err)
		}
		wantNodes(t, e, map[string]durable.NodeState{long: durable.NodeFailed, "never": durable.NodeCancelled, "stop": durable.NodeFailed, "out": durable.NodeCompleted})
		for _, n := range read(e.Graph(within(t), "run"))(t).Nodes {
			if n.Name == "stop" && (n.Err == nil || !errors.Is(n.Err, errBroken)) {
				t.Errorf("the node that fails the run has the error %v", n.Err)
			}
		}
	})
}
