package durable_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

var errUnlucky = durable.RegisterError("test.unlucky", errors.New("unlucky"))

// After the first failure the other branches end for good: their steps are not executed again, they receive no later signal,
// their children are cancelled, and a replay returns the same error.
func TestAllOrCancelRecordsWhoFailed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var slow atomic.Int32
		var executions seen[string]
		began := newGate()
		w := durable.Define("all", func(c *durable.Ctx, _ int) (string, error) {
			fine := c.Go("fine", func(c *durable.Ctx) (int, error) {
				return c.Step("quick", func(context.Context) (int, error) { return 1, nil })
			})
			hangs := c.Go("hangs", func(c *durable.Ctx) (int, error) {
				return 0, c.Do("slow", func(ctx context.Context) error {
					slow.Add(1)
					return began.pass(ctx)
				})
			})
			waits := c.Go("waits", func(c *durable.Ctx) (int, error) {
				if _, err := c.StartChild("kid", collector, 0); err != nil {
					return 0, err
				}
				if err := c.Do("mark", func(context.Context) error { began.entered <- struct{}{}; return nil }); err != nil {
					return 0, err
				}
				return c.Receive[int]("late")
			})
			fails := c.Go("fails", func(c *durable.Ctx) (int, error) {
				if _, err := fine.Wait(); err != nil {
					return 0, err
				}
				return c.Step("fail", func(ctx context.Context) (int, error) {
					for range 2 {
						select {
						case <-began.entered:
						case <-ctx.Done():
							return 0, ctx.Err()
						}
					}
					return 0, errUnlucky
				})
			})
			values, err := durable.AllOrCancel(c, "together", fine, hangs, waits, fails)
			if values != nil || !errors.Is(err, errUnlucky) {
				t.Errorf("got %v, %v", values, err)
			}
			for _, f := range []*durable.Future[int]{hangs, waits} {
				if _, err := f.Wait(); !errors.Is(err, durable.ErrCancelled) {
					t.Errorf("a branch that was ended: %v", err)
				}
			}
			if v, err := fine.Wait(); v != 1 || err != nil {
				t.Errorf("a branch that had returned: %v, %v", v, err)
			}
			executions.add(err.Error())
			if _, err := c.Receive[int]("go"); err != nil {
				return "", err
			}
			late, err := c.Receive[int]("late", durable.OnSignal("late"))
			if late != 7 {
				t.Errorf("the run received %d, %v", late, err)
			}
			return "went on", err
		})
		ctx := within(t)
		e := engineOn(t, s, w, collector)
		stop := running(t, e)
		if _, err := w.Start(ctx, e, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(executions.values()) == 1 })
		stop()
		e = engineOn(t, s, w, collector)
		running(t, e)
		if err := errors.Join(e.Signal(ctx, "run", "late", 7), e.Signal(ctx, "run", "go", 1)); err != nil {
			t.Fatal(err)
		}
		run, err := w.Handle(ctx, e, "run")
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(ctx); got != "went on" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if all := executions.values(); len(all) < 2 || len(slices.Compact(all)) != 1 {
			t.Errorf("the executions saw %q", all)
		}
		if slow.Load() != 1 {
			t.Errorf("the step of a branch that was ended ran %d times", slow.Load())
		}
		var tree *durable.RunNode
		waitFor(t, func() bool { // the child ends by itself, perhaps after its parent
			tree, err = e.Tree(ctx, "run")
			return err != nil || len(tree.Children) != 1 || !slices.Contains([]durable.Status{durable.StatusPending, durable.StatusRunning}, tree.Children[0].Status)
		})
		if err != nil || len(tree.Children) != 1 || tree.Children[0].Status != durable.StatusCancelled {
			t.Errorf("the child of a branch that was ended: %+v, %v", tree, err)
		}
	})
}

// If no branch fails, AllOrCancel works as All and writes no row, but its name cannot be used again.
func TestAllOrCancelOfBranchesThatSucceed(t *testing.T) {
	w := durable.Define("all", func(c *durable.Ctx, n int) ([]int, error) {
		var futures []*durable.Future[int]
		for i := range n {
			futures = append(futures, c.Go(string(rune('a'+i)), func(c *durable.Ctx) (int, error) {
				return c.Step("square", func(context.Context) (int, error) { return i * i, nil })
			}))
		}
		values, err := durable.AllOrCancel(c, "together", futures...)
		if _, twice := durable.AllOrCancel(c, "together", futures...); !errors.Is(twice, durable.ErrDuplicateStep) {
			t.Errorf("the same name twice: %v", twice)
		}
		return values, err
	})
	e := engineOn(t, openStore(t), w)
	if got, err := w.Call(within(t), e, 4, durable.ID("run")); err != nil || !slices.Equal(got, []int{0, 1, 4, 9}) {
		t.Errorf("got %v, %v", got, err)
	}
	if history := historyOf(t, e, "run"); len(history) != 4 {
		t.Errorf("history %+v", history)
	}
}
