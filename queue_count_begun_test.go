package durable_test

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Runs that wait, are paused or wait for a child when their queue gets a bound on runs in progress count at once: no root run begins
// before those are few enough.
func TestRunsThatWaitWhenTheirQueueGetsABoundCount(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		w := durable.Define("w", func(c *durable.Ctx, withChild bool) (int, error) {
			if withChild {
				return c.Child("leaf", leaf, 0)
			}
			return c.Receive[int]("go")
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, leaf}, ParkAfter: time.Millisecond})
		running(t, e)
		status := func(id string) durable.Status { return orFail(e.Get(ctx, id))(t).Status }
		waits := func(id string, withChild bool) {
			t.Helper()
			orFail(w.Start(ctx, e, withChild, durable.ID(id), durable.InQueue("mail")))(t)
			await(t, id, func() bool { return status(id) == durable.StatusWaiting })
		}
		waits("signal", false)
		waits("child", true)
		waits("paused", false)
		orFail(e.Pause(ctx, "paused"))(t)
		await(t, "the pause", func() bool { return status("paused") == durable.StatusPaused })

		if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxInProgress: 3}); err != nil {
			t.Fatal(err)
		}
		next := orFail(w.Start(ctx, e, false, durable.ID("next"), durable.InQueue("mail")))(t)
		await(t, "the bound", func() bool {
			q := orFail(e.Queues(ctx))(t)[0]
			if q.InProgress > 3 {
				t.Fatalf("the queue is %+v", q)
			}
			return q.InProgress == 3 && q.BlockedBy == durable.BlockedByMaxInProgress
		})
		if got := status("next"); got != durable.StatusPending {
			t.Errorf("the next run is %v while three are in progress", got)
		}
		for _, id := range []string{"signal", "next"} {
			if err := e.Signal(ctx, id, "go", 1); err != nil {
				t.Fatal(err)
			}
		}
		if n, err := next.Result(ctx); n != 1 || err != nil {
			t.Errorf("the next run returned %d, %v", n, err)
		}
	})
}
