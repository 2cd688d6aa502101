package durable_test

import (
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run that ends while its function sleeps or waits for a child, and whose process stops while the run compensates, continues to compensate in
// another process at once: the function does not sleep or wait there again.
func TestARunThatCompensatesAgainDoesNotSleep(t *testing.T) {
	for what, wait := range waitsOfADay {
		for _, want := range []durable.Status{durable.StatusCancelled, durable.StatusExpired} {
			t.Run(what+" "+string(want), func(t *testing.T) {
				onStores(t, func(t *testing.T, s durable.Store) {
					undo := newGate()
					w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
						if err := c.Compensate("undo", undo.pass); err != nil {
							return 0, err
						}
						return 1, wait(c)
					})
					e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, forever}, Grace: -1})
					stop := running(t, e)
					run := read(w.Start(within(t), e, 1, durable.ID("run")))(t)
					awaitStatus(t, e, "run", durable.StatusWaiting)
					endAs(t, e, want)
					compensateTwice(t, undo, stop, engineOn(t, s, w, forever), want)
					if _, err := run.Result(within(t)); err == nil {
						t.Error("the run has completed")
					}
				})
			})
		}
	}
}
