package durable_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// forever is a workflow that waits for a signal that nobody sends.
var forever = durable.Define("forever", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })

func anInput(*durable.NodeInput) (int, error) { return 1, nil }

// The losers of a choice end, with their children, and so do the nodes that only they need. What another node needs continues.
func TestGraphEndsWhatOnlyLosersNeed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[string] {
			shared := g.Receive[int]("shared")
			feed := g.Child("feed", forever, anInput)
			slow := g.Step("slow", constant(1), durable.Needs(feed))
			slower := g.Step("slower", constant(1), durable.Needs(shared))
			quick := g.Step("quick", constant(5))
			first := g.Step("first", func(_ context.Context, in *durable.NodeInput) (string, error) {
				v, won := quick.Get(in)
				_, lost := slow.Get(in)
				return fmt.Sprint(v, won, " ", lost), nil
			}, durable.NeedsAny(durable.CancelLosers, slow, slower, quick))
			return g.Step("join", func(_ context.Context, in *durable.NodeInput) (string, error) {
				return fmt.Sprint(first.Of(in), " ", shared.Of(in)), nil
			}, durable.Needs(first, shared))
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, forever}})
		running(t, e)
		run := read(w.Start(within(t), e, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "first/step", "completed")
		wantNodes(t, e, map[string]durable.NodeState{
			"shared": durable.NodeRunning, "feed": durable.NodeCancelled, "slow": durable.NodeCancelled, "slower": durable.NodeCancelled,
			"quick": durable.NodeCompleted, "first": durable.NodeCompleted, "join": durable.NodeWaiting,
		})
		for _, n := range read(e.Graph(within(t), "run"))(t).Nodes {
			if n.Name == "feed" && n.Child != "" {
				awaitStatus(t, e, n.Child, durable.StatusCancelled)
			}
		}
		for _, edge := range read(e.Edges(within(t), "run", "first", durable.Incoming))(t) {
			if edge.Won != (edge.From == "quick") || edge.Choice != 1 || edge.K != 1 || edge.Of != 3 {
				t.Errorf("%+v", edge)
			}
		}
		if err := e.Signal(within(t), "run", "shared", 9); err != nil {
			t.Fatal(err)
		}
		out, err := run.Result(within(t))
		if want := `5 <nil> node "slow" has no value: durable: the node is not among the winners 9`; out != want || err != nil {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
		if got := nodesOf(t, e); got["slower"] != durable.NodeCancelled {
			t.Errorf("%v", got)
		}
	})
}

// A quorum that cannot be had any more is a need that is not met; with KeepLosers the others continue.
func TestGraphQuorum(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e, out, err := graphOf(t, s, func(g *durable.Graph[int]) *durable.Node[string] {
			a, b, c := g.Step("a", constant(1)), g.Step("b", broken), g.Step("c", broken)
			d := g.Step("d", constant(4), durable.Delay(10*time.Millisecond))
			two := g.Step("two", constant("never"), durable.NeedsQuorum(2, durable.CancelLosers, a, b, c))
			one := g.Step("one", constant("yes"), durable.NeedsAny(durable.KeepLosers, a, d))
			return g.Step("join", func(_ context.Context, in *durable.NodeInput) (string, error) {
				_, err := two.Get(in)
				v, _ := one.Get(in)
				return fmt.Sprint(v, " ", err), nil
			}, durable.After(two, one, d))
		})
		if want := `yes node "two" has no value: durable: the node was skipped: its needs are not met, because of node "b"`; out != want || err != nil {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
		wantNodes(t, e, map[string]durable.NodeState{
			"a": durable.NodeCompleted, "b": durable.NodeFailed, "c": durable.NodeFailed, "d": durable.NodeCompleted,
			"two": durable.NodeSkipped, "one": durable.NodeCompleted, "join": durable.NodeCompleted,
		})
	})
}

