package durable_test

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Runs that have a place when their queue is paused, and that no worker has claimed, begin when it is resumed, and not before.
// What has begun goes on.
func TestNothingOfAPausedQueueBegins(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var begun atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, waits bool) (int, error) {
			begun.Add(1)
			if waits {
				return c.Receive[int]("go on")
			}
			return 1, nil
		})
		client := engineOn(t, s)
		if err := client.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 5}); err != nil {
			t.Fatal(err)
		}
		first := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: time.Millisecond})
		stop := running(t, first)
		waits := orFail(w.Start(ctx, first, true, durable.InQueue("mail")))(t)
		await(t, "the run to wait", func() bool { return orFail(client.Get(ctx, waits.ID()))(t).Status == durable.StatusWaiting })
		stop()
		begun.Store(0)

		var admitted []*durable.Run[int]
		for range 3 {
			admitted = append(admitted, orFail(w.Start(ctx, client, false, durable.InQueue("mail")))(t))
		}
		await(t, "places", func() bool {
			if err := s.AdmitRuns(ctx, &store.AdmissionRequest{Queue: "mail", Now: orFail(s.Now(ctx))(t), CloseDurationAfterRewind: time.Minute}); err != nil {
				t.Fatal(err)
			}
			for _, run := range admitted {
				if orFail(client.Get(ctx, run.ID()))(t).Place.State != durable.PlaceExecuting {
					return false
				}
			}
			return true
		})
		if err := client.PauseQueue(ctx, "mail"); err != nil {
			t.Fatal(err)
		}
		if err := client.Signal(ctx, waits.ID(), "go on", 2); err != nil {
			t.Fatal(err)
		}
		other := orFail(w.Start(ctx, client, false))(t) // the claim that takes it could take the others, too
		running(t, engineOn(t, s, w))
		for _, run := range []*durable.Run[int]{other, waits} {
			if _, err := run.Result(ctx); err != nil {
				t.Fatal(err)
			}
		}
		if n := begun.Load(); n != 2 {
			t.Fatalf("%d functions were called, want those of the run in another queue and of the run that had begun", n)
		}
		if err := client.ResumeQueue(ctx, "mail"); err != nil {
			t.Fatal(err)
		}
		for _, run := range admitted {
			if _, err := run.Result(ctx); err != nil {
				t.Error(err)
			}
		}
	})
}
