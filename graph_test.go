package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// constant returns the function of a node that returns the value.
func constant[T any](v T) func(context.Context, *durable.NodeInput) (T, error) {
	return func(context.Context, *durable.NodeInput) (T, error) { return v, nil }
}

var errBroken = durable.RegisterError("graph_test.broken", errors.New("broken"))

func broken(context.Context, *durable.NodeInput) (int, error) { return 0, errBroken }

// graphOf executes a run of the graph, and returns its handle, its engine and its result.
func graphOf[O any](t *testing.T, s durable.Store, build func(g *durable.Graph[int]) *durable.Node[O], others ...durable.Definition) (*durable.Engine, O, error) {
	t.Helper()
	w := durable.DefineGraph("graph", build)
	e := engineWith(t, s, durable.Config{Workflows: append(others, w)})
	running(t, e)
	out, err := w.Call(within(t), e, 7, durable.ID("run"))
	return e, out, err
}

// nodesOf returns the state of each node of the run.
func nodesOf(t *testing.T, e *durable.Engine) map[string]durable.NodeState {
	t.Helper()
	info, err := e.Graph(within(t), "run")
	if err != nil {
		t.Fatal(err)
	}
	states := make(map[string]durable.NodeState)
	for _, n := range info.Nodes {
		states[n.Name] = n.State
	}
	return states
}

func wantNodes(t *testing.T, e *durable.Engine, want map[string]durable.NodeState) {
	t.Helper()
	got := nodesOf(t, e)
	for node, state := range want {
		if got[node] != state {
			t.Errorf("node %q is %s, want %s", node, got[node], state)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %d nodes, want %d: %v", len(got), len(want), got)
	}
}

// A graph with a node of each kind gives each node the values of those that it needs.
func TestGraphOfEachKind(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		double := durable.Define("double", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("double", func(context.Context) (int, error) { return 2 * n, nil })
		})
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[string] {
			list := g.Step("list", func(_ context.Context, in *durable.NodeInput) ([]int, error) { return []int{1, 2, g.Input(in)}, nil })
			squares := g.Each("squares", list, func(_ context.Context, n int, in *durable.NodeInput) (int, error) { return n * n, nil }, durable.Parallel(2))
			doubles := g.EachChild("doubles", squares, double)
			first := g.Child("first", double, func(in *durable.NodeInput) (int, error) { return squares.Of(in)[0], nil }, durable.Needs(squares), durable.Delay(time.Millisecond))
			word := g.Receive[string]("word", durable.After(list))
			return g.Step("join", func(_ context.Context, in *durable.NodeInput) (string, error) {
				return fmt.Sprint(list.Of(in), squares.Of(in), doubles.Of(in), first.Of(in), word.Of(in)), nil
			}, durable.Needs(list, squares, doubles, first, word), durable.Delay(time.Millisecond))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, double}})
		running(t, e)
		run, err := w.Start(within(t), e, 3, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		awaitCheckpoint(t, e, "run", "doubles/children/2", "completed")
		if err := e.Signal(within(t), "run", "word", "go"); err != nil {
			t.Fatal(err)
		}
		out, err := run.Result(within(t))
		if want := "[1 2 3] [1 4 9] [2 8 18] 2go"; out != want || err != nil {
			t.Fatalf("%q, %v; want %q", out, err, want)
		}
		info := read(e.Graph(within(t), "run"))(t)
		if info.ShapeRevision != 1 || info.Status != durable.StatusCompleted || len(info.Edges) != 9 {
			t.Errorf("revision %d, %s, %d edges", info.ShapeRevision, info.Status, len(info.Edges))
		}
		for _, n := range info.Nodes {
			if n.State != durable.NodeCompleted || n.StartedAt.IsZero() || n.EndedAt.IsZero() || n.Attempts == 0 || n.Err != nil {
				t.Errorf("%+v", n)
			}
			if lists := n.Name == "squares" || n.Name == "doubles"; lists != (n.Items != nil) || lists && *n.Items != (durable.NodeItemCounts{Total: 3, Completed: 3}) {
				t.Errorf("node %q has the items %+v", n.Name, n.Items)
			}
			if n.Name == "first" {
				if child := read(e.Get(within(t), n.Child))(t); child.Workflow != "double" {
					t.Errorf("the child is %+v", child)
				}
			}
		}
		if edges := read(e.Edges(within(t), "run", "squares", durable.Outgoing))(t); len(edges) != 3 || edges[0].To != "doubles" || !edges[0].Over {
			t.Errorf("%+v", edges)
		}
		wanted := durable.GraphEdge{From: "list", To: "word", After: true}
		if edge := read(e.Edge(within(t), "run", wanted))(t); edge.GraphEdge != wanted || edge.State != durable.NodeCompleted {
			t.Errorf("%+v", edge)
		}
		wanted.After = false // it needs no value of the node
		if _, err := e.Edge(within(t), "run", wanted); !errors.Is(err, durable.ErrNoGraph) || !strings.Contains(err.Error(), `from "list" to "word"`) {
			t.Errorf("%v", err)
		}
		if edges := read(e.Edges(within(t), "run", "word", durable.Incoming))(t); len(edges) != 1 || edges[0].From != "list" || !edges[0].After {
			t.Errorf("%+v", edges)
		}
	})
}

