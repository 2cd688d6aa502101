package durable_test

import (
	"context"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// inBranch is code that executes calls in a branch and waits for it.
func inBranch(name string, fn func(c *durable.Ctx) error) func(c *durable.Ctx) error {
	return func(c *durable.Ctx) error {
		_, err := c.Go(name, func(c *durable.Ctx) (int, error) { return 0, fn(c) }).Wait()
		return err
	}
}

// inRace is code that executes calls in a branch of a choice.
func inRace(fn func(c *durable.Ctx) error) func(c *durable.Ctx) error {
	return func(c *durable.Ctx) error {
		a := c.Go("a", func(c *durable.Ctx) (int, error) { return 0, fn(c) })
		b := c.Go("b", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never") })
		_, _, err := durable.Any(c, "first", durable.CancelLosers, a, b)
		return err
	}
}

func inOrder(parts ...func(c *durable.Ctx) error) func(c *durable.Ctx) error {
	return func(c *durable.Ctx) error {
		for _, part := range parts {
			if err := part(c); err != nil {
				return err
			}
		}
		return nil
	}
}

// A step that moved from the function into a branch, or to another place, is not executed a second time. A preflight and a replay report it.
func TestStepsThatMovedIntoABranchAreNotExecutedAgain(t *testing.T) {
	type code = func(c *durable.Ctx) error
	mapped := func(x *stepCounts) code {
		return func(c *durable.Ctx) error {
			_, err := c.Map("items", []int{1, 2}, func(context.Context, int) (int, error) { x.add("item"); return 1, nil })
			return err
		}
	}
	for name, test := range map[string]func(x *stepCounts) (before, after code){
		"all of them": func(x *stepCounts) (code, code) { return x.steps("a", "b"), inBranch("z", x.steps("a", "b")) },
		"the last": func(x *stepCounts) (code, code) {
			return x.steps("a", "b"), inOrder(x.steps("a"), inBranch("z", x.steps("b")))
		},
		"into a choice": func(x *stepCounts) (code, code) {
			return x.steps("a", "b"), inOrder(x.steps("a"), inRace(x.steps("b")))
		},
		"a Map": func(x *stepCounts) (code, code) { return mapped(x), inBranch("z", mapped(x)) },
		"behind a patch": func(x *stepCounts) (code, code) {
			return x.patched("p", x.steps("a"), x.steps()), inBranch("z", x.patched("p", x.steps("a"), x.steps()))
		},
		"out of a finished branch": func(x *stepCounts) (code, code) { return inBranch("z", x.steps("a")), x.steps("a") },
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				old, changed := test(x)
				before, after := waits(old, x.steps("end")), waits(changed, x.steps("end"))
				stop := atVersion(t, s, "v1", before)
				client := engineOn(t, s)
				read(before.Start(within(t), client, 0, durable.ID("run")))(t)
				awaitStatus(t, client, "run", durable.StatusWaiting)
				stop()
				executed := x.String()
				if found := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{}))(t); found.Diverged != 1 {
					t.Errorf("the preflight found %+v", found)
				}
				if got := durabletest.Replay(t, after, read(client.Export(within(t), "run", durable.DecodePayloads()))(t)); !got.Diverged {
					t.Errorf("the replay found %+v", got)
				}
				if err := client.Signal(within(t), "run", "go", 1); err != nil {
					t.Fatal(err)
				}
				stop = atVersion(t, s, "v2", after)
				waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Diverged })
				stop()
				if x.String() != executed {
					t.Errorf("executed %s, and before the change %s", x, executed)
				}
				atVersion(t, s, "v3", before)
				awaitStatus(t, client, "run", durable.StatusCompleted)
			})
		})
	}
}

// A call that waits is judged like one that is executed: a preflight and a worker agree about calls that change places with it.
func TestCallsThatChangePlacesWithAWaitHoldTheRun(t *testing.T) {
	for name, wait := range functionWaits {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				none := func(*durable.Ctx) error { return nil }
				before, after := besideBranch(inOrder(x.steps("a"), wait), none), besideBranch(inOrder(wait, x.steps("a")), none)
				exported := exportOfWaiting(t, s, before, 1)
				v2 := engineWith(t, s, durable.Config{Workflows: []durable.Definition{after, neverEnding}, Version: "v2"})
				found := read(v2.Preflight(within(t), durable.Filter{Workflow: "beside"}))(t)
				if !found.Runs[0].Diverged || !durabletest.Replay(t, after, exported, durabletest.Workflows(neverEnding)).Diverged {
					t.Errorf("the preflight found %+v", found)
				}
				running(t, v2)
				client := engineOn(t, s)
				must(t)(client.Pause(within(t), "run"))
				must(t)(client.Resume(within(t), "run"))
				waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Diverged })
				if x.String() != "map[a:1]" {
					t.Errorf("executed %s", x)
				}
			})
		})
	}
}

