package engine

import (
	"errors"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A claim costs a round trip and a commit. Without prefetching, slots that came free would stay empty for
// that time. So while more runs are due than slots are free, a worker also claims runs without a slot. It
// keeps them in memory, renews their leases, and gives them the next free slots. It prefetches at most as
// many runs as slots came free recently, so that other workers take the runs that would wait long here. A prefetched run that waits
// longer than maxPrefetchedSlotWait is released.

// maxPrefetchedSlotWait is how long a prefetched run waits for a slot before it is released.
const maxPrefetchedSlotWait = 500 * time.Millisecond

// errPrefetchExpired is the cause with which a prefetched run is released.
var errPrefetchExpired = errors.New("durable: no slot came free for the run")

// awaitSlot waits until the prefetched run has a slot. It returns without a slot if the run is suspended first, or if the wait lasts
// longer than maxPrefetchedSlotWait.
func (r *run) awaitSlot() {
	t := time.NewTimer(maxPrefetchedSlotWait)
	defer t.Stop()
	ended := r.ctx.Done()
	for {
		select {
		case <-r.slot.WhenGiven():
			return
		case <-ended:
			if r.currentSuspension() == nil { // the run is to be cancelled, and is executed so that its compensations run
				ended = nil
				continue
			}
		case <-t.C:
			r.suspend(suspensionSpec{cause: errPrefetchExpired, status: store.Pending})
		}
		r.slot.LeaveQueue()
		return
	}
}
