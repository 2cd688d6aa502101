package durable_test

import (
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run whose records this process cannot decode does not keep RetryAll from the others.
func TestRetryAllPassesARunWithoutItsKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var f fixable
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) { return "done", l.do(c, "charge", f.err()) })
		engine := func(keys string) (*durable.Engine, func()) {
			e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}, Codec: bothCodecs(t, keys)})
			return e, running(t, e)
		}
		e, stop := engine("new")
		wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("older")))(t))
		stop()
		e, stop = engine("old")
		wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("newer")))(t))
		orFail(e.Retry(within(t), "newer"))(t)
		awaitStatus(t, e, "newer", durable.StatusFailed)
		stop()
		f.fixed.Store(true)
		e, _ = engine("new")
		all, err := e.RetryAll(within(t), durable.Filter{Workflow: "w"})
		if err != nil || all.Matched != 2 || len(all.Repaired) != 1 || len(all.Refused) != 1 || all.Refused[0].ID != "newer" || !errors.Is(all.Refused[0].Err, durable.ErrUnreadable) {
			t.Fatalf("it did %+v, %v", all, err)
		}
		awaitStatus(t, e, "older", durable.StatusCompleted)
	})
}