// Branches of an unchanged program execute their calls while the function replays its own, and are not held.
func TestBranchesBesideAReplayingFunctionContinue(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		w := waits(func(c *durable.Ctx) error {
			f := c.Go("side", func(c *durable.Ctx) (int, error) {
				if _, err := c.Receive[int]("side go"); err != nil {
					return 0, err
				}
				return 0, x.steps("late")(c)
			})
			if err := x.steps("a", "b")(c); err != nil {
				return err
			}
			if _, err := c.Receive[int]("first"); err != nil {
				return err
			}
			_, err := f.Wait()
			return err
		}, x.steps("end"))
		stop := atVersion(t, s, "v1", w)
		client := engineOn(t, s)
		run := read(w.Start(within(t), client, 0, durable.ID("run")))(t)
		awaitStatus(t, client, "run", durable.StatusWaiting)
		stop()
		for _, signal := range []string{"side go", "first", "go"} {
			if err := client.Signal(within(t), "run", signal, 1); err != nil {
				t.Fatal(err)
			}
		}
		atVersion(t, s, "v2", w)
		if _, err := run.Result(within(t)); err != nil || x.String() != "map[a:1 b:1 end:1 late:1]" {
			t.Errorf("it ended with %v, executed %s", err, x)
		}
	})
}

// A run of a function is held when a graph of the same name executes it, and the other way around.
func TestFunctionThatBecameAGraphHoldsTheRun(t *testing.T) {
	function := func(x *stepCounts) *durable.Workflow[int, int] {
		return durable.Define("order", func(c *durable.Ctx, _ int) (int, error) {
			if err := x.steps("charge")(c); err != nil {
				return 0, err
			}
			return c.Receive[int]("go")
		})
	}
	graph := func(x *stepCounts) *durable.Workflow[int, int] {
		return durable.DefineGraph("order", func(g *durable.Graph[int]) *durable.Node[int] {
			charge := g.Step("charge", func(context.Context, *durable.NodeInput) (int, error) { x.add("charge"); return 1, nil })
			return g.Receive[int]("go", durable.After(charge))
		})
	}
	for name, test := range map[string]struct {
		before, after func(*stepCounts) *durable.Workflow[int, int]
	}{"to a graph": {function, graph}, "to a function": {graph, function}} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				before, after := test.before(x), test.after(x)
				stop := atVersion(t, s, "v1", before)
				client := engineOn(t, s)
				read(before.Start(within(t), client, 0, durable.ID("run")))(t)
				awaitStatus(t, client, "run", durable.StatusWaiting)
				stop()
				if found := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{}))(t); found.Diverged != 1 {
					t.Errorf("the preflight found %+v", found)
				}
				if err := client.Signal(within(t), "run", "go", 1); err != nil {
					t.Fatal(err)
				}
				stop = atVersion(t, s, "v2", after)
				waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Diverged })
				stop()
				atVersion(t, s, "v3", before)
				awaitStatus(t, client, "run", durable.StatusCompleted)
				if x.String() != "map[charge:1]" {
					t.Errorf("executed %s", x)
				}
			})
		})
	}
}

// A preflight reports that the code lacks a compensation that is still to be executed. No declaration of a compensation is needed.
func TestPreflightFindsMissingCompensations(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		define := func(undo string, opts ...durable.WorkflowOption) *durable.Workflow[int, string] {
			return durable.Define("saga", func(c *durable.Ctx, _ int) (string, error) {
				if err := c.Compensate(undo, func(context.Context) error { return errDeclined }, durable.Retry(durable.Fixed(testPatience, 9))); err != nil {
					return "", err
				}
				return "", c.Do("charge", func(context.Context) error { return durable.Permanent(errDeclined) })
			}, opts...)
		}
		before := define("refund")
		stop := atVersion(t, s, "v1", before)
		client := engineOn(t, s)
		read(before.Start(within(t), client, 0, durable.ID("run")))(t)
		waitFor(t, func() bool {
			return slices.ContainsFunc(historyOf(t, client, "run"), func(c durable.Checkpoint) bool { return c.Name == "refund" && c.Status == durable.CheckpointBackoff })
		})
		stop()
		exported := read(client.Export(within(t), "run", durable.DecodePayloads()))(t)
		for name, test := range map[string]struct {
			w    *durable.Workflow[int, string]
			held bool
		}{
			"unchanged": {before, false},
			"renamed":   {define("refund card", durable.Renamed("refund", "refund card")), true},
			"retired":   {define("other", durable.Retired("refund")), true},
		} {
			found := read(engineOn(t, s, test.w).Preflight(within(t), durable.Filter{}))(t)
			if run := found.Runs[0]; run.Diverged != test.held || test.held != (run.Call == "refund") || len(found.Needed) != 0 {
				t.Errorf("%s: the preflight found %+v", name, found)
			}
			if got := durabletest.Replay(t, test.w, exported); got.Diverged != test.held {
				t.Errorf("%s: the replay found %+v", name, got)
			}
		}
	})
}
