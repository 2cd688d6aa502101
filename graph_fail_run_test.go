package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
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

// If newer code adds nodes to a run after it was recorded that the run fails, or gives other needs to a node that was skipped, these nodes do not
// begin.
func TestNodesAddedAfterTheFailureOfTheRunDoNotBegin(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var began atomic.Int32
		begins := func(context.Context, *durable.NodeInput) (int, error) { return int(began.Add(1)), nil }
		hold := make(chan struct{})
		build := func(newer bool) *durable.Workflow[int, int] {
			return durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
				slow := g.Step("slow", func(context.Context, *durable.NodeInput) (int, error) { <-hold; return 1, nil })
				bad := g.Step("bad", broken)
				g.Step("strict", begins, durable.Needs(bad), durable.OnUnmetNeed(durable.FailRun))
				if newer {
					g.Step("skipped", begins)
					any := g.Step("any", begins, durable.NeedsAny(durable.KeepLosers, bad, g.Step("first", begins)))
					g.Step("fallback", begins, durable.Needs(any), durable.OnUnmetNeed(durable.RunAnyway))
					g.Step("stricter", begins, durable.Needs(bad), durable.OnUnmetNeed(durable.FailRun))
					g.Receive[int]("answer")
				} else {
					g.Step("skipped", begins, durable.Needs(bad))
				}
				return g.Step("out", constant(1), durable.Needs(slow))
			})
		}
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{build(false)}})
		stop := running(t, e)
		run := orFail(build(false).Start(within(t), e, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, e, "run", "strict/fails with bad", "completed")
		must(t)(e.Pause(within(t), "run"))
		hold <- struct{}{}
		awaitStatus(t, e, "run", durable.StatusPaused)
		stop()
		e = engineWith(t, s, durable.Config{Workflows: []durable.Definition{build(true)}})
		running(t, e)
		must(t)(e.Resume(within(t), "run"))
		if _, err := orFail(build(true).Handle(within(t), e, run.ID()))(t).Result(within(t)); !errors.Is(err, errBroken) || !strings.Contains(err.Error(), `node "strict" fails the run`) {
			t.Fatal(err)
		}
		if began.Load() != 0 {
			t.Errorf("%d nodes began after the failure of the run", began.Load())
		}
		wantNodes(t, e, map[string]durable.NodeState{"slow": durable.NodeCompleted, "bad": durable.NodeFailed, "strict": durable.NodeFailed, "skipped": durable.NodeSkipped, "out": durable.NodeCancelled})
	})
}
