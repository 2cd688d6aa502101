package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// inAwaitedBranch makes the calls of f in a branch for which the function waits.
func inAwaitedBranch(f func(c *durable.Ctx) error) func(c *durable.Ctx) error {
	return func(c *durable.Ctx) error {
		_, err := c.Go("side", func(c *durable.Ctx) (int, error) { return 0, f(c) }).Wait()
		return err
	}
}

// A program that did not change is never held because a Map in a branch executed none, or only some, of its items.
func TestAMapWithItemsLeftOutInABranchIsNotHeld(t *testing.T) {
	for name, test := range map[string]struct {
		opts []durable.MapOption
		ran  string
	}{
		"an item failed":           {opts: []durable.MapOption{durable.Parallel(1)}, ran: "map[after:1 end:1 good:1]"},
		"the options were refused": {opts: []durable.MapOption{durable.ItemOptions(durable.AttemptTimeout(-1))}, ran: "map[after:1 end:1]"},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				before := func(c *durable.Ctx) error {
					failed := inAwaitedBranch(func(c *durable.Ctx) error {
						_, err := c.Map("send", []string{"good", "bad", "left out"}, func(_ context.Context, item string) (int, error) {
							if item == "bad" {
								return 0, errDeclined
							}
							x.add(item)
							return 0, nil
						}, test.opts...)
						return err
					})(c)
					if failed == nil {
						return nil
					}
					return x.steps("after")(c)
				}
				w := waits(before, x.steps("end"))
				info := afterChange(t, s, w, w)
				if info.Diverged || info.Status != durable.StatusCompleted {
					t.Errorf("it is %s, diverged %t: %s", info.Status, info.Diverged, info.Reason)
				}
				if x.String() != test.ran {
					t.Errorf("executed %s, want %s", x, test.ran)
				}
			})
		})
	}
}

// The same program ends in the same way wherever the process dies.
func TestAMapWithItemsLeftOutInABranchSurvivesCrashes(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		failed := inAwaitedBranch(func(c *durable.Ctx) error {
			_, err := c.Map("send", []int{0, 1, 2}, func(_ context.Context, i int) (int, error) {
				if i == 1 {
					return 0, errDeclined
				}
				return i, nil
			}, durable.Parallel(1))
			return err
		})(c)
		if failed == nil {
			return 0, nil
		}
		if err := c.Do("after", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return 0, c.Sleep("rest", time.Hour)
	})
	durabletest.CrashEverywhere(t, w, 0)
}
