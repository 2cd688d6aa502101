package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

// placeWorkflow makes the steps "a" and "charge" in the scope, and then waits for the signal "go". With patched, the new path charges by bank.
func placeWorkflow(x *stepCounts, branch, patched bool) *durable.Workflow[int, string] {
	order := func(c *durable.Ctx) (string, error) {
		if err := x.steps("a")(c); err != nil {
			return "", err
		}
		if patched {
			if takes, err := c.Patched("new charge"); err != nil || takes {
				return "", errors.Join(err, x.steps("charge by bank")(c))
			}
		}
		return "", x.steps("charge")(c)
	}
	return durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		if branch {
			if _, err := c.Go("left", order).Wait(); err != nil {
				return "", err
			}
		} else if _, err := order(c); err != nil {
			return "", err
		}
		return c.Receive[string]("go")
	})
}

// awaitRepaired waits until a repaired run has ended or waits.
func awaitRepaired(t *testing.T, e *durable.Engine, id string, calls int) {
	t.Helper()
	waitFor(t, func() bool {
		info := read(e.Get(within(t), id))(t)
		return info.Status == durable.StatusWaiting && len(historyOf(t, e, id)) >= calls
	})
}

// A step that a repair executes again keeps its place before the calls that the repair keeps, so Patched knows that the run has passed them.
func TestPatchedIsFalseIfARepairKeepsLaterCalls(t *testing.T) {
	repairs := map[string]func(t *testing.T, e *durable.Engine, ctx context.Context, a string) (id string){
		"rerun": func(t *testing.T, e *durable.Engine, ctx context.Context, a string) string {
			orFail(e.Rerun(ctx, "r", a))(t)
			return "r"
		},
		"rerun twice, a fork and a copy": func(t *testing.T, e *durable.Engine, ctx context.Context, a string) string {
			for range 2 {
				orFail(e.Rerun(ctx, "r", a))(t)
				awaitRepaired(t, e, "r", 3)
			}
			orFail(e.Fork(ctx, "r", durable.FromEnd()))(t)
			awaitRepaired(t, e, "r", 3)
			orFail(e.Fork(ctx, "r", durable.FromEnd(), durable.NewID("copy")))(t)
			return "copy"
		},
		"override": func(t *testing.T, e *durable.Engine, ctx context.Context, a string) string {
			orFail(e.Override(ctx, "r", a, nil, durable.FromEnd()))(t)
			return "r"
		},
	}
	for what, repair := range repairs {
		for _, branch := range []bool{false, true} {
			t.Run(fmt.Sprint(what, ", in a branch: ", branch), func(t *testing.T) {
				onStores(t, func(t *testing.T, s durable.Store) {
					ctx := within(t)
					var x stepCounts
					a, old := "a", placeWorkflow(&x, branch, false)
					if branch {
						a = "left/a"
					}
					stop := atVersion(t, s, "v1", old)
					client := engineOn(t, s)
					orFail(old.Start(ctx, client, 0, durable.ID("r")))(t)
					awaitStatus(t, client, "r", durable.StatusWaiting)
					id := repair(t, client, ctx, a)
					awaitRepaired(t, client, id, 3)
					stop()
					if err := client.Signal(ctx, id, "go", "x"); err != nil {
						t.Fatal(err)
					}
					atVersion(t, s, "v2", placeWorkflow(&x, branch, true))
					awaitStatus(t, client, id, durable.StatusCompleted)
					if x.of["charge"] != 1 || x.of["charge by bank"] != 0 {
						t.Errorf("executed were %v", &x)
					}
				})
			})
		}
	}
}

