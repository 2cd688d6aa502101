package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// failFast waits for two branches: "a" is a, and "b" waits for a signal.
func failFast(c *durable.Ctx, x *stepCounts, a func(c *durable.Ctx) (int, error)) error {
	b := c.Go("b", func(c *durable.Ctx) (int, error) {
		n, err := c.Receive[int]("b")
		if err != nil {
			return 0, err
		}
		return n, x.steps("charge b")(c)
	})
	_, err := durable.AllOrCancel(c, "together", c.Go("a", a), b)
	return err
}

// A run that failed because a branch failed by itself, and so decided a choice, makes the choice again when it is executed anew, by itself or by an
// operator. Its corrected code is not held, and the branch that the choice had ended continues.
func TestTheChoiceThatMadeARunFailIsMadeAgain(t *testing.T) {
	fork := func(e *durable.Engine) error {
		_, err := e.Fork(within(t), "run", durable.FromEnd())
		return err
	}
	for name, test := range map[string]struct {
		opts   []durable.WorkflowOption
		fail   func(c *durable.Ctx) (int, error)
		repair func(e *durable.Engine) error
	}{
		"by itself":               {[]durable.WorkflowOption{durable.RetryRun(durable.Fixed(time.Millisecond, 3))}, declines, func(*durable.Engine) error { return nil }},
		"by itself after a panic": {[]durable.WorkflowOption{durable.RetryRun(durable.Fixed(time.Millisecond, 3))}, func(*durable.Ctx) (int, error) { panic("no luck") }, func(*durable.Engine) error { return nil }},
		"by a retry": {nil, declines, func(e *durable.Engine) error {
			_, err := e.Retry(within(t), "run", durable.FromEnd())
			return err
		}},
		"by a fork":               {nil, declines, fork},
		"by a fork after a panic": {nil, func(*durable.Ctx) (int, error) { panic("no luck") }, fork},
		"by a value of the step that failed": {nil, func(c *durable.Ctx) (int, error) {
			return c.Step("step", func(context.Context) (int, error) { return 0, errDeclined }, durable.Retry(durable.NoRetry))
		}, func(e *durable.Engine) error {
			_, err := e.Fork(within(t), "run", durable.FromEnd(), durable.OverrideStep("a/step", 1))
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				var tries atomic.Int32
				w := waitsAs("shop", func(c *durable.Ctx) error {
					err := failFast(c, x, func(c *durable.Ctx) (int, error) {
						if n := tries.Add(1); n == 1 || name == "by a value of the step that failed" {
							return test.fail(c)
						}
						return 1, nil
					})
					if err != nil {
						return errors.Join(x.steps("alert")(c), err)
					}
					return x.steps("ship")(c)
				}, test.opts...)
				e := engineOn(t, s, w)
				running(t, e)
				if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
					t.Fatal(err)
				}
				if test.opts == nil {
					awaitStatus(t, e, "run", durable.StatusFailed)
				}
				if err := test.repair(e); err != nil {
					t.Fatal(err)
				}
				if err := e.Signal(within(t), "run", "b", 1); err != nil {
					t.Fatal(err)
				}
				info := awaitJudged(t, e, "run")
				if info.Status != durable.StatusCompleted || x.String() != "map[alert:1 charge b:1 ship:1]" {
					t.Errorf("it is %s: %s %v, executed %s", info.Status, info.Reason, info.Err, x)
				}
			})
		})
	}
}

// A choice that the function handled is kept when the run is executed anew, because the run did not fail with it: the branches that it ended
// execute nothing more.
func TestAHandledChoiceIsKept(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		var mended atomic.Bool
		w := waitsAs("shop", func(c *durable.Ctx) error {
			if err := failFast(c, x, declines); !errors.Is(err, errDeclined) {
				return err
			}
			if !mended.Load() {
				return errDeclined
			}
			return x.steps("ship")(c)
		})
		e := engineOn(t, s, w)
		running(t, e)
		if _, err := w.Call(within(t), e, 0, durable.ID("run")); !errors.Is(err, errDeclined) {
			t.Fatal(err)
		}
		if err := e.Signal(within(t), "run", "b", 1); err != nil && !errors.Is(err, durable.ErrState) {
			t.Fatal(err)
		}
		mended.Store(true)
		if _, err := e.Retry(within(t), "run", durable.FromEnd()); err != nil {
			t.Fatal(err)
		}
		if info := awaitJudged(t, e, "run"); info.Status != durable.StatusCompleted || x.String() != "map[ship:1]" {
			t.Errorf("it is %s: %s %v, executed %s", info.Status, info.Reason, info.Err, x)
		}
	})
}

