package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

// What the code did because a call failed need not be done any more once a repair lets the call succeed, in whatever scope the call is
// and whatever the code did in between. Code that was not changed is not held for it.
func TestDriftDoesNotHoldWhatFollowedARepairedFailure(t *testing.T) {
	type call func(c *durable.Ctx) (int, error)
	inBranch := func(fn call) call {
		return func(c *durable.Ctx) (int, error) { return c.Go("left", fn).Wait() }
	}
	retry := func(e *durable.Engine, _ string) error { _, err := e.Retry(within(t), "run"); return err }
	skip := func(e *durable.Engine, step string) error { _, err := e.Skip(within(t), "run", step, 7); return err }
	setValue := func(e *durable.Engine, step string) error {
		_, err := e.Fork(within(t), "run", durable.FromEnd(), durable.OverrideStep(step, 7))
		return err
	}
	for name, test := range map[string]struct {
		step     string
		isChild  bool
		inBranch bool
		repair   func(e *durable.Engine, step string) error
	}{
		"retry of a step":              {"pay", false, false, retry},
		"retry of a step in a branch":  {"left/pay", false, true, retry},
		"retry of a child in a branch": {"left/kid", true, true, retry},
		"skip of a step in a branch":   {"left/pay", false, true, skip},
		"fork with a value":            {"left/pay", false, true, setValue},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var open atomic.Bool
				pay := call(func(c *durable.Ctx) (int, error) {
					return c.Step("pay", func(context.Context) (int, error) {
						if !open.Load() {
							return 0, errDeclined
						}
						return 1, nil
					})
				})
				kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return pay(c) })
				first := pay
				if test.isChild {
					first = func(c *durable.Ctx) (int, error) { return c.Child("kid", kid, 1) }
				}
				if test.inBranch {
					first = inBranch(first)
				}
				x := new(stepCounts)
				w := durable.Define("shop", func(c *durable.Ctx, _ int) (string, error) {
					_, failure := first(c)
					if err := x.steps("log")(c); err != nil {
						return "", err
					}
					if failure != nil {
						return "", errors.Join(x.steps("alert")(c), failure)
					}
					return "paid", x.steps("ship")(c)
				})
				e := engineOn(t, s, w, kid)
				running(t, e)
				if _, err := w.Call(within(t), e, 0, durable.ID("run")); !errors.Is(err, errDeclined) {
					t.Fatal(err)
				}
				open.Store(true)
				if err := test.repair(e, test.step); err != nil {
					t.Fatal(err)
				}
				info := awaitJudged(t, e, "run")
				if info.Status != durable.StatusCompleted || x.String() != "map[alert:1 log:1 ship:1]" {
					t.Errorf("it is %s %s, executed %s", info.Status, info.Reason, x)
				}
			})
		})
	}
}

// A repair excuses only the calls that were recorded before it: of those after it, a renamed one is noticed.
func TestARenamedCallAfterARepairHoldsTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		var open atomic.Bool
		define := func(name string) *durable.Workflow[int, int] {
			return waitsAs("shop", func(c *durable.Ctx) error {
				_, err := c.Step("pay", func(context.Context) (int, error) {
					if !open.Load() {
						return 0, errDeclined
					}
					return 1, nil
				})
				if err != nil {
					return errors.Join(x.steps("alert")(c), err)
				}
				if err := x.steps(name)(c); err != nil {
					return err
				}
				_, err = c.Receive[int]("go")
				return err
			})
		}
		before := define("charge")
		stop := atVersion(t, s, "v1", before)
		client := engineOn(t, s)
		if _, err := before.Start(within(t), client, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, client, "run", durable.StatusFailed)
		open.Store(true)
		if _, err := client.Retry(within(t), "run"); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, client, "run", durable.StatusWaiting)
		stop()
		atVersion(t, s, "v2", define("charge card"))
		if err := client.Signal(within(t), "run", "go", 1); err != nil {
			t.Fatal(err)
		}
		if info := awaitJudged(t, client, "run"); !info.Diverged || x.String() != "map[alert:1 charge:1]" {
			t.Errorf("it is %s, diverged %t, executed %s", info.Status, info.Diverged, x)
		}
	})
}

// awaitJudged waits until the run has ended or is held.
func awaitJudged(t *testing.T, e *durable.Engine, id string) (info *durable.RunInfo) {
	t.Helper()
	waitFor(t, func() bool {
		info = read(e.Get(within(t), id))(t)
		return info.Diverged || info.Status == durable.StatusFailed || info.Status == durable.StatusCompleted
	})
	return info
}
