package engine

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// signalCountQueue holds the runs that request a count of their unreceived signals.
type signalCountQueue struct {
	wakeLoop wakeup.Chan

	mu   sync.Mutex
	runs []*run
}

// add requests a count for the receives that wait in the run.
func (q *signalCountQueue) add(r *run) {
	q.mu.Lock()
	q.runs = append(q.runs, r)
	q.mu.Unlock()
	q.wakeLoop.Notify()
}

// takeAll empties the queue and returns its runs.
func (q *signalCountQueue) takeAll() []*run {
	q.mu.Lock()
	defer q.mu.Unlock()
	runs := q.runs
	q.runs = nil
	return runs
}

// signalCountLoop counts the unreceived signals of the runs that requested a count, and calls the receives for
// which there are signals. The worker owns its goroutine.
func (w *worker) signalCountLoop(ctx context.Context) {
	for {
		select {
		case <-w.signalCounts.wakeLoop:
		case <-ctx.Done():
			return
		}
		if runs := w.signalCounts.takeAll(); len(runs) > 0 {
			w.countSignals(ctx, runs)
		}
	}
}

// countSignals reads the counts for the runs once, and delivers them to the waitingReceives of the runs. While the database is
// unavailable it retries, because no signal can be received then. After any other error it calls all receives, so that each of them
// queries for itself and gets the error.
func (w *worker) countSignals(ctx context.Context, runs []*run) {
	ids := make([]uuid.UUID, len(runs))
	for i, r := range runs {
		ids[i] = r.row.UUID
		r.waitingReceives.beginSignalCount()
	}
	wait := firstReadRetryDelay
	var counts []store.SignalCount
	for {
		limited, cancel := context.WithTimeout(ctx, w.e.cfg.Lease/3)
		var err error
		counts, err = w.e.store.CountUnreceivedSignals(limited, ids)
		cancel()
		if err == nil {
			break
		}
		if ctx.Err() != nil {
			return // the worker is stopping: all of its runs have been released
		}
		w.logFailure("could not count the signals that wait for the runs here; trying again", err, telemetry.KeyCount, len(runs))
		if !isOutage(err) {
			for _, r := range runs {
				r.waitingReceives.deliverSignalCounts(nil, false)
			}
			return
		}
		if !wakeup.SleepCtx(ctx, wait) {
			return
		}
		wait = min(2*wait, w.e.cfg.Lease/3)
	}
	for _, r := range runs {
		r.waitingReceives.deliverSignalCounts(takeSignalCounts(r.row.UUID, &counts), true)
	}
}

// takeSignalCounts removes the counts of one run from the front of all, which is in the order of the runs, and
// returns them by signal name.
func takeSignalCounts(run uuid.UUID, all *[]store.SignalCount) map[string]int {
	var names map[string]int
	for len(*all) > 0 && (*all)[0].Run == run {
		if names == nil {
			names = make(map[string]int)
		}
		names[(*all)[0].Name] += (*all)[0].Count
		*all = (*all)[1:]
	}
	return names
}
