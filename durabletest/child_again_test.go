package durabletest_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// Each generation of a run starts a child of its own, also if the clock has not advanced since an earlier generation started one with
// the same name.
func TestGenerationsStartChildrenOfTheirOwnAtOneTime(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		var broken bool
		kid := durable.Define("kid", func(_ *durable.Ctx, n int) (int, error) { return n + 1, nil })
		repaired := durable.Define("repaired", func(c *durable.Ctx, n int) (int, error) {
			got, err := c.Child("kid", kid, n)
			if err != nil {
				return 0, err
			}
			return got, c.Do("last", func(context.Context) error {
				if broken {
					return errors.New("broken")
				}
				return nil
			})
		})
		continued := durable.Define("continued", func(c *durable.Ctx, n int) (int, error) {
			got, err := c.Child("kid", kid, n)
			if err != nil || got == 5 {
				return got, err
			}
			return 0, c.ContinueAsNew(got)
		})
		e := durabletest.NewWithOptions(t, defs(repaired, continued, kid), opts...)
		broken = true
		run, err := repaired.Start(quickly(t), e.Engine, 0, durable.ID("repaired"))
		must(t, err)
		for range 3 {
			if _, err := run.Result(quickly(t)); err == nil {
				t.Fatal("the run has completed")
			}
			_, err = e.Retry(quickly(t), "repaired", durable.From("kid"))
			must(t, err)
		}
		if _, err := run.Result(quickly(t)); err == nil {
			t.Fatal("the run has completed")
		}
		broken = false
		_, err = e.Retry(quickly(t), "repaired")
		must(t, err)
		if got := resultOf(t, run); got != 1 {
			t.Errorf("the run that was repaired: %d", got)
		}
		again, err := continued.Start(quickly(t), e.Engine, 1, durable.ID("continued"))
		must(t, err)
		if got := resultOf(t, again); got != 5 {
			t.Errorf("the run that continues as new: %d", got)
		}
		tree, err := e.Tree(quickly(t), "repaired")
		must(t, err)
		newest := slices.DeleteFunc(tree.Children, func(n *durable.RunNode) bool { return n.ParentGeneration > 0 })
		if len(newest) != 1 || newest[0].Status != durable.StatusCompleted {
			t.Errorf("the children of the newest generation are %+v", newest)
		}
	})
}
