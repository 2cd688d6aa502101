package store

import (
	"testing"
	"time"
)

// A rate bounds beginnings: while no worker has a free slot, no more than a burst is admitted, for whatever time, and when the slots
// come free, the rate goes on from there.
func TestARateBoundsBeginningsWhileWorkersAreBusy(t *testing.T) {
	rate := Rate{Count: 2, Period: time.Second, Burst: 3}
	for what, s := range map[string]QueueSettings{"the queue": {Rate: rate}, "a key": {RatePerKey: rate}} {
		t.Run(what, func(t *testing.T) {
			q := newQueueInMemory(s)
			for range 200 {
				q.start("k", 0, 1, true)
			}
			passUntil := func(end time.Time) { // makes the passes that a worker makes
				for {
					next := q.settle(t, 50).NextPassAt
					if next.IsZero() || next.After(end) {
						q.state.Now = end
						return
					}
					q.state.Now = next
				}
			}
			var began []time.Time
			claim := func() {
				for range q.claim() {
					began = append(began, q.state.Now)
				}
			}
			for i := range 40 { // slots are free at once, and then a minute and then again two seconds later, and so on
				wait := 100 * time.Millisecond
				if i%10 == 0 {
					wait = time.Minute
				}
				passUntil(q.state.Now.Add(wait))
				claim()
			}
			if len(began) < 4*3 {
				t.Fatalf("%d runs began", len(began))
			}
			for i, from := range began {
				for j := i; j < len(began); j++ {
					window := began[j].Sub(from)
					// The time of a claim is known to a pass; see countUnclaimedTowardRates.
					if most := float64(rate.Burst) + float64(rate.Count)*(window+2*UnclaimedStopsRateAfter).Seconds(); float64(j-i+1) > most {
						t.Fatalf("%d runs began within %v, want at most %.1f", j-i+1, window, most)
					}
				}
			}
		})
	}
}
