package durabletest

import "time"

const maxHolds = 10 // after this number of holds in a row, the wait ends

// runHoldCounter counts how often runs were held because of a cause outside of the run, such as a queue without settings, while
// the same goroutines of the test wait. Such a run is tried again for ever, so without the counter the wait would never end.
type runHoldCounter struct {
	waiter *clockWaiter // the wait of AdvanceUntil, or nil for waits for results
	began  time.Time    // when the last of the waits for results began
	before int64        // the holds in a row before that
}

// hasReachedMaxHolds reports whether nothing was committed during the wait except for maxHolds holds. waiter is nil for waits for results.
func (h *runHoldCounter) hasReachedMaxHolds(nodes []*engineHooks, waiter *clockWaiter) bool {
	now := runHoldCounter{waiter: waiter}
	var holds int64
	for _, n := range nodes {
		holds += n.holdsInARow.Load()
		if e := n.engine.Load(); e != nil {
			for _, a := range e.ListAwaitCallers() {
				if a.Began.After(now.began) {
					now.began = a.Began
				}
			}
		}
	}
	if waiter != h.waiter || !now.began.Equal(h.began) { // the test may have acted in between
		now.before = holds
		*h = now
	}
	h.before = min(h.before, holds)
	return holds-h.before >= maxHolds
}
