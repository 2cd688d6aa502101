package engine

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// checkStartBy returns false if the run's function must not be called: the run has not begun by its StartBy, its queue has let it
// through without a place so that it expires, or this process is shutting down. The first execution removes the control bit
// HasStartBy before anything else is recorded, so that later executions need not read StartBy again. As long as the run has the bit,
// it has not begun. A run that is late or suspended keeps the bit, so that it also expires if this process ends before it has written
// the run's end.
func (r *run) checkStartBy() bool {
	noted := r.row.Control&store.HasStartBy != 0
	if !noted && !r.mayHaveBypassedQueue() {
		return true
	}
	own, err := r.readQueuePlace()
	switch {
	case err != nil:
		r.suspendAfterFailedWrite("begin the run", "", err)
		return false
	case own.State == store.PlaceBypassed && r.row.Control&store.CancelRequested == 0:
		return r.awaitExpiryAfterBypassedQueue(own)
	case !noted:
		return true
	}
	kept, late := false, false
	err = r.e.retryUntilPatienceEnds(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() (err error) {
		if late = !own.StartBy.IsZero() && !r.isForcedToEnd() && r.e.clock.Now().After(own.StartBy); late || r.isSuspended() {
			return nil
		}
		kept, err = r.e.store.ClearStartByDeadline(r.writeCtx, r.row.UUID, r.row.Epoch)
		return err
	})
	switch {
	case err != nil:
		r.suspendAfterFailedWrite("begin the run", "", err)
	case late:
		r.expireUnbegun(own.StartBy)
	case !kept && !r.isSuspended():
		r.loseOwnership()
	}
	return kept
}

// mayHaveBypassedQueue reports whether the queue may have let the run through without a place because the run's deadline has passed.
func (r *run) mayHaveBypassedQueue() bool {
	if r.deadline.expiryTime().IsZero() {
		return false
	}
	rows := r.e.queueRows.CachedRows()
	_, found := rows[r.row.Queue]
	return found || rows == nil
}

// expiringRunPoll is how often awaitExpiryAfterBypassedQueue checks whether the run has expired.
const expiringRunPoll = 5 * time.Millisecond

// awaitExpiryAfterBypassedQueue handles a run that its queue has let through without a place, because its StartBy or its deadline has passed by
// the queue's clock. That clock may be ahead of this process's clock, so the run waits until the time has passed here, too. It reports whether
// the run's function must be called, so that it registers its compensations again. If the deadline is changed meanwhile, the run goes back to
// its queue.
func (r *run) awaitExpiryAfterBypassedQueue(own *store.QueuedRun) bool {
	mayCompensate := own.HasBegun || r.isRepairedOrHasCalls()
	at := r.deadline.expiryTime()
	if !own.HasBegun && !own.StartBy.IsZero() && (at.IsZero() || !at.Before(own.StartBy)) {
		if !r.isForcedToEnd() {
			r.expireUnbegun(own.StartBy)
		}
		return mayCompensate && !r.isSuspended()
	}
	for !r.isForcedToEnd() && !r.isSuspended() {
		if !r.deadline.expiryTime().Equal(at) {
			r.suspend(suspensionSpec{cause: ErrParked, status: store.Waiting, wakeAt: r.e.clock.Now()})
			break
		}
		wakeup.SleepCtx(r.ctx, expiringRunPoll)
	}
	return mayCompensate && !r.isSuspended()
}

// isRepairedOrHasCalls reports whether the run may have had effects although its place in the queue has not begun: a repaired run, and a fork
// of a run, gets a new place.
func (r *run) isRepairedOrHasCalls() bool { return r.repairRecordCount > 0 || r.hasRecordedCalls() }

// expireUnbegun makes the run expire, because it has not begun by the given time.
func (r *run) expireUnbegun(at time.Time) {
	r.forceEnd(forcedEnd{cause: ErrTimeout, status: store.Expired, failure: &record.Failure{
		Message: fmt.Sprintf("the run had not begun by %s (StartBy)", at.Format(time.RFC3339Nano)), Type: "timeout", Codes: []string{record.CodeTimeout},
	}})
}
