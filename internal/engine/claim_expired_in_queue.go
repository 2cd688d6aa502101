package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/queues"
	"github.com/seed8ec063be/durable/internal/store"
)

const (
	expiredRunsPoll          = time.Second // how often a worker whose slots are all taken claims expired runs
	maxConcurrentExpirations = 32          // how many expired runs it ends at once
)

// runsExpiredInQueueClaim holds the rules for claims of runs whose StartBy or deadline has passed while they were in line. A worker makes such
// claims while all its slots are taken. Such a run was never executed, and is neither a repaired run nor a fork: its function is not called,
// and only its end is written. Only claimLoop uses a runsExpiredInQueueClaim.
type runsExpiredInQueueClaim struct {
	rows  *queues.Summary
	rules *store.QueueClaimRules // made from rows
}

// claimRunsExpiredInQueue claims runs whose StartBy or deadline has passed while they were in line. It returns the time until the next such
// claim, which the worker makes if all slots are still taken. If no queue has settings, no run is in line.
func (w *worker) claimRunsExpiredInQueue() (wait time.Duration) {
	wait = expiredRunsPoll/2 + rand.N(expiredRunsPoll/2)
	rows, c := w.queueAdmitter.LatestSummary(), &w.expiredRunsClaim
	if rows == nil || len(rows.UndeletedNames) == 0 {
		return wait
	}
	if c.rows != rows {
		c.rows, c.rules = rows, store.NewClaimRulesForExpiredRuns(rows.UndeletedNames)
	}
	beyond := w.slots.AcquireBeyond(maxConcurrentExpirations)
	if beyond.Capacity() == 0 {
		return min(wait, 10*expiringRunPoll) // the expired runs that were claimed have not ended yet
	}
	got, err := w.claimByQueueRules([]claimShare{{w: w, reservedSlots: beyond}}, 0, func(_ context.Context, q *store.ClaimQuery) (capped bool) {
		q.QueueRules = c.rules
		return false
	})
	if err != nil {
		w.stopIfFatal(err)
		w.logFailure("could not claim runs whose time in line is over; trying again", err)
	}
	if got.reachedLimit {
		return expiringRunPoll // by then most of the claimed runs have ended
	}
	return wait
}

// suspendIfWithoutSlot suspends a run that was claimed as expired and has no slot, but has not expired, for example because its deadline was
// changed. The run is released, and claimed again when a slot is free. It reports whether it has suspended the run.
func (r *run) suspendIfWithoutSlot() bool {
	if !r.slot.IsBeyond() {
		return false
	}
	r.suspend(suspensionSpec{cause: ErrParked, status: store.Waiting, wakeAt: r.e.clock.Now()})
	return true
}
