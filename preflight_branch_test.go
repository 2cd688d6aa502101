package durable_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// functionWaits are the ways in which a workflow function waits while a branch replays.
var functionWaits = map[string]func(c *durable.Ctx) error{
	"receive": func(c *durable.Ctx) error { _, err := c.Receive[int]("go"); return err },
	"sleep":   func(c *durable.Ctx) error { return c.Sleep("nap", time.Hour) },
	"child":   func(c *durable.Ctx) error { _, err := c.Child("kid", neverEnding, 1); return err },
}

var neverEnding = durable.Define("never ending", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })

// besideBranch is a workflow whose function waits while its branch "side" executes the code.
func besideBranch(wait, side func(c *durable.Ctx) error, opts ...durable.WorkflowOption) *durable.Workflow[int, string] {
	return durable.Define("beside", func(c *durable.Ctx, _ int) (string, error) {
		f := c.Go("side", func(c *durable.Ctx) (int, error) { return 0, side(c) })
		if err := wait(c); err != nil {
			return "", err
		}
		_, err := f.Wait()
		return "done", err
	}, opts...)
}

// exportOfWaiting executes a run of the workflow in a process until it waits and has the number of completed steps. It returns an export of it.
func exportOfWaiting(t *testing.T, s durable.Store, w *durable.Workflow[int, string], steps int) []byte {
	t.Helper()
	stop := running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, neverEnding}, Version: "v1", ParkAfter: time.Millisecond}))
	client := engineOn(t, s)
	read(w.Start(within(t), client, 0, durable.ID("run")))(t)
	awaitStatus(t, client, "run", durable.StatusWaiting)
	waitFor(t, func() bool {
		done := 0
		for _, c := range historyOf(t, client, "run") {
			if c.Kind == durable.KindStep && c.Status == durable.CheckpointCompleted {
				done++
			}
		}
		return done == steps
	})
	stop()
	return read(client.Export(within(t), "run", durable.DecodePayloads()))(t)
}

// A preflight lets the branches replay their calls while the function waits, as a worker does.
func TestPreflightJudgesBranchesBesideAWaitingFunction(t *testing.T) {
	for name, wait := range functionWaits {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				exported := exportOfWaiting(t, s, besideBranch(wait, x.steps("order", "pay")), 2)
				for name, test := range map[string]struct {
					side func(c *durable.Ctx) error
					opts []durable.WorkflowOption
					call string   // at which it diverges
					next string   // of the branch
					need []string // the needed changes
				}{
					"fits":             {side: x.steps("order", "pay", "ship"), next: "side/ship"},
					"renamed":          {side: x.steps("order", "pay by card"), call: "side/pay by card"},
					"removed":          {side: x.steps("order"), call: "side/pay"},
					"declared":         {side: x.steps("order", "pay by card", "ship"), opts: []durable.WorkflowOption{durable.Renamed("pay", "pay by card")}, next: "side/ship", need: []string{"pay"}},
					"behind a patch":   {side: x.patched("check", x.steps("order", "check", "pay"), x.steps("order", "pay", "ship")), next: "side/ship", need: []string{"side/check"}},
					"waits for itself": {side: func(c *durable.Ctx) error { <-c.Done(); return nil }, opts: []durable.WorkflowOption{durable.Retired("order", "pay")}},
				} {
					after := besideBranch(wait, test.side, test.opts...)
					report := read(engineOn(t, s, after, neverEnding).Preflight(within(t), durable.Filter{Workflow: "beside"}))(t)
					run := report.Runs[0]
					if run.Diverged != (test.call != "") || run.Call != test.call || test.next != "" && !slices.Contains(run.Next, test.next) {
						t.Errorf("%s: the preflight found %+v", name, run)
					}
					for _, need := range test.need {
						if !slices.ContainsFunc(report.Needed, func(n durable.NeededChange) bool { return n.Name == need && n.Runs == 1 }) {
							t.Errorf("%s: needed are %+v", name, report.Needed)
						}
					}
					if got := durabletest.Replay(t, after, exported, durabletest.Workflows(neverEnding)); got.Diverged != run.Diverged || got.Step != run.Call {
						t.Errorf("%s: the replay found %+v", name, got)
					}
				}
			})
		})
	}
}

// patched is code that takes the new path if Patched says so.
func (x *stepCounts) patched(id string, newPath, oldPath func(c *durable.Ctx) error) func(c *durable.Ctx) error {
	return func(c *durable.Ctx) error {
		takes, err := c.Patched(id)
		switch {
		case err != nil:
			return fmt.Errorf("patch %s: %w", id, err)
		case takes:
			return newPath(c)
		}
		return oldPath(c)
	}
}
