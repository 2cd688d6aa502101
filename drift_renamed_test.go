package durable_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run is held if the code gives the old name of a renamed step to a new step: both ask for the same record. A new run executes both.
func TestOldNameOfARenamedStepForANewStepHoldsTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var x stepCounts
		code := waits(x.steps("a1"), x.steps("a", "c"), durable.Renamed("a", "a1"))
		info := afterChange(t, s, waits(x.steps("a"), x.steps("c")), code)
		if !info.Diverged || !strings.Contains(info.Reason, `Renamed("a", "a1")`) || x.String() != "map[a:1]" {
			t.Errorf("the run is %s, %q, with the steps %s", info.Status, info.Reason, &x)
		}
		client := engineOn(t, s)
		run := orFail(code.Start(within(t), client, 0, durable.ID("new")))(t)
		if err := client.Signal(within(t), "new", "go", 1); err != nil {
			t.Fatal(err)
		}
		if _, err := run.Result(within(t)); err != nil || x.String() != "map[a:2 a1:1 c:1]" {
			t.Errorf("a new run: %v, with the steps %s", err, &x)
		}
	})
}

// If the function handles divergences, it gets ErrDiverged.
func TestOldNameOfARenamedStepForANewStepIsADivergence(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var x stepCounts
		code := waits(x.steps("a1"), func(c *durable.Ctx) error {
			if err := x.steps("a")(c); !errors.Is(err, durable.ErrDiverged) || !errors.Is(err, durable.ErrDuplicateStep) {
				t.Errorf("the new step: %v", err)
			}
			return nil
		}, durable.Renamed("a", "a1"), durable.OnDrift(durable.DriftContinues))
		if info := afterChange(t, s, waits(x.steps("a"), x.steps()), code); info.Status != durable.StatusCompleted {
			t.Errorf("the run is %s, %q", info.Status, info.Reason)
		}
	})
}

// Renamed calls that exchange their names are refused, because each would use the record of the other.
func TestRenamedCallsInACircleAreRefused(t *testing.T) {
	none := func(*durable.Ctx) error { return nil }
	s := openStore(t)
	for name, test := range map[string]struct {
		opts    []durable.WorkflowOption
		refused bool
	}{
		"a chain":                    {[]durable.WorkflowOption{durable.Renamed("a", "b"), durable.Renamed("b", "c")}, false},
		"a swap":                     {[]durable.WorkflowOption{durable.Renamed("a", "b"), durable.Renamed("b", "a")}, true},
		"a circle, and another name": {[]durable.WorkflowOption{durable.Renamed("c", "a"), durable.Renamed("a", "b"), durable.Renamed("b", "c"), durable.Renamed("c", "d")}, true},
	} {
		_, err := durable.New(s, durable.Config{Workflows: []durable.Definition{waits(none, none, test.opts...)}})
		if errors.Is(err, durable.ErrInvalidConfig) != test.refused {
			t.Errorf("%s: New returned %v", name, err)
		}
	}
}

// The token of a callback that was renamed before the run came to its wait completes the wait.
func TestRenamedCallbackKeepsItsToken(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		define := func(name string, opts ...durable.WorkflowOption) (*durable.Workflow[int, string], chan string) {
			tokens := make(chan string, 1)
			return durable.Define("approval", func(c *durable.Ctx, _ int) (string, error) {
				approved := c.Callback[string](name)
				if err := c.Do("mail", func(context.Context) error { tokens <- approved.Token(); return nil }); err != nil {
					return "", err
				}
				if _, err := c.Receive[int]("go"); err != nil {
					return "", err
				}
				return approved.Wait()
			}, opts...), tokens
		}
		before, tokens := define("approval")
		after, newTokens := define("decision", durable.Renamed("approval", "decision"))
		stop := atVersion(t, s, "v1", before)
		client := engineOn(t, s)
		run := read(before.Start(within(t), client, 0, durable.ID("run")))(t)
		awaitStatus(t, client, "run", durable.StatusWaiting)
		stop()
		stop = atVersion(t, s, "v2", after)
		newRun := read(after.Start(within(t), client, 0, durable.ID("new")))(t)
		for _, id := range []string{"run", "new"} {
			if err := client.Signal(within(t), id, "go", 1); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool {
				open := read(client.Get(within(t), id))(t).OpenCalls
				return len(open) == 1 && open[0].Name == "approval"
			})
		}
		stop()
		if found := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{}))(t); len(found.Needed) != 1 || found.Needed[0].Runs != 2 {
			t.Errorf("needed are %+v", found.Needed)
		}
		atVersion(t, s, "v3", after)
		for token, run := range map[string]*durable.Run[string]{<-tokens: run, <-newTokens: newRun} {
			if err := client.Complete(within(t), token, "yes"); err != nil {
				t.Fatal(err)
			}
			if got, err := run.Result(within(t)); got != "yes" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
	})
}

