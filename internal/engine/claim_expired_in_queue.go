package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/queues"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

const (
	expiredRunsPoll          = time.Second // how often a worker whose slots are all taken looks for expired runs
	maxConcurrentExpirations = 32          // how many of them it ends at once
)

// runsExpiredInQueueClaim claims runs whose time in line is over while all slots of the worker are taken. Such a run was never executed, and is neither
// repaired nor a copy: its function is not called, and its end is all that is written. claimLoop owns it.
type runsExpiredInQueueClaim struct {
	rows  *queues.Summary
	rules *store.QueueClaimRules // of rows
}

// claimRunsExpiredInQueue claims runs whose time in line is over. It returns after how long the worker looks for more, if all slots are still taken. If no
// queue has settings, no run is in line.
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
		return min(wait, 10*expiringRunPoll) // those that were claimed have not ended yet
	}
	got, err := w.claimByQueueRules([]claimShare{{w: w, reservedSlots: beyond}}, 0, func(_ context.Context, q *store.ClaimQuery) (capped bool) {
		q.QueueRules = c.rules
		return false
	})
	if err != nil {
		w.stopIfFatal(err)
		w.log.Warn("could not claim runs whose time in line is over; trying again", telemetry.KeyError, err)
	}
	if got.reachedLimit {
		return expiringRunPoll // by then most of them have ended
	}
	return wait
}

// suspendIfWithoutSlot reports whether the run, which has no slot of its worker, must not go on because its time is not over after all. It is released,
// and claimed again when a slot is free.
func (r *run) suspendIfWithoutSlot() bool {
	if !r.slot.IsBeyond() {
		return false
	}
	r.suspend(suspensionSpec{cause: ErrParked, status: store.Waiting, wakeAt: r.e.clock.Now()})
	return true
}
