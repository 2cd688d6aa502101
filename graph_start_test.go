package durable_test

import (
	"context"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A start that the same process executes records the shape in its own transaction: a graph needs no further commit for it.
func TestAStartRecordsTheShape(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] { return g.Step("node", constant(1)) })
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		running(t, e)
		if _, err := w.Call(within(t), e, 1); err != nil { // the worker has begun then
			t.Fatal(err)
		}
		before := e.Stats().Flushes
		if out, err := w.Call(within(t), e, 1, durable.ID("run")); out != 1 || err != nil {
			t.Fatal(out, err)
		}
		if got := e.Stats().Flushes - before; got != 3 {
			t.Errorf("%d flushes, want those of the start, the node and the end", got)
		}
		wantNodes(t, e, map[string]durable.NodeState{"node": durable.NodeCompleted})
		history := read(e.History(within(t), "run"))(t)
		if len(history) != 2 || history[0].Name != "shape/1" || history[0].Status != "completed" {
			t.Errorf("the history is %+v", history)
		}
		if run, err := w.Start(within(t), e, 2, durable.ID("run")); err == nil { // it exists, with another input
			t.Errorf("another start returned %v", run.ID())
		}
		if again := read(e.History(within(t), "run"))(t); len(again) != len(history) {
			t.Errorf("another start changed the history to %+v", again)
		}
	})
}

// The deadline of a graph counts as that of any workflow: a run whose time is over before its first node begins is not compensated.
func TestAGraphExpiresBeforeItBegins(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		begun := false
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("node", func(context.Context, *durable.NodeInput) (int, error) { begun = true; return 1, nil })
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
		running(t, e)
		_, err := w.Call(within(t), e, 1, durable.ID("run"), durable.Timeout(1))
		if err == nil || begun {
			t.Errorf("%v, begun: %v", err, begun)
		}
	})
}
