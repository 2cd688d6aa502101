package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

// continued starts a run of the first graph, which waits in its node "gate", and continues it with the second one.
func continued(t *testing.T, s durable.Store, before, after func(g *durable.Graph[int]) *durable.Node[int], opts ...durable.WorkflowOption) (e *durable.Engine, wait func() (int, error)) {
	t.Helper()
	old := engineWith(t, s, durable.Config{Workflows: []durable.Definition{durable.DefineGraph("graph", before)}})
	stop := running(t, old)
	read(durable.DefineGraph("graph", before).Start(within(t), old, 1, durable.ID("run")))(t)
	awaitCheckpoint(t, old, "run", "gate/receive", "started")
	stop()
	w := durable.DefineGraph("graph", after, opts...)
	e = engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
	running(t, e)
	if err := e.Signal(within(t), "run", "gate", 1); err != nil && !errors.Is(err, durable.ErrState) { // it may have diverged
		t.Fatal(err)
	}
	return e, func() (int, error) { return w.Call(within(t), e, 1, durable.ID("run")) }
}

func gated(g *durable.Graph[int]) *durable.Node[int] {
	gate := g.Receive[int]("gate")
	gone := g.Step("gone", constant(1), durable.Needs(gate))
	return g.Step("last", func(_ context.Context, in *durable.NodeInput) (int, error) { return gone.Of(in), nil }, durable.Needs(gone))
}

// Newer code may add nodes, remove nodes that have not begun, and give these other needs. The run records the new shape.
func TestGraphRevision(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e, wait := continued(t, s, gated, func(g *durable.Graph[int]) *durable.Node[int] {
			added := g.Step("added", constant(40))
			gate := g.Receive[int]("gate")
			return g.Step("last", func(_ context.Context, in *durable.NodeInput) (int, error) { return gate.Of(in) + added.Of(in), nil }, durable.Needs(gate, added))
		})
		if out, err := wait(); out != 41 || err != nil {
			t.Errorf("%d, %v", out, err)
		}
		wantNodes(t, e, map[string]durable.NodeState{"added": durable.NodeCompleted, "gate": durable.NodeCompleted, "last": durable.NodeCompleted})
		if info := read(e.Graph(within(t), "run"))(t); info.ShapeRevision != 2 {
			t.Errorf("the revision is %d", info.ShapeRevision)
		}
	})
}

// If newer code changes or removes a node that has begun, the run is held, or diverges, and the node is named.
func TestGraphDivergence(t *testing.T) {
	for want, after := range map[string]func(g *durable.Graph[int]) *durable.Node[int]{
		`node "gate" has begun, and the code does not declare it`: func(g *durable.Graph[int]) *durable.Node[int] { return g.Step("last", constant(1)) },
		`node "gate" has begun as receive, and the code declares it as step`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Step("gate", constant(1))
		},
		`node "gate" has begun as receive, and the code declares it as receive that needs ["new"]`: func(g *durable.Graph[int]) *durable.Node[int] {
			return g.Receive[int]("gate", durable.Needs(g.Step("new", constant(1))))
		},
	} {
		_, wait := continued(t, openFile(t), gated, after, durable.OnDrift(durable.DriftContinues))
		if _, err := wait(); !errors.Is(err, durable.ErrDiverged) || !strings.Contains(err.Error(), want) {
			t.Errorf("want %s: %v", want, err)
		}
		e, _ := continued(t, openFile(t), gated, after)
		awaitStatus(t, e, "run", durable.StatusPaused)
		if info := read(e.Get(within(t), "run"))(t); !strings.Contains(info.Reason, want) {
			t.Errorf("want %s: the run is held because %s", want, info.Reason)
		}
	}
}