// A branch that was renamed keeps what it has recorded under its old name, and takes part in recorded choices.
func TestRenamedBranchKeepsItsCalls(t *testing.T) {
	type code = func(c *durable.Ctx) error
	race := func(x *stepCounts, loser, winner string) code {
		return func(c *durable.Ctx) error {
			a := c.Go(loser, func(c *durable.Ctx) (int, error) { return c.Receive[int]("never") })
			b := c.Go(winner, func(c *durable.Ctx) (int, error) { return 0, x.steps("a")(c) })
			_, _, err := durable.Any(c, "first", durable.CancelLosers, a, b)
			return err
		}
	}
	empty := func(loser, winner string) code {
		return func(c *durable.Ctx) error {
			a := c.Go(loser, func(*durable.Ctx) (int, error) { return 0, errDeclined })
			b := c.Go(winner, func(*durable.Ctx) (int, error) { return 0, nil })
			_, _, err := durable.Any(c, "first", durable.CancelLosers, a, b)
			return err
		}
	}
	for name, test := range map[string]struct {
		before, after func(x *stepCounts) code
		renamed       []durable.WorkflowOption
		needed        []string
		ran           string
	}{
		"with steps": {
			func(x *stepCounts) code { return inBranch("side", x.steps("a", "b")) }, func(x *stepCounts) code { return inBranch("other", x.steps("a", "b")) },
			[]durable.WorkflowOption{durable.Renamed("side", "other")},
			[]string{"side"},
			"map[a:1 b:1 end:1]",
		},
		"twice": {
			func(x *stepCounts) code { return inBranch("side", x.steps("a")) }, func(x *stepCounts) code { return inBranch("third", x.steps("a")) },
			[]durable.WorkflowOption{durable.Renamed("side", "other"), durable.Renamed("other", "third")},
			[]string{"side"},
			"map[a:1 end:1]",
		},
		"in a branch, with a renamed Map": {
			func(x *stepCounts) code { return inBranch("outer", inBranch("side", x.mapOf("send", "a", "b"))) },
			func(x *stepCounts) code { return inBranch("outer", inBranch("other", x.mapOf("deliver", "a", "b"))) },
			[]durable.WorkflowOption{durable.Renamed("side", "other"), durable.Renamed("send", "deliver")},
			[]string{"send", "side"},
			"map[a:1 b:1 end:1]",
		},
		"in a choice": {
			func(x *stepCounts) code { return race(x, "l", "w") }, func(x *stepCounts) code { return race(x, "loser", "winner") },
			[]durable.WorkflowOption{durable.Renamed("l", "loser"), durable.Renamed("w", "winner")},
			[]string{"l", "w"},
			"map[a:1 end:1]",
		},
		"in a choice, without calls": {
			func(x *stepCounts) code { return empty("l", "w") }, func(x *stepCounts) code { return empty("loser", "winner") },
			[]durable.WorkflowOption{durable.Renamed("l", "loser"), durable.Renamed("w", "winner")},
			[]string{"l", "w"},
			"map[end:1]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				before, after := waits(test.before(x), x.steps("end")), waits(test.after(x), x.steps("end"), test.renamed...)
				stop := atVersion(t, s, "v1", before)
				client := engineOn(t, s)
				run := read(before.Start(within(t), client, 0, durable.ID("run")))(t)
				awaitStatus(t, client, "run", durable.StatusWaiting)
				stop()
				report := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{}))(t)
				var needed []string
				for _, n := range report.Needed {
					needed = append(needed, n.Name)
				}
				if report.Fit != 1 || !slices.Equal(needed, test.needed) {
					t.Errorf("the preflight found %+v", report)
				}
				if err := client.Signal(within(t), "run", "go", 1); err != nil {
					t.Fatal(err)
				}
				atVersion(t, s, "v2", after)
				waitFor(t, func() bool {
					info := read(client.Get(within(t), "run"))(t)
					return info.Diverged || info.Status == durable.StatusCompleted
				})
				if info := read(client.Get(within(t), "run"))(t); info.Diverged || x.String() != test.ran {
					t.Fatalf("the run is %s, %q, executed %s", info.Status, info.Reason, x)
				}
				if _, err := run.Result(within(t)); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// A run is held if the code gives the old name of a renamed branch to a new branch.
func TestOldNameOfARenamedBranchForANewBranchHoldsTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var x stepCounts
		both := inOrder(inBranch("other", x.steps("a")), inBranch("side", x.steps("b")))
		info := afterChange(t, s, waits(inBranch("side", x.steps("a")), x.steps("c")), waits(both, x.steps("c"), durable.Renamed("side", "other")))
		if !info.Diverged || !strings.Contains(info.Reason, `Renamed("side", "other")`) || x.String() != "map[a:1]" {
			t.Errorf("the run is %s, %q, with the steps %s", info.Status, info.Reason, &x)
		}
	})
}
