package engine

import (
	"context"
	"slices"

	"github.com/seed8ec063be/durable/internal/queues"
	"github.com/seed8ec063be/durable/internal/store"
)

// lastClaimQueueRules holds the rules for queues that the last claim had, and what they were made from.
type lastClaimQueueRules struct {
	rows                    *queues.Summary
	fullQueues              []string
	rules                   *store.QueueClaimRules
	skippedPartlyFullQueues bool // the last claim left out queues from which it might have taken some runs
}

// hasQueuesLimitedPerWorker reports whether a worker may execute only some runs of a queue at once.
func (w *worker) hasQueuesLimitedPerWorker(ctx context.Context) bool {
	rows := w.queueAdmitter.SummaryOrRead(ctx)
	return rows != nil && len(rows.MaxExecutingPerWorker) > 0
}

// setQueueRulesOfClaim sets which queues a claim leaves out, or lowers its limit, so that the worker executes no more runs of a queue
// than it may. Runs that bypass their queue are never left out, and do not count. It reports whether the claim leaves out queues from
// which it could take some runs, but fewer than its limit; the next claim then takes from these queues. A claim takes no run of a
// paused queue that has not begun.
func (w *worker) setQueueRulesOfClaim(ctx context.Context, q *store.ClaimQuery) (skipsPartlyFullQueues bool) {
	rows := w.queueAdmitter.SummaryOrRead(ctx)
	if rows == nil || len(rows.UndeletedNames) == 0 {
		return false // if the rows are not known, an admission later counts the claimed runs
	}
	var full, few []string
	least := q.Limit
	if len(rows.MaxExecutingPerWorker) > 0 {
		executing := make(map[string]int)
		for _, r := range w.loadedRuns.all() {
			if !r.bypassesQueue {
				executing[r.row.Queue]++
			}
		}
		for name, most := range rows.MaxExecutingPerWorker {
			switch left := most - executing[name]; {
			case left <= 0:
				full = append(full, name)
			case left < q.Limit:
				few = append(few, name)
				least = min(least, left)
			}
		}
	}
	if skipsPartlyFullQueues = len(few) > 0 && !w.lastClaimRules.skippedPartlyFullQueues; skipsPartlyFullQueues {
		full = append(full, few...)
	} else {
		q.Limit = least
	}
	slices.Sort(full)
	if w.lastClaimRules.rows != rows || !slices.Equal(w.lastClaimRules.fullQueues, full) {
		w.lastClaimRules.rows, w.lastClaimRules.fullQueues, w.lastClaimRules.rules = rows, full, store.NewQueueClaimRules(rows.UndeletedNames, full, rows.PausedNames)
	}
	w.lastClaimRules.skippedPartlyFullQueues = skipsPartlyFullQueues
	q.QueueRules = w.lastClaimRules.rules
	return skipsPartlyFullQueues
}