// A node whose list was empty has been executed like any other: newer code that would skip it does not change what followed it.
func TestGraphKeepsANodeWithoutItems(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		paid := 0
		build := func(skips bool) func(g *durable.Graph[int]) *durable.Node[int] {
			return func(g *durable.Graph[int]) *durable.Node[int] {
				list := g.Step("list", constant([]int{}))
				var opts []durable.NodeOption
				if skips {
					opts = append(opts, durable.When(list, func([]int) bool { return false }))
				}
				each := g.Each("each", list, func(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n, nil }, opts...)
				pay := g.Step("pay", func(_ context.Context, in *durable.NodeInput) (int, error) { paid++; return len(each.Of(in)), nil }, durable.Needs(each))
				return g.Receive[int]("gate", durable.Needs(pay))
			}
		}
		e, wait := continued(t, s, build(false), build(true))
		if out, err := wait(); out != 1 || err != nil || paid != 1 {
			t.Errorf("%d, %v; paid %d times", out, err, paid)
		}
		wantNodes(t, e, map[string]durable.NodeState{"list": durable.NodeCompleted, "each": durable.NodeCompleted, "pay": durable.NodeCompleted, "gate": durable.NodeCompleted})
	})
}

// A run that is not of a graph has none.
func TestNoGraph(t *testing.T) {
	s := openFile(t)
	plain := durable.Define("plain", func(*durable.Ctx, int) (int, error) { return 1, nil })
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{plain}})
	running(t, e)
	read(plain.Call(within(t), e, 1, durable.ID("plain")))(t)
	if _, err := e.Graph(within(t), "plain"); !errors.Is(err, durable.ErrNoGraph) {
		t.Errorf("%v", err)
	}
	if _, err := e.Edges(within(t), "plain", "a", durable.Outgoing); !errors.Is(err, durable.ErrNoGraph) {
		t.Errorf("%v", err)
	}
}

// A graph whose nodes, needs and members of choices are declared in another order is the same graph: the run continues with the shape
// that it has recorded, and the choices too.
func TestGraphInAnotherOrder(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e, wait := continued(t, s, func(g *durable.Graph[int]) *durable.Node[int] {
			a, b, slow := g.Step("a", constant(1)), g.Step("b", constant(2)), g.Receive[int]("slow")
			idle := g.Receive[int]("idle")
			first := g.Step("first", sum(slow, a), durable.NeedsAny(durable.CancelLosers, slow, a))
			gate := g.Receive[int]("gate", durable.Needs(first))
			later := g.Step("later", sum(idle, b), durable.NeedsAny(durable.CancelLosers, b, idle), durable.Needs(gate))
			return g.Step("out", sum(a, b, later), durable.Needs(a, b, later))
		}, func(g *durable.Graph[int]) *durable.Node[int] {
			idle := g.Receive[int]("idle")
			slow, b, a := g.Receive[int]("slow"), g.Step("b", constant(2)), g.Step("a", constant(1))
			first := g.Step("first", sum(slow, a), durable.NeedsAny(durable.CancelLosers, a, slow))
			gate := g.Receive[int]("gate", durable.Needs(first))
			later := g.Step("later", sum(idle, b), durable.NeedsAny(durable.CancelLosers, idle, b), durable.Needs(gate))
			return g.Step("out", sum(a, b, later), durable.Needs(later, b, a))
		})
		if out, err := wait(); out != 5 || err != nil {
			t.Errorf("%d, %v", out, err)
		}
		info := read(e.Graph(within(t), "run"))(t)
		if info.ShapeRevision != 1 || info.Nodes[0].Name != "a" {
			t.Errorf("revision %d, the first node is %q", info.ShapeRevision, info.Nodes[0].Name)
		}
		for _, edge := range info.Edges {
			if edge.Choice > 0 && edge.Won != (edge.From != "slow" && edge.From != "idle") {
				t.Errorf("%+v", edge)
			}
		}
	})
}

