package durable_test

import (
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A dry run of a fork under another ID returns the error that the fork returns.
func TestDryRunOfAForkReturnsTheErrorsOfTheFork(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) { return in, nil })
		e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}, Codec: bothCodecs(t, "a")})
		running(t, e)
		for _, id := range []string{"r", "taken"} {
			orFail(w.Call(ctx, e, "in", durable.ID(id), durable.InQueue("q")))(t)
		}
		fork := func(e *durable.Engine, id string, want error) {
			t.Helper()
			for _, opts := range [][]durable.ControlOption{{durable.DryRun()}, {}} {
				if _, err := e.Fork(ctx, "r", append(opts, durable.FromEnd(), durable.NewID(id))...); !errors.Is(err, want) {
					t.Errorf("%d options: %v, want %v", len(opts), err, want)
				}
			}
		}
		fork(e, "taken", durable.ErrIDConflict)
		fork(engineAsGiven(t, s, durable.Config{Codec: bothCodecs(t, "b")}), "copy", durable.ErrUnreadable)
		if err := e.SetQueue(ctx, "q", durable.QueueSettings{Closed: true}); err != nil {
			t.Fatal(err)
		}
		fork(e, "copy", durable.ErrQueueClosed)
	})
}
