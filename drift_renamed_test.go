package durable_test

import (
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
