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

// A run that began while its queue had no settings counts towards the bounds of its group key when the queue gets settings again, also if
// the run had a StartBy.
func TestARunThatBeganAfterDeleteQueueKeepsItsGroupKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		e := engineOn(t, s, w)
		setQueue := func() {
			t.Helper()
			if err := e.SetQueue(ctx, "mail", durable.QueueSettings{MaxInProgressPerKey: 1}); err != nil {
				t.Fatal(err)
			}
		}
		place := func(id string) *durable.QueuePlace { return orFail(e.Get(ctx, id))(t).Place }
		start := func(id, key string, opts ...durable.StartOption) {
			t.Helper()
			orFail(w.Start(ctx, e, 0, append(opts, durable.ID(id), durable.InQueue("mail"), durable.GroupKey(key))...))(t)
		}
		setQueue()
		if err := e.PauseQueue(ctx, "mail"); err != nil {
			t.Fatal(err)
		}
		running(t, e)
		start("plain", "ada")
		start("start by", "bob", durable.StartBy(time.Hour))
		for _, id := range []string{"plain", "start by"} {
			await(t, "the line", func() bool { p := place(id); return p != nil && p.State == durable.PlaceInLine })
		}
		if err := e.DeleteQueue(ctx, "mail"); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"plain", "start by"} {
			awaitStatus(t, e, id, durable.StatusWaiting)
		}
		setQueue()
		for first, key := range map[string]string{"plain": "ada", "start by": "bob"} {
			start("after "+first, key)
			await(t, "the bound of the key", func() bool {
				p := place("after " + first)
				if p != nil && p.State == durable.PlaceExecuting {
					t.Fatalf("a run of key %s executes while %q is in progress, which is %v", key, first, place(first))
				}
				return p != nil && p.State == durable.PlaceBehindKey
			})
		}
	})
}
