package durable_test

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A run that ends while its function sleeps or waits for a child, and whose process stops while the run compensates, continues to compensate in
// another process at once: the function does not sleep or wait there again.
func TestARunThatCompensatesAgainDoesNotSleep(t *testing.T) {
	waits := map[string]func(c *durable.Ctx) error{
		"sleep":   func(c *durable.Ctx) error { return c.Sleep("night", 24*time.Hour) },
		"child":   func(c *durable.Ctx) error { _, err := c.Child("kid", forever, 1); return err },
		"receive": func(c *durable.Ctx) error { _, err := c.Receive[int]("signal"); return err },
		"branch sleeps": func(c *durable.Ctx) error {
			_, err := c.Go("branch", func(c *durable.Ctx) (int, error) { return 1, c.Sleep("night", 24*time.Hour) }).Wait()
			return err
		},
	}
	for what, wait := range waits {
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
					if want == durable.StatusCancelled {
						must(t)(e.Cancel(within(t), "run"))
					} else if err := e.SetTimeout(within(t), "run", time.Millisecond); err != nil {
						t.Fatal(err)
					}
					<-undo.entered
					stop()
					close(undo.open)
					running(t, engineOn(t, s, w, forever))
					if _, err := run.Result(within(t)); err == nil {
						t.Error("the run has completed")
					}
					awaitStatus(t, e, "run", want)
				})
			})
		}
	}
}
