package durable_test

import (
	"context"
	"errors"
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
