package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

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

// An option that its node cannot have is an error of New, which names the node.
func TestOptionsOfNodesAreChecked(t *testing.T) {
	kid := durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 0, nil })
	input := func(*durable.NodeInput) (int, error) { return 0, nil }
	happened := durable.Verify(func(context.Context) (string, bool, error) { return "", false, nil })
	step := func(o durable.NodeOption) func(g *durable.Graph[int]) {
		return func(g *durable.Graph[int]) { g.Step("b", constant(1), o) }
	}
	each := func(opts ...durable.NodeOption) func(g *durable.Graph[int]) {
		return func(g *durable.Graph[int]) {
			g.Each("b", g.Step("list", constant([]int{1})), func(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n, nil }, opts...)
		}
	}
	child := func(o durable.NodeOption) func(g *durable.Graph[int]) {
		return func(g *durable.Graph[int]) { g.Child("b", kid, input, o) }
	}
	receive := func(opts ...durable.NodeOption) func(g *durable.Graph[int]) {
		return func(g *durable.Graph[int]) { g.Receive[int]("b", opts...) }
	}
	for name, c := range map[string]struct {
		build func(g *durable.Graph[int])
		want  string
	}{
		"Singleton of a child": {child(durable.Singleton("k")), "Singleton, Debounce and Throttle"},
		"Debounce of a child":  {child(durable.Debounce("k", time.Second, time.Second)), "Singleton, Debounce and Throttle"},
		"Throttle of a child":  {child(durable.Throttle("k", 1, time.Hour)), "Singleton, Debounce and Throttle"},
		"Singleton of each child": {func(g *durable.Graph[int]) {
			g.EachChild("b", g.Step("list", constant([]int{1})), kid, durable.Singleton("k"))
		}, "Singleton, Debounce and Throttle"},
		"Key of another type":         {each(durable.Key(func(string) string { return "" })), "must take the map's own items"},
		"nil Key":                     {each(durable.Key[int](nil)), "has no function"},
		"invalid ItemOptions":         {each(durable.ItemOptions(durable.AttemptTimeout(-1))), "AttemptTimeout of -1ns"},
		"ItemOptions beside the same": {each(durable.ItemOptions(durable.Retry(durable.NoRetry)), durable.Retry(durable.NoRetry)), "Retry is given twice"},
		"Verify of other items":       {each(happened), "must be the step's own int"},
		"Undoes of items":             {each(durable.ItemOptions(durable.Undoes("x"))), "Undoes: it is for Compensate only"},
		"Verify of another type":      {step(happened), "must be the step's own int"},
		"Undoes":                      {step(durable.Undoes("x")), "Undoes: it is for Compensate only"},
		"Else of another type":        {receive(durable.Within(1), durable.Else("text")), "Else is a string"},
		"Else without Within":         {receive(durable.Else(1)), "has no Within"},
		"ElseCancel without Within":   {receive(durable.ElseCancel()), "has no Within"},
		"ElseStart with ID":           {receive(durable.Within(1), durable.ElseStart(kid, 1, durable.ID("x"))), "leave out ID"},
	} {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			c.build(g)
			return g.Step("out", constant(1))
		})
		_, err := durable.New(openFile(t), durable.Config{Workflows: []durable.Definition{w, kid}})
		if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), `node "b": `) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: want an error about node \"b\" with %q: %v", name, c.want, err)
		}
	}
}

// A node that is declared too late is an error of New and of each start, also if the engine is older.
func TestNodeDeclaredTooLateIsRefused(t *testing.T) {
	var late *durable.Graph[int]
	w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
		late = g
		return g.Step("a", constant(1))
	})
	e := engineWith(t, openFile(t), durable.Config{Workflows: []durable.Definition{w}})
	late.Step("b", constant(1))
	_, fromStart := w.Start(within(t), e, 1)
	_, fromNew := durable.New(openFile(t), durable.Config{Workflows: []durable.Definition{w}})
	for _, err := range []error{fromStart, fromNew} {
		if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), `node "b" is declared after`) {
			t.Errorf("the error is %v", err)
		}
	}
}

// A node that is declared too late in a graph that depends on its input fails the run at once, with an error that names the node, wherever it is
// declared.
func TestNodeDeclaredTooLateInAGraphFromItsInputFailsTheRun(t *testing.T) {
	kid := durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 0, nil })
	for where, declare := range map[string]func(g *durable.Graph[int], late func()) *durable.Node[int]{
		"step": func(g *durable.Graph[int], late func()) *durable.Node[int] {
			return g.Step("a", func(context.Context, *durable.NodeInput) (int, error) { late(); return 1, nil })
		},
		"each": func(g *durable.Graph[int], late func()) *durable.Node[int] {
			list := g.Step("list", constant([]int{1}))
			g.Each("a", list, func(context.Context, int, *durable.NodeInput) (int, error) { late(); return 1, nil })
			return g.Step("out", constant(1))
		},
		"condition": func(g *durable.Graph[int], late func()) *durable.Node[int] {
			out := g.Step("out", constant(1))
			g.Step("a", constant(1), durable.When(out, func(int) bool { late(); return true }))
			return out
		},
		"input of a child": func(g *durable.Graph[int], late func()) *durable.Node[int] {
			g.Child("a", kid, func(*durable.NodeInput) (int, error) { late(); return 1, nil })
			return g.Step("out", constant(1))
		},
	} {
		t.Run(where, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				w := durable.DefineGraphFrom("graph", func(g *durable.Graph[int], _ int) *durable.Node[int] {
					g.Receive[int]("never")
					return declare(g, func() { g.Step("b", constant(1)) })
				})
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, kid}})
				running(t, e)
				out, err := w.Call(within(t), e, 1, durable.ID("run"))
				if want := `node "b" is declared after the function that declares the nodes has returned: declare it in that function`; !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), want) {
					t.Errorf("%d, %v; want %s", out, err, want)
				}
			})
		})
	}
}
