package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// What cannot work is an error of New, which names the node.
func TestGraphDefinitionsAreChecked(t *testing.T) {
	other := durable.Define("other", func(*durable.Ctx, int) (int, error) { return 0, nil })
	var stranger *durable.Node[int]
	durable.DefineGraph("stranger", func(g *durable.Graph[int]) *durable.Node[int] {
		stranger = g.Step("stranger", constant(1))
		return stranger
	})
	input := func(*durable.NodeInput) (int, error) { return 0, nil }
	for want, build := range map[string]func(g *durable.Graph[int]) *durable.Node[int]{
		`node "a": the name is declared twice`: func(g *durable.Graph[int]) *durable.Node[int] {
			g.Step("a", constant(1))
			return g.Step("a", constant(1))
		},
		`node "shape": the name is reserved`: func(g *durable.Graph[int]) *durable.Node[int] { return g.Step("shape", constant(1)) },
		`invalid name`:                       func(g *durable.Graph[int]) *durable.Node[int] { return g.Step("", constant(1)) },
		`node "b": it needs 3 of 2 nodes`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.NeedsQuorum(3, durable.KeepLosers, g.Step("x", constant(1)), g.Step("y", constant(1))))
		},
		`node "b": one of its choices names a node twice`: func(g *durable.Graph[int]) *durable.Node[int] {
			x := g.Step("x", constant(1))
			return g.Step("b", constant(1), durable.NeedsAny(durable.KeepLosers, x, x))
		},
		`node "b": it needs 1 of 0 nodes`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.NeedsAny(durable.CancelLosers))
		},
		`node "b": it needs "stranger", which is a node of another graph`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.After(stranger))
		},
		`the output node "stranger" is a node of another graph`: func(g *durable.Graph[int]) *durable.Node[int] { return stranger },
		`build returned no node`:                                func(g *durable.Graph[int]) *durable.Node[int] { return nil },
		`node "b": the node at place 1 of those that it needs is nil`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.Needs((*durable.Node[int])(nil)))
		},
		`node "b": durable: invalid configuration: the NodeOption at place 1`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), nil)
		},
		`has no function`: func(g *durable.Graph[int]) *durable.Node[int] { return g.Step[int]("b", nil) },
		`When("x") has no condition`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.When(g.Step("x", constant(1)), nil))
		},
		`it is for Graph.Child and Graph.EachChild`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.InQueue("gpu"))
		},
		`it is for Graph.Step and Graph.Each`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Child("b", other, input, durable.AtMostOnce())
		},
		`it is for Graph.Receive`: func(g *durable.Graph[int]) *durable.Node[int] { return g.Step("b", constant(1), durable.Within(1)) },
		`it is for Graph.Each`:    func(g *durable.Graph[int]) *durable.Node[int] { return g.Step("b", constant(1), durable.Collect()) },
		`the option ID`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Child("b", other, input, durable.ID("mine"))
		},
		`OnUnmetNeed is given twice`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.OnUnmetNeed(durable.FailRun), durable.OnUnmetNeed(durable.SkipNode))
		},
		`OnUnmetNeed("maybe")`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.OnUnmetNeed("maybe"))
		},
		`LoserPolicy 9`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("b", constant(1), durable.NeedsAny(9, g.Step("x", constant(1))))
		},
		`without the value of "x" it has no items`: func(g *durable.Graph[int]) *durable.Node[int] {
			x := g.Step("x", constant([]int{1}))
			g.Each("b", x, func(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n, nil }, durable.OnUnmetNeed(durable.RunAnyway))
			return g.Step("y", constant(1))
		},
		`nil or empty`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Child("b", (*durable.Workflow[int, int])(nil), input)
		},
		`returns the input of the child`: func(g *durable.Graph[int]) *durable.Node[int] { return g.Child("b", other, nil) },
	} {
		w := durable.DefineGraph("graph", build)
		_, err := durable.New(openFile(t), durable.Config{Workflows: []durable.Definition{w}})
		if err == nil || !strings.Contains(err.Error(), want) || !errors.Is(err, durable.ErrInvalidConfig) && !errors.Is(err, durable.ErrInvalidName) {
			t.Errorf("want %s: %v", want, err)
		}
		if shape := w.Shape(); len(shape.Nodes) != 0 {
			t.Errorf("the shape of a graph that is not valid has nodes: %+v", shape)
		}
	}
	for _, w := range []durable.Definition{durable.DefineGraph[int, int]("graph", nil), durable.DefineGraphFrom[int, int]("graph", nil)} {
		if _, err := durable.New(openFile(t), durable.Config{Workflows: []durable.Definition{w}}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a graph without a function: %v", err)
		}
	}
}

// The shape has the nodes and edges of a graph, and is empty for other workflows.
func TestShapeOfAWorkflow(t *testing.T) {
	w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
		a := g.Step("a", constant(1))
		return g.Step("b", constant(1), durable.When(a, func(int) bool { return true }), durable.OnUnmetNeed(durable.FailRun))
	})
	shape := w.Shape()
	if len(shape.Nodes) != 2 || shape.Output != "b" || shape.Nodes[1].OnUnmetNeed != durable.FailRun || len(shape.Edges) != 1 || !shape.Edges[0].If {
		t.Errorf("%+v", shape)
	}
	plain := durable.Define("plain", func(*durable.Ctx, int) (int, error) { return 0, nil })
	if shape := plain.Shape(); len(shape.Nodes) != 0 || shape.Mermaid() != "flowchart TD\n" || shape.DOT() != "digraph {\n}\n" {
		t.Errorf("%+v", shape)
	}
}

// A node is the scope of its calls, so its name cannot be changed.
func TestNodesKeepTheirNames(t *testing.T) {
	build := func(g *durable.Graph[int]) *durable.Node[int] { return g.Step("box", constant(1)) }
	renamed := durable.Renamed("pack", "box")
	for _, w := range []durable.Definition{
		durable.DefineGraph("graph", build, renamed),
		durable.DefineGraphFrom("graph", func(g *durable.Graph[int], _ int) *durable.Node[int] { return build(g) }, renamed),
	} {
		_, err := durable.New(openFile(t), durable.Config{Workflows: []durable.Definition{w}})
		if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), `Renamed("pack", "box"), and nodes keep their names`) {
			t.Errorf("the error is %v", err)
		}
	}
}