// If newer code gives other needs to a node that was skipped, and a node after it has acted on the skip, the run is held: it would do both.
func TestASkippedNodeThatOthersActedOnStaysSkipped(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var shipped atomic.Bool
		build := func(paysAgain bool) func(g *durable.Graph[int]) *durable.Node[int] {
			return func(g *durable.Graph[int]) *durable.Node[int] {
				paid := g.Step("charge", broken)
				if paysAgain {
					paid = g.Step("charge again", constant(1))
				}
				ship := g.Step("ship", func(context.Context, *durable.NodeInput) (int, error) { shipped.Store(true); return 1, nil }, durable.Needs(paid))
				tell := g.Step("tell that it is not shipped", constant(2), durable.After(ship))
				gate := g.Receive[int]("gate", durable.Needs(tell))
				return g.Step("last", constant(3), durable.Needs(gate))
			}
		}
		e, _ := continued(t, s, build(false), build(true))
		info := read(e.Get(within(t), "run"))(t)
		waitFor(t, func() bool { info = read(e.Get(within(t), "run"))(t); return info.Diverged })
		if want := `node "ship" was skipped, and the node "tell that it is not shipped", which comes after it, has begun`; !strings.Contains(info.Reason, want) || shipped.Load() {
			t.Errorf("the run is held because %q, and shipped: %v, want %q", info.Reason, shipped.Load(), want)
		}
	})
}

// If newer code gives other needs to a node, so that a node after it would not be skipped any more, the run is held if a third node has acted on
// that skip.
func TestANodeThatWasSkippedBehindASkippedOneStaysSkipped(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var mailed atomic.Bool
		build := func(paysAgain bool) func(g *durable.Graph[int]) *durable.Node[int] {
			return func(g *durable.Graph[int]) *durable.Node[int] {
				paid := g.Step("charge", broken)
				if paysAgain {
					paid = g.Step("charge again", constant(1))
				}
				ship := g.Step("ship", constant(1), durable.Needs(paid))
				mail := g.Step("mail", func(context.Context, *durable.NodeInput) (int, error) { mailed.Store(true); return 1, nil }, durable.Needs(ship))
				tell := g.Step("tell", constant(2), durable.After(mail))
				gate := g.Receive[int]("gate", durable.Needs(tell))
				return g.Step("last", constant(3), durable.Needs(gate))
			}
		}
		e, _ := continued(t, s, build(false), build(true))
		info := read(e.Get(within(t), "run"))(t)
		waitFor(t, func() bool {
			info = read(e.Get(within(t), "run"))(t)
			return info.Diverged || info.Status == durable.StatusCompleted
		})
		if want := `node "mail" was skipped because of node "ship", and the node "tell", which comes after it, has begun`; !strings.Contains(info.Reason, want) || mailed.Load() {
			t.Errorf("the run is held because %q, and mailed: %v, want %q", info.Reason, mailed.Load(), want)
		}
	})
}

// The reason for which a run is held names a loser that a choice has cancelled as what it is, and not as skipped.
func TestALoserThatNewerCodeChangesIsNamedAsALoser(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		build := func(wired bool) func(g *durable.Graph[int]) *durable.Node[int] {
			return func(g *durable.Graph[int]) *durable.Node[int] {
				never, won := g.Receive[int]("never"), g.Step("won", constant(1))
				needs := []durable.AnyNode{never}
				if wired {
					needs = append(needs, won)
				}
				lost := g.Step("lost", constant(1), durable.Needs(needs...))
				chosen := g.Step("chosen", constant(1), durable.NeedsAny(durable.CancelLosers, won, lost))
				after := g.Step("after", constant(2), durable.After(lost))
				gate := g.Receive[int]("gate", durable.Needs(chosen, after))
				return g.Step("last", constant(3), durable.Needs(gate))
			}
		}
		e, _ := continued(t, s, build(false), build(true))
		info := read(e.Get(within(t), "run"))(t)
		waitFor(t, func() bool { info = read(e.Get(within(t), "run"))(t); return info.Diverged })
		if want := `node "lost" was cancelled by a choice, and the node "after", which comes after it, has begun`; !strings.Contains(info.Reason, want) || strings.Contains(info.Reason, "skipped") {
			t.Errorf("the run is held because %q, want %q", info.Reason, want)
		}
	})
}
