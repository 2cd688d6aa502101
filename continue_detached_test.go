package durable_test

import (
	"context"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run continues as new although a detached child is live whose call the code no longer makes, because of a repair or of newer code.
func TestADetachedChildWhoseCallIsNotMadeDoesNotPreventContinueAsNew(t *testing.T) {
	for name, retires := range map[string]bool{"override": false, "retired": true} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				audit := durable.Define("audit", func(c *durable.Ctx, _ string) (int, error) { return c.Receive[int]("stop") })
				version := func(starts bool, opts ...durable.WorkflowOption) (*durable.Workflow[int, int], *durable.Engine, func()) {
					w := durable.Define("account", func(c *durable.Ctx, n int) (int, error) {
						audited, err := c.Step("audited", func(context.Context) (bool, error) { return true, nil })
						if err != nil {
							return 0, err
						}
						if n == 0 && starts && audited {
							if _, err := c.StartChild("audit", audit, "", durable.Detached()); err != nil {
								return 0, err
							}
						}
						v, err := c.Receive[int]("deposit")
						if err != nil || n > 0 {
							return n + v, err
						}
						return 0, c.ContinueAsNew(n + v)
					}, opts...)
					e := engineOn(t, s, w, audit)
					return w, e, running(t, e)
				}
				w, e, stop := version(true)
				run := orFail(w.Start(within(t), e, 0, durable.ID("a")))(t)
				awaitStatus(t, e, "a", durable.StatusWaiting)
				if retires {
					stop()
					_, e, _ = version(false, durable.Retired("audit"))
				} else {
					orFail(e.Override(within(t), "a", "audited", false, durable.FromEnd()))(t)
				}
				for _, v := range []int{1, 20} {
					if err := e.Signal(within(t), "a", "deposit", v); err != nil {
						t.Fatal(err)
					}
				}
				if got := orFail(run.Result(within(t)))(t); got != 21 {
					t.Errorf("the balance is %d", got)
				}
			})
		})
	}
}