// The new code may also execute the step again, and the step's new value may lead to calls that the run has not made before.
func TestPatchedIsFalseAfterNewCallsOfARepair(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var x stepCounts
		var values atomic.Int32
		define := func(patched bool) *durable.Workflow[int, string] {
			return durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
				n, err := c.Step("value", func(context.Context) (int32, error) { return values.Add(1), nil })
				for i := int32(1); err == nil && i < n; i++ {
					err = x.steps(fmt.Sprint("new ", i))(c)
				}
				takes := false
				if err == nil && patched {
					takes, err = c.Patched("new charge")
				}
				switch {
				case err != nil:
					return "", err
				case takes:
					return "", x.steps("charge by bank")(c)
				}
				if err := x.steps("charge")(c); err != nil {
					return "", err
				}
				return c.Receive[string]("go")
			})
		}
		old := define(false)
		stop := atVersion(t, s, "v1", old)
		client := engineOn(t, s)
		orFail(old.Start(ctx, client, 0, durable.ID("r")))(t)
		awaitStatus(t, client, "r", durable.StatusWaiting)
		orFail(client.Rerun(ctx, "r", "value"))(t)
		awaitRepaired(t, client, "r", 4)
		orFail(client.Rerun(ctx, "r", "new 1"))(t)
		awaitRepaired(t, client, "r", 4)
		stop()
		orFail(client.Rerun(ctx, "r", "value"))(t)
		if err := client.Signal(ctx, "r", "go", "x"); err != nil {
			t.Fatal(err)
		}
		atVersion(t, s, "v2", define(true))
		awaitStatus(t, client, "r", durable.StatusCompleted)
		if got := x.String(); got != "map[charge:1 new 1:2 new 2:1]" {
			t.Errorf("executed were %s", got)
		}
	})
}

// A retry of a failure that the function handled keeps the later calls.
func TestPatchedIsFalseAfterARetriedFailure(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var x stepCounts
		var works atomic.Bool
		define := func(patched bool) *durable.Workflow[int, string] {
			return durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
				failed := c.Do("reserve", func(context.Context) error {
					if works.Load() {
						return nil
					}
					return errors.New("no stock")
				}, durable.Retry(durable.NoRetry))
				takes := false
				if patched {
					var err error
					if takes, err = c.Patched("new charge"); err != nil {
						return "", err
					}
				}
				if takes {
					return "", x.steps("charge by bank")(c)
				}
				return "", errors.Join(failed, x.steps("charge")(c))
			})
		}
		old := define(false)
		stop := atVersion(t, s, "v1", old)
		client := engineOn(t, s)
		orFail(old.Start(ctx, client, 0, durable.ID("r")))(t)
		awaitStatus(t, client, "r", durable.StatusFailed)
		stop()
		works.Store(true)
		orFail(client.Retry(ctx, "r"))(t)
		atVersion(t, s, "v2", define(true))
		awaitStatus(t, client, "r", durable.StatusCompleted)
		if got := x.String(); got != "map[charge:1]" {
			t.Errorf("executed were %s", got)
		}
	})
}

// A repair from a step that was executed again drops the calls that follow the step in the code, as before.
func TestARepairFromARepeatedStepDropsLaterCalls(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("order", func(c *durable.Ctx, _ int) (int, error) {
			prices, err := c.Map("price", []int{1, 2}, func(_ context.Context, n int) (int, error) { return n, nil })
			if err != nil {
				return 0, err
			}
			total, err := c.Step("total", func(context.Context) (int, error) { return prices[0] + prices[1], nil })
			if err == nil {
				_, err = c.Receive[string]("go")
			}
			return total, err
		})
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(ctx, e, 0, durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		for range 2 {
			orFail(e.Rerun(ctx, "r", "price/1"))(t)
			awaitRepaired(t, e, "r", 5)
		}
		later := []string{"total", "go"}
		for _, opts := range [][]durable.ControlOption{{}, {durable.NewID("copy")}} {
			made := orFail(e.Fork(ctx, "r", append(opts, durable.From("price/1"), durable.DryRun())...))(t)
			for _, name := range later {
				if !slices.Contains(made.Dropped, name) {
					t.Errorf("the fork drops %q", made.Dropped)
				}
			}
			if slices.Contains(made.Dropped, "price/0") {
				t.Errorf("the fork drops %q", made.Dropped)
			}
		}
		orFail(e.Override(ctx, "r", "price/1", 40))(t)
		if err := e.Signal(ctx, "r", "go", "x"); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "r", durable.StatusCompleted)
		if out := read(e.Get(ctx, "r"))(t).Output; string(out) != "41" {
			t.Errorf("the total is %s", out)
		}
	})
}
