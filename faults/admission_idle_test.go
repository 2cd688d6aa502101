package faults

import (
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Row 52: processes are killed at each round trip of an admission that counts the runs which wait when their queue gets a bound.
// Afterwards each of them is counted once, and no other run has begun.
func TestRow52_DeathWhileIdleRunsAreCounted(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		b := newBlockedSteps(0)
		w := b.blocked()
		s := &gatedAdmissions{Store: db.openIn(t)}
		e := engineOn(t, s, durable.Config{Lease: time.Minute, Poll: 50 * time.Millisecond, ParkAfter: time.Millisecond}, w)
		counts := countsOf(t, db)
		runEngine(t, e)
		for i := range 3 {
			id := fmt.Sprint("waits ", i)
			start(t, e, w, "waits", durable.ID(id), durable.InQueue("q"))
			b.release(id)
			await(t, id, func() bool { return info(t, e, id).Status == durable.StatusWaiting })
		}
		s.set(true)
		must(t, "set", e.SetQueue(bounded(t), "q", durable.QueueSettings{MaxInProgress: 3}))
		start(t, e, w, "", durable.ID("next"), durable.InQueue("q"))
		deaths, points := dieInPasses(t, db, "q", counts)
		s.set(false)
		await(t, "the waiting runs to be counted", func() bool {
			q := queueInfo(t, e, "q")
			return q.InProgress == 3 && q.BlockedBy == durable.BlockedByMaxInProgress
		})
		if b.has("next") || deaths < 5 {
			t.Errorf("the next run has begun: %v, after %d deaths at %d points", b.has("next"), deaths, points)
		}
		counts.check(t, "at the end")
		must(t, "signal", e.Signal(bounded(t), "waits 0", "go", 1))
		await(t, "the next run", func() bool { return b.has("next") })
		b.release("next")
	})
}
