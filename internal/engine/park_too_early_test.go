package engine

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A wait that begins after the run was suspended is not considered in the time when the run is woken. So the run was parked too early,
// and is woken soon. A goroutine that was notified of the suspension may wait again without that.
func TestAWaitThatBeginsAfterTheRunParked(t *testing.T) {
	for _, notified := range []bool{false, true} {
		r := &run{w: new(worker), e: new(Engine)}
		r.idleTracker.r, r.idleTracker.stopped = r, true
		s := &suspension{cause: ErrParked, status: store.Waiting, wakeAt: time.Now().Add(time.Hour)}
		r.suspension, r.goroutines.allReturned = s, true
		if notified {
			r.noteNotified()
		}
		r.idleTracker.endWait(r.idleTracker.beginWait(time.Now().Add(time.Minute)))
		if _, early := r.earlyParkDelay(s); early == notified {
			t.Errorf("a goroutine that was notified (%v) waits: parked too early is %v", notified, early)
		}
	}
}
