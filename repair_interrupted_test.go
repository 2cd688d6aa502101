package durable_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// An attempt that a choice or a repair has interrupted is not the last one that the retry policy of its step allows: it did not fail, nor did its
// process die.
func TestAnInterruptedLastAttemptIsFollowedByAnother(t *testing.T) {
	twice := durable.Retry(durable.Fixed(time.Millisecond, 2))
	onStores(t, func(t *testing.T, s durable.Store) {
		var f fixable
		var packs atomic.Int32
		g, fail := newGate(), make(chan struct{}, 2)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("weigh", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			pack := c.Go("pack", func(c *durable.Ctx) (string, error) {
				return "", c.Do("pack", func(ctx context.Context) error {
					if packs.Add(1) == 1 {
						return errDeclined
					}
					return g.pass(ctx)
				}, twice)
			})
			charge := c.Go("charge", func(c *durable.Ctx) (string, error) {
				return "", c.Do("charge", func(ctx context.Context) error {
					select {
					case <-fail:
					case <-ctx.Done():
					}
					return f.err()
				})
			})
			_, err := durable.AllOrCancel(c, "both", pack, charge)
			return "packed", err
		}, durable.RetryRun(durable.Fixed(time.Millisecond, 2)))
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		packing := func() {
			<-g.entered
			waitFor(t, func() bool { // the started marker is written
				history := historyOf(t, e, "r")
				i := slices.IndexFunc(history, func(c durable.Checkpoint) bool { return c.Name == "pack/pack" })
				return i >= 0 && history[i].Status == durable.CheckpointStarted && history[i].Attempts == int(packs.Load())
			})
		}
		packing()
		orFail(e.Rerun(within(t), "r", "weigh", durable.InterruptSteps()))(t)
		packing()
		fail <- struct{}{} // the choice interrupts the packing, and RetryRun executes it again
		packing()
		fail <- struct{}{}
		awaitStatus(t, e, "r", durable.StatusFailed)
		f.fixed.Store(true)
		close(g.open)
		close(fail)
		orFail(e.Retry(within(t), "r"))(t)
		wantResult(t, w, e, "r", "packed")
	})
}