// What follows from a failed node is a matter of the policies of those that need it.
func TestGraphPolicies(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var began atomic.Int32
		e, out, err := graphOf(t, s, func(g *durable.Graph[int]) *durable.Node[string] {
			bad := g.Step("bad", broken)
			skipped := g.Step("skipped", func(context.Context, *durable.NodeInput) (int, error) { began.Add(1); return 1, nil }, durable.Needs(bad))
			below := g.Step("below", constant(1), durable.Needs(skipped))
			small := g.Step("small", constant(3), durable.Needs())
			big := g.Step("big", constant(1), durable.When(small, func(n int) bool { return n > 5 }))
			after := g.Step("after", func(_ context.Context, in *durable.NodeInput) (string, error) {
				_, failed := bad.Get(in)
				_, gone := below.Get(in)
				return fmt.Sprint(errors.Is(failed, errBroken), errors.Is(gone, durable.ErrNodeSkipped)), nil
			}, durable.After(bad, below))
			return g.Step("anyway", func(_ context.Context, in *durable.NodeInput) (string, error) {
				_, err := big.Get(in)
				return fmt.Sprint(after.Of(in), small.Of(in), errors.Is(err, durable.ErrNodeSkipped)), nil
			}, durable.Needs(after, small, big), durable.OnUnmetNeed(durable.RunAnyway))
		})
		if want := "true true3 true"; out != want || err != nil {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
		wantNodes(t, e, map[string]durable.NodeState{
			"bad": durable.NodeFailed, "skipped": durable.NodeSkipped, "below": durable.NodeSkipped, "small": durable.NodeCompleted,
			"big": durable.NodeSkipped, "after": durable.NodeCompleted, "anyway": durable.NodeCompleted,
		})
		if n := began.Load(); n != 0 {
			t.Errorf("the node that was skipped was executed %d times", n)
		}
		if !strings.Contains(fmt.Sprint(historyOf(t, e, "run")), "big/skip") {
			t.Error("the skip by a condition is not recorded")
		}
	})
}

// A run whose output has no value fails with all failures that led there, and with no other.
func TestGraphWithoutOutput(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e, _, err := graphOf(t, s, func(g *durable.Graph[int]) *durable.Node[int] {
			left, right, beside := g.Step("left", broken), g.Step("right", broken), g.Step("beside", broken)
			g.Step("other", constant(1), durable.Needs(beside))
			l, r := g.Step("l", constant(1), durable.Needs(left)), g.Step("r", constant(1), durable.Needs(left, right))
			return g.Step("join", constant(1), durable.Needs(l, r))
		})
		if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), `node "left"`) || !strings.Contains(err.Error(), `node "right"`) || strings.Contains(err.Error(), "beside") {
			t.Errorf("%v", err)
		}
		if got := nodesOf(t, e); got["join"] != durable.NodeSkipped || got["other"] != durable.NodeSkipped {
			t.Errorf("%v", got)
		}
	})
}

// With FailRun a failure ends what is under way, and the run has that failure although its output could be had.
func TestGraphFailsAtOnce(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e, _, err := graphOf(t, s, func(g *durable.Graph[int]) *durable.Node[int] {
			g.Receive[int]("never")
			g.Step("far off", constant(1), durable.Delay(time.Hour))
			bad := g.Step("bad", broken)
			g.Step("strict", constant(1), durable.Needs(bad), durable.OnUnmetNeed(durable.FailRun))
			return g.Step("output", constant(1))
		})
		if !errors.Is(err, errBroken) || !strings.Contains(err.Error(), `node "strict" fails the run: node "bad" failed`) {
			t.Errorf("%v", err)
		}
		got := nodesOf(t, e)
		if got["never"] != durable.NodeCancelled || got["far off"] != durable.NodeCancelled || got["bad"] != durable.NodeFailed || got["strict"] != durable.NodeFailed {
			t.Errorf("%v", got)
		}
	})
}