// A node that fails the run records a choice. It is made again too, also if the node that led to it failed by itself.
func TestTheFailureOfAGraphIsDecidedAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var tries atomic.Int32
		w := durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
			list := g.Step("list", func(context.Context, *durable.NodeInput) (int, error) { return 3, nil })
			a := g.Step("a", func(_ context.Context, in *durable.NodeInput) (int, error) { return list.Of(in) + 1, nil }, durable.When(list, func(int) bool {
				if tries.Add(1) == 1 {
					panic("no luck")
				}
				return true
			}))
			slow := g.Receive[int]("slow")
			n := g.Step("n", func(_ context.Context, in *durable.NodeInput) (int, error) { return a.Of(in) + 1, nil }, durable.Needs(a), durable.OnUnmetNeed(durable.FailRun))
			return g.Step("out", sum(n, slow), durable.Needs(n, slow))
		})
		e := engineOn(t, s, w)
		running(t, e)
		if _, err := w.Call(within(t), e, 1, durable.ID("run")); err == nil {
			t.Fatal("it has not failed")
		}
		if _, err := e.Retry(within(t), "run", durable.FromEnd()); err != nil {
			t.Fatal(err)
		}
		if err := e.Signal(within(t), "run", "slow", 1); err != nil {
			t.Fatal(err)
		}
		if info := awaitJudged(t, e, "run"); info.Status != durable.StatusCompleted {
			t.Errorf("it is %s: %s %v", info.Status, info.Reason, info.Err)
		}
	})
}

// If a repair repeats a call of the branch that won a choice, and the call now fails, the run fails with its error: the code fits. A retry repeats
// the call once more, and the run continues.
func TestARepeatedCallOfAWinnerMayFail(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		type stepFunc func(context.Context) (int, error)
		for name, define := range map[string]func(step stepFunc) *durable.Workflow[int, int]{
			"function": func(step stepFunc) *durable.Workflow[int, int] {
				return waitsAs("function", func(c *durable.Ctx) error {
					a := c.Go("a", func(c *durable.Ctx) (int, error) { return c.Step("step", step, durable.Retry(durable.NoRetry)) })
					b := c.Go("b", func(c *durable.Ctx) (int, error) { return c.Receive[int]("b") })
					if _, _, err := durable.Any(c, "first", durable.CancelLosers, a, b); err != nil {
						return err
					}
					_, err := c.Receive[int]("go")
					return err
				})
			},
			"graph": func(step stepFunc) *durable.Workflow[int, int] {
				return durable.DefineGraph("graph", func(g *durable.Graph[int]) *durable.Node[int] {
					a := g.Step("a", func(ctx context.Context, _ *durable.NodeInput) (int, error) { return step(ctx) }, durable.Retry(durable.NoRetry))
					b := g.Receive[int]("b")
					return g.Receive[int]("go", durable.NeedsAny(durable.CancelLosers, a, b))
				})
			},
		} {
			var fails atomic.Bool
			w := define(func(context.Context) (int, error) {
				if fails.Load() {
					return 0, errDeclined
				}
				return 1, nil
			})
			e := engineOn(t, s, w)
			stop := running(t, e)
			if _, err := w.Start(within(t), e, 0, durable.ID(name)); err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, name, durable.StatusWaiting)
			fails.Store(true)
			if _, err := e.Rerun(within(t), name, "a/step"); err != nil {
				t.Fatal(err)
			}
			if info := awaitJudged(t, e, name); info.Status != durable.StatusFailed || !errors.Is(info.Err, errDeclined) {
				t.Fatalf("%s: it is %s: %s %v", name, info.Status, info.Reason, info.Err)
			}
			fails.Store(false)
			if _, err := e.Retry(within(t), name); err != nil {
				t.Fatal(err)
			}
			if err := e.Signal(within(t), name, "go", 1); err != nil {
				t.Fatal(err)
			}
			if info := awaitJudged(t, e, name); info.Status != durable.StatusCompleted {
				t.Errorf("%s: after the retry it is %s: %s %v", name, info.Status, info.Reason, info.Err)
			}
			stop()
		}
	})
}

// A branch that had returned when a choice ended it has a valid result. A rerun of its step executes the step, and the branch has the new
// result; the other branches that the choice ended stay ended.
func TestRerunInABranchThatHadReturnedBeforeAChoiceEndedIt(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var executed atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			winner := c.Go("winner", func(c *durable.Ctx) (string, error) {
				return "", c.Do("step", func(context.Context) error { return nil })
			})
			returned := c.Go("returned", func(c *durable.Ctx) (string, error) {
				return c.Step("step", func(context.Context) (string, error) { return fmt.Sprint("value ", executed.Add(1)), nil })
			})
			ended := c.Go("ended", func(c *durable.Ctx) (string, error) { return c.Receive[string]("never") })
			if _, err := durable.All(winner, returned); err != nil {
				return "", err
			}
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, winner, returned, ended); err != nil {
				return "", err
			}
			if _, err := ended.Wait(); !errors.Is(err, durable.ErrCancelled) {
				return "", fmt.Errorf("the ended branch returned %w", err)
			}
			return returned.Wait()
		})
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		wantResult(t, w, e, "r", "value 1")
		orFail(e.Rerun(within(t), "r", "returned/step"))(t)
		wantResult(t, w, e, "r", "value 2")
		orFail(e.Fork(within(t), "r", durable.From("returned/step"), durable.NewID("copy")))(t)
		wantResult(t, w, e, "copy", "value 3")
	})
}
