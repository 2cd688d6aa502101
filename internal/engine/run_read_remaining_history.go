package engine

import (
	"context"

	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A claim returns only small histories in full. The rest of a longer history is read in parts before the
// run's function is called. The run's lease is renewed meanwhile, as for any run in memory. So reading a
// history may take longer than a claim or a lease lasts.
const (
	historyPartBytes          = 1 << 20 // the size of one part
	maxConcurrentHistoryReads = 2       // histories read at once, so that connections remain for everything else
)

// readRemainingHistory reads the rest of the history. It reports false if the run is suspended before the history is
// complete.
func (r *run) readRemainingHistory() bool {
	ctx, cancel := context.WithCancel(r.ownedCtx) // not r.ctx: a run that is to be cancelled is executed once more, for its compensations
	defer cancel()
	defer context.AfterFunc(r.ctx, func() {
		if r.isSuspended() {
			cancel()
		}
	})()
	select {
	case r.w.historyReadSlots <- struct{}{}:
		defer func() { <-r.w.historyReadSlots }()
	case <-ctx.Done():
	}
	for wait := firstClaimRetryDelay; r.unreadHistory.Exists; {
		if r.isSuspended() || ctx.Err() != nil {
			return false
		}
		steps, rest, err := r.e.store.HistoryFrom(ctx, r.row.UUID, r.unreadHistory.FirstStepName, historyPartBytes)
		if err != nil {
			if ctx.Err() == nil {
				r.logger().Warn("could not read the history of a run; trying again", telemetry.KeyError, err)
			}
			if !wakeup.SleepCtx(ctx, wait) {
				return false
			}
			wait = min(2*wait, maxClaimRetryDelay)
			continue
		}
		wait = firstClaimRetryDelay
		r.addHistory(steps)
		r.unreadHistory = rest
	}
	r.loadBranchEnds()
	r.noteHistoryComplete()
	r.initMissingCallCounts()
	return true
}
