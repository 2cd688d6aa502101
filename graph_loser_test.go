package durable_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// wantStates checks the states of nodes of the run, as Engine.Graph shows them, and as the view shows them for all its generations.
func wantStates(t *testing.T, e *durable.Engine, db *sql.DB, prefix string, want map[string]durable.NodeState) {
	t.Helper()
	got := nodesOf(t, e)
	for node, state := range want {
		if got[node] != state {
			t.Errorf("Graph: node %q is %s, want %s", node, got[node], state)
		}
		query := `SELECT DISTINCT coalesce(state, 'NULL') FROM ` + prefix + `nodes WHERE name = '` + node + `'`
		if view := textsOf(t, db, query); len(view) != 1 || view[0] != string(state) {
			t.Errorf("view: node %q is %s, want %s", node, view, state)
		}
	}
}

// endOf returns the function of a node that says how the given node has ended.
func endOf(n *durable.Node[int]) func(context.Context, *durable.NodeInput) (string, error) {
	return func(_ context.Context, in *durable.NodeInput) (string, error) {
		v, err := n.Get(in)
		if e, ok := errors.AsType[*durable.NodeError](err); ok {
			return string(e.State) + fmt.Sprint(" ", errors.Is(err, durable.ErrCancelled)), nil
		}
		return fmt.Sprint(v, err), nil
	}
}

// A choice cancels a loser that has not begun at once and for good: what begins after the loser does not wait for the nodes that the loser
// needs, also in another process, and the loser stays cancelled if they fail.
func TestLoserThatHasNotBegunIsCancelledAtOnce(t *testing.T) {
	withViews(t, func(t *testing.T, s durable.Store, db *sql.DB, prefix string) {
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[string] {
			won := g.Step("won", constant(1))
			gate, go2 := g.Receive[int]("gate"), g.Receive[int]("go")
			bad := g.Step("bad", broken, durable.Needs(gate))
			lost := g.Step("lost", constant(1), durable.Needs(bad))
			chooser := g.Step("chooser", constant(1), durable.NeedsAny(durable.KeepLosers, bad))
			other := g.Step("other", constant(1), durable.Needs(bad), durable.OnUnmetNeed(durable.RunAnyway))
			any := g.Step("any", constant(1), durable.NeedsAny(durable.CancelLosers, won, lost, chooser))
			first, second := g.Step("after lost", endOf(lost), durable.After(lost)), g.Step("after chooser", endOf(chooser), durable.After(chooser))
			third := g.Step("later", endOf(lost), durable.After(lost, go2))
			last := g.Step("last", endOf(lost), durable.After(lost, bad))
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (string, error) {
				return fmt.Sprint(first.Of(in), ", ", second.Of(in), ", ", third.Of(in), ", ", last.Of(in)), nil
			}, durable.Needs(any, other, first, second, third, last))
		})
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}})
		stop := running(t, e)
		orFail(w.Start(within(t), e, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "after lost/step", "completed")
		awaitCheckpoint(t, e, "run", "after chooser/step", "completed")
		wantStates(t, e, db, prefix, map[string]durable.NodeState{"lost": "cancelled", "chooser": "cancelled", "gate": "running"})
		stop()
		e = engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}})
		defer running(t, e)()
		orFail(0, e.Signal(within(t), "run", "go", 1))(t)
		awaitCheckpoint(t, e, "run", "later/step", "completed")
		orFail(0, e.Signal(within(t), "run", "gate", 1))(t)
		out, err := orFail(w.Handle(within(t), e, "run"))(t).Result(within(t))
		if want := "cancelled true, cancelled true, cancelled true, cancelled true"; out != want || err != nil {
			t.Errorf("%q, %v; want %q", out, err, want)
		}
		wantStates(t, e, db, prefix, map[string]durable.NodeState{"lost": "cancelled", "chooser": "cancelled", "bad": "failed", "last": "completed"})
	})
}

// A loser and the node that only it needs are cancelled the same after a crash at each write, whether or not that node has begun: the node
// surely has begun after the delay, and races without it.
func TestLoserBehindALoserCrashesEverywhere(t *testing.T) {
	graph := func(delays ...durable.NodeOption) *durable.Workflow[int, string] {
		return durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[string] {
			phone := g.Receive[int]("phone")
			parse := g.Step("parse", sum(phone), durable.Needs(phone))
			answer := g.Step("answer", constant(1), durable.NeedsAny(durable.CancelLosers, parse, g.Step("book", constant(1), delays...)))
			first := g.Step("first", endOf(phone), durable.Needs(answer), durable.After(phone))
			second := g.Step("second", endOf(parse), durable.Needs(answer), durable.After(parse))
			return g.Step("out", func(_ context.Context, in *durable.NodeInput) (string, error) {
				if first.Of(in) != "cancelled true" || second.Of(in) != "cancelled true" {
					return "", errBroken
				}
				return "", nil
			}, durable.Needs(first, second))
		})
	}
	durabletest.CrashEverywhere(t, graph(durable.Delay(time.Second)), 1)
	durabletest.CrashEverywhere(t, graph(), 1, durabletest.VaryingSteps("answer/choice 1"))
}
