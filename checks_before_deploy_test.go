package durable_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// ones returns a step function that returns one.
func ones(context.Context) (int, error) { return 1, nil }

// keyedItems returns a workflow that executes a Map with a key for each item, and waits for the signal go.
func keyedItems(items ...string) *durable.Workflow[int, string] {
	return waits(func(c *durable.Ctx) error {
		_, err := c.Map("items", items, func(_ context.Context, s string) (string, error) { return s, nil }, durable.Key(func(s string) string { return s }))
		return err
	}, new(stepCounts).steps("last"))
}

// smallGraph returns a graph that waits for the signal go, with or without a node that was added later.
func smallGraph(isLarger bool) *durable.Workflow[int, int] {
	return durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
		node := func(context.Context, *durable.NodeInput) (int, error) { return 1, nil }
		needs := []durable.AnyNode{g.Step("first", node), g.Receive[int]("go")}
		if isLarger {
			needs = append(needs, g.Step("more", node, durable.Needs(needs[0])))
		}
		return g.Step("last", node, durable.Needs(needs...))
	})
}

// sleeper returns a workflow that sleeps while a branch waits for the signal go.
func sleeper(before func(*durable.Ctx) error) *durable.Workflow[int, string] {
	return durable.Define("sleeper", func(c *durable.Ctx, _ int) (string, error) {
		if err := before(c); err != nil {
			return "", err
		}
		c.Go("side", func(c *durable.Ctx) (int, error) {
			if _, err := c.Receive[int]("go"); err != nil {
				return 0, err
			}
			return c.Step("last", ones)
		})
		return "", c.Sleep("nap", time.Hour)
	})
}

// What Preflight, ReplayExport and durabletest.Replay report of a changed workflow is what a worker does with the run.
func TestChecksBeforeADeployReportWhatAWorkerDoes(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		none := func(*durable.Ctx) error { return nil }
		asks := func(c *durable.Ctx) error { _, err := c.Patched("new"); return err }
		steps := new(stepCounts).steps
		for name, test := range map[string]struct {
			before, after durable.Definition
			held          string // the call at which the run is held; empty if the code fits
		}{
			"a Patched that is no longer needed": {sleeper(asks), sleeper(none), ""},
			"a node added to a graph":            {smallGraph(false), smallGraph(true), ""},
			"an item added to a Map with keys":   {keyedItems("b"), keyedItems("a", "b"), ""},
			"a step removed":                     {waits(steps("gone"), steps("last")), waits(none, steps("last")), "go"},
			"a step removed with Retired":        {waits(steps("gone"), steps("last")), waits(none, steps("last"), durable.Retired("gone")), ""},
		} {
			t.Run(name, func(t *testing.T) {
				stop := atVersion(t, s, "v1", test.before)
				client := engineOn(t, s)
				start := func(w durable.Definition) (string, error) {
					if g, ok := w.(*durable.Workflow[int, int]); ok {
						run, err := g.Start(within(t), client, 0, durable.ID(name))
						return run.ID(), err
					}
					run, err := w.(*durable.Workflow[int, string]).Start(within(t), client, 0, durable.ID(name))
					return run.ID(), err
				}
				id := read(start(test.before))(t)
				awaitStatus(t, client, id, durable.StatusWaiting)
				stop()
				document := read(client.Export(within(t), id, durable.DecodePayloads()))(t)
				next := engineWith(t, s, durable.Config{Workflows: []durable.Definition{test.after}, Version: "v2"})
				found := read(next.Preflight(within(t), durable.Filter{Workflow: test.after.Name()}))(t)
				if i := slices.IndexFunc(found.Runs, func(r durable.PreflightRun) bool { return r.ID == id }); i < 0 || found.Runs[i].Call != test.held || found.Runs[i].Diverged != (test.held != "") {
					t.Errorf("Preflight: %+v", found)
				}
				if got, err := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{test.after}}).ReplayExport(within(t), document); err != nil || got.Call != test.held || got.Diverged != (test.held != "") {
					t.Errorf("ReplayExport: %+v, %v", got, err)
				}
				if got := durabletest.Replay(t, test.after, document); got.Step != test.held || got.Diverged != (test.held != "") {
					t.Errorf("Replay: %+v", got)
				}
				stop = running(t, next)
				defer stop()
				if err := client.Signal(within(t), id, "go", 1); err != nil {
					t.Fatal(err)
				}
				held := false
				waitFor(t, func() bool {
					held = read(client.Get(within(t), id))(t).Diverged
					for _, c := range historyOf(t, client, id) {
						if strings.Contains("/"+c.Name+"/", "/last/") && c.Status == durable.CheckpointCompleted {
							return true
						}
					}
					return held
				})
				if held != (test.held != "") {
					t.Errorf("a worker holds the run: %t", held)
				}
			})
		}
	})
}