// A choice that is recorded needs its losers no more, and a node that has ended needs nothing, so the last choice that can do without a
// node ends it.
func TestGraphEndsWhatNobodyNeedsAnyMore(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for what, loser := range map[string]func(g *durable.Graph[int], never *durable.Node[int]) *durable.Node[int]{
			"the loser of two choices": func(_ *durable.Graph[int], never *durable.Node[int]) *durable.Node[int] { return never },
			"what a loser of another needs": func(g *durable.Graph[int], never *durable.Node[int]) *durable.Node[int] {
				return g.Step("loser", sum(never), durable.Needs(never))
			},
		} {
			w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
				never, gate := g.Receive[int]("never"), g.Receive[int]("gate")
				a := g.Step("a", constant(1))
				first := g.Step("first", sum(a), durable.Needs(gate), durable.NeedsAny(durable.CancelLosers, a, loser(g, never)))
				b := g.Step("b", constant(2), durable.Needs(g.Receive[int]("go")))
				second := g.Step("second", sum(b), durable.NeedsAny(durable.CancelLosers, b, never))
				return g.Step("out", sum(first, second), durable.Needs(first, second))
			})
			e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}})
			stop := running(t, e)
			run := read(w.Start(within(t), e, 1, durable.ID(what)))(t)
			awaitCheckpoint(t, e, what, "first/choice 1", "completed")
			state := func() (of durable.NodeState) {
				for _, n := range read(e.Graph(within(t), what))(t).Nodes {
					if n.Name == "never" {
						of = n.State
					}
				}
				return of
			}
			waitFor(t, func() bool { return state() == durable.NodeRunning })
			orFail(0, e.Signal(within(t), what, "go", 1))(t)
			awaitCheckpoint(t, e, what, "second/choice 1", "completed")
			if got := state(); got != durable.NodeCancelled {
				t.Errorf("%s: the node is %s, want %s", what, got, durable.NodeCancelled)
			}
			orFail(0, e.Signal(within(t), what, "gate", 1))(t)
			if out, err := run.Result(within(t)); out != 3 || err != nil {
				t.Errorf("%s: %d, %v", what, out, err)
			}
			stop()
		}
	})
}

// sum returns the function of a node that adds the values of the nodes that have one.
func sum(nodes ...*durable.Node[int]) func(context.Context, *durable.NodeInput) (int, error) {
	return func(_ context.Context, in *durable.NodeInput) (total int, err error) {
		for _, n := range nodes {
			if v, err := n.Get(in); err == nil {
				total += v
			}
		}
		return total, nil
	}
}

// A diamond with a list, a condition and a failed node ends the same after a crash at each write.
func TestGraphDiamondCrashesEverywhere(t *testing.T) {
	diamond := durable.DefineGraph("diamond", func(g *durable.Graph[int]) *durable.Node[int] {
		top := g.Step("top", constant([]int{1, 2}))
		left := g.Each("left", top, func(_ context.Context, n int, _ *durable.NodeInput) (int, error) { return n, nil })
		right := g.Step("right", broken, durable.When(top, func(v []int) bool { return len(v) == 2 }))
		g.Step("not", constant(1), durable.When(top, func(v []int) bool { return len(v) > 2 }))
		other := g.Step("other", constant(4), durable.Needs(top))
		return g.Step("bottom", func(ctx context.Context, in *durable.NodeInput) (int, error) {
			n, err := sum(right, other)(ctx, in)
			return n + len(left.Of(in)), err
		}, durable.Needs(left, right, other), durable.OnUnmetNeed(durable.RunAnyway))
	})
	durabletest.CrashEverywhere(t, diamond, 1)
}

// A quorum whose losers have children ends the same after a crash at each write.
func TestGraphQuorumCrashesEverywhere(t *testing.T) {
	quorum := durable.DefineGraph("quorum", func(g *durable.Graph[int]) *durable.Node[int] {
		a, b := g.Step("a", constant(1)), g.Step("b", constant(2), durable.Delay(time.Second))
		feed := g.Child("feed", forever, anInput)
		c := g.Step("c", constant(4), durable.Needs(feed))
		d := g.Child("d", forever, anInput, durable.Needs(a))
		enough := g.Step("enough", sum(a, b, c, d), durable.NeedsQuorum(2, durable.CancelLosers, a, b, c, d))
		return g.Step("report", func(_ context.Context, in *durable.NodeInput) (int, error) { return enough.Of(in), nil }, durable.Needs(enough))
	})
	durabletest.CrashEverywhere(t, quorum, 1, durabletest.Workflows(forever))
}

// A node that fails the run ends the others the same after a crash at each write.
func TestGraphFailureCrashesEverywhere(t *testing.T) {
	strict := durable.DefineGraph("strict", func(g *durable.Graph[int]) *durable.Node[int] {
		feed := g.Child("feed", forever, anInput)
		bad := g.Step("bad", broken, durable.Delay(time.Second))
		return g.Step("output", constant(1), durable.Needs(feed, bad), durable.OnUnmetNeed(durable.FailRun))
	})
	durabletest.CrashEverywhere(t, strict, 1, durabletest.Workflows(forever))
}

// A graph that is built from its input ends the same after a crash at each write.
func TestGraphFromInputCrashesEverywhere(t *testing.T) {
	chain := durable.DefineGraphFrom("chain", func(g *durable.Graph[int], length int) *durable.Node[int] {
		last := g.Step("0", constant(1))
		for i := range length {
			before := last
			last = g.Step(fmt.Sprint(i+1), func(_ context.Context, in *durable.NodeInput) (int, error) { return before.Of(in) + 1, nil }, durable.Needs(before))
		}
		return last
	})
	durabletest.CrashEverywhere(t, chain, 3)
}
