package durable_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A version that diverged on a run is recorded on the run, and does not claim it again after another version has continued it, however
// often the run waits meanwhile. Versions that have not diverged claim it as any other run.
func TestAVersionThatDivergedDoesNotClaimTheRunAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const signals = 5
		define := func(executed *atomic.Int32, charge func(*durable.Ctx) error) *durable.Workflow[int, string] {
			return durable.Define("long", func(c *durable.Ctx, _ int) (string, error) {
				executed.Add(1)
				if err := charge(c); err != nil {
					return "", err
				}
				for i := range signals {
					if _, err := c.Receive[int](fmt.Sprint("go-", i)); err != nil {
						return "", err
					}
				}
				return "shipped", nil
			})
		}
		charge := func(c *durable.Ctx) error { return c.Do("charge", func(context.Context) error { return nil }) }
		var old, diverging, fixed atomic.Int32
		client := engineOn(t, s)
		next := 0
		signal := func() {
			t.Helper()
			if err := client.Signal(within(t), "run", fmt.Sprint("go-", next), 1); err != nil {
				t.Fatal(err)
			}
			next++
		}
		received := func() {
			t.Helper()
			waitFor(t, func() bool {
				return len(historyOf(t, client, "run")) == next+2 && read(client.Get(within(t), "run"))(t).Status == durable.StatusWaiting
			})
		}
		stop := atVersion(t, s, "v1", define(&old, charge))
		run := read(define(&old, charge).Start(within(t), client, 0, durable.ID("run")))(t)
		received()
		stop()
		atVersion(t, s, "v2", define(&diverging, asSleep))
		signal()
		awaitStatus(t, client, "run", durable.StatusPaused)
		stop = atVersion(t, s, "v1", define(&old, charge))
		received()
		tried := diverging.Load()
		for next < signals-1 {
			signal()
			received()
			all := read(client.Divergences(within(t), "run"))(t)
			if len(all) != 1 || all[0].Version != "v2" || all[0].ContinuedBy != "v1" {
				t.Fatalf("the divergences are %+v", all)
			}
		}
		stop()
		atVersion(t, s, "v3", define(&fixed, charge))
		signal()
		if out, err := run.Result(within(t)); out != "shipped" || err != nil || fixed.Load() != 1 || diverging.Load() != tried {
			t.Errorf("%q, %v, executed %d times by v3, and %d times by v2 after it diverged", out, err, fixed.Load(), diverging.Load()-tried)
		}
		waitFor(t, func() bool { return len(read(client.Divergences(within(t), "run"))(t)) == 0 })
	})
}