// A value that is read without a declared need fails the run at once, with both names, in a step, for an item and for a child.
func TestGraphUndeclaredNeed(t *testing.T) {
	child := durable.Define("child", func(*durable.Ctx, int) (int, error) { return 0, nil })
	for what, declare := range map[string]func(g *durable.Graph[int], a *durable.Node[int]) *durable.Node[int]{
		"step": func(g *durable.Graph[int], a *durable.Node[int]) *durable.Node[int] {
			return g.Step("b", func(_ context.Context, in *durable.NodeInput) (int, error) { return a.Of(in), nil }, durable.Retry(durable.Exponential(time.Hour, time.Hour, 5)))
		},
		"child": func(g *durable.Graph[int], a *durable.Node[int]) *durable.Node[int] {
			return g.Child("b", child, func(in *durable.NodeInput) (int, error) { return a.Get(in) })
		},
		"without value": func(g *durable.Graph[int], a *durable.Node[int]) *durable.Node[int] {
			bad := g.Step("bad", broken)
			return g.Step("b", func(_ context.Context, in *durable.NodeInput) (int, error) { return a.Of(in) + bad.Of(in), nil }, durable.Needs(a), durable.After(bad))
		},
		"each": func(g *durable.Graph[int], a *durable.Node[int]) *durable.Node[int] {
			list := g.Step("items", constant([]int{1}))
			g.Each("b", list, func(_ context.Context, _ int, in *durable.NodeInput) (int, error) { return a.Of(in), nil })
			return a
		},
	} {
		t.Run(what, func(t *testing.T) {
			_, _, err := graphOf(t, openFile(t), func(g *durable.Graph[int]) *durable.Node[int] {
				g.Receive[int]("never")
				return declare(g, g.Step("a", constant(1)))
			}, child)
			if !errors.Is(err, durable.ErrUndeclaredNeed) || !strings.Contains(err.Error(), `node "b" read the value of`) {
				t.Errorf("%v", err)
			}
		})
	}
}

// An undeclared need of a child graph is the failure of its node, like any other, and so is an input that cannot be had because of it.
func TestGraphUndeclaredNeedOfAChild(t *testing.T) {
	wrong := durable.DefineGraph("wrong", func(g *durable.Graph[int]) *durable.Node[int] {
		a := g.Step("a", constant(1))
		return g.Step("b", func(_ context.Context, in *durable.NodeInput) (int, error) { return a.Of(in), nil })
	})
	e, out, err := graphOf(t, openStore(t), func(g *durable.Graph[int]) *durable.Node[string] {
		bad := g.Child("bad", wrong, anInput)
		next := g.Child("next", wrong, func(in *durable.NodeInput) (int, error) { return bad.Get(in) }, durable.After(bad))
		slow := g.Step("slow", constant(1), durable.Needs(g.Step("first", constant(1), durable.After(next))))
		return g.Step("output", func(_ context.Context, in *durable.NodeInput) (string, error) {
			_, err := bad.Get(in)
			_, inputErr := next.Get(in)
			return fmt.Sprint(errors.Is(err, durable.ErrUndeclaredNeed), errors.Is(inputErr, durable.ErrUndeclaredNeed), slow.Of(in)), nil
		}, durable.Needs(bad, next, slow), durable.OnUnmetNeed(durable.RunAnyway))
	}, wrong)
	if out != "true true 1" || err != nil {
		t.Errorf("%q, %v", out, err)
	}
	wantNodes(t, e, map[string]durable.NodeState{
		"bad": durable.NodeFailed, "next": durable.NodeFailed, "first": durable.NodeCompleted, "slow": durable.NodeCompleted, "output": durable.NodeCompleted,
	})
}

// A run that is cancelled while nodes wait ends cancelled, and a timeout expires it.
func TestGraphCancelled(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			a := g.Step("a", constant(1))
			never := g.Receive[int]("never", durable.Needs(a))
			return g.Step("b", constant(1), durable.Needs(never))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		running(t, e)
		read(w.Start(within(t), e, 1, durable.ID("run")))(t)
		awaitStatus(t, e, "run", durable.StatusWaiting)
		wantNodes(t, e, map[string]durable.NodeState{"a": durable.NodeCompleted, "never": durable.NodeRunning, "b": durable.NodeWaiting})
		must(t)(e.Cancel(within(t), "run"))
		awaitStatus(t, e, "run", durable.StatusCancelled)
		wantNodes(t, e, map[string]durable.NodeState{"a": durable.NodeCompleted, "never": durable.NodeCancelled, "b": durable.NodeSkipped})
		if _, err := w.Call(within(t), e, 1, durable.ID("short"), durable.Timeout(50*time.Millisecond)); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("%v", err)
		}
		if _, err := e.Graph(within(t), "nobody"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("%v", err)
		}
	})
}
