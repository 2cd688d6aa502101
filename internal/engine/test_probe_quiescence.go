package engine

import (
	"time"
)

// A test's probe calls these methods to find out whether anything can happen before a given time.

// LoadedRunsActivity describes the activity of the runs in memory.
type LoadedRunsActivity struct {
	BusyRun string        // a run that does more than wait for a future time or for an event; empty: none
	Active  int           // durable calls that execute or write
	Settle  time.Duration // how long there must be no activity until the runs count as idle
}

// DescribeRunsInMemory returns the activity of the runs in memory.
func (e *Engine) DescribeRunsInMemory() LoadedRunsActivity {
	rest := LoadedRunsActivity{Settle: sequentialSettleTime}
	w := e.worker()
	if w == nil {
		return rest
	}
	if len(w.ownedRunChangesPending) > 0 {
		rest.BusyRun = "a run that has news"
	}
	for _, r := range w.loadedRuns.all() {
		if !r.isOnlyWaiting() {
			rest.BusyRun = r.row.NameOrUUID()
		}
		r.idleTracker.mu.Lock()
		rest.Active += r.idleTracker.activeCalls
		if r.idleTracker.isConcurrent {
			rest.Settle = concurrentSettleTime
		}
		r.idleTracker.mu.Unlock()
	}
	return rest
}

func (r *run) isOnlyWaiting() bool {
	r.mu.Lock()
	going := r.suspension != nil || r.goroutines.functionReturned
	r.mu.Unlock()
	if going {
		return false
	}
	now := r.e.clock.Now()
	i := &r.idleTracker
	i.mu.Lock()
	defer i.mu.Unlock()
	for w := range i.waits {
		if !w.due.IsZero() && !w.due.After(now) {
			return false // this wait ends now
		}
	}
	return i.activeCalls == 0 && len(i.waits) > 0 && !i.stopped
}

// ParkWaitingRuns parks every run in memory that only waits, if its wait lasts longer than Config.ParkAfter. It does not wait for
// the settling time of the runs. ParkWaitingRuns reports whether any run in memory is now suspended.
func (e *Engine) ParkWaitingRuns() (left bool) {
	w := e.worker()
	if w == nil {
		return false
	}
	for _, r := range w.loadedRuns.all() {
		r.idleTracker.suspendIfIdle()
		left = left || r.isSuspended()
	}
	return left
}

// WakeAllLoops makes the worker query for due runs and schedules at once, and admit runs to their queues. Callers that wait for results
// query for them at once, too.
func (e *Engine) WakeAllLoops() {
	if w := e.worker(); w != nil {
		w.wakeLoops()
		w.scheduleHints.notify()
		w.startKeyHints.notify()
		w.queueAdmitter.rowsChanged.Store(true)
		w.queueAdmitter.wakeLoop.notify()
	}
	e.resultWaiters.QueryNow()
}

// IsClaiming reports whether the worker claims runs: it is not stopping or quiet, and has free slots.
func (e *Engine) IsClaiming() bool {
	w := e.worker()
	if w == nil {
		return false
	}
	return w.slots.IsOpen() && !w.slots.IsQuiet() && len(w.workflows) > 0 && w.loadedRuns.count() < e.cfg.Concurrency
}

// IsFiringSchedules reports whether the worker looks for due schedules.
func (e *Engine) IsFiringSchedules() bool {
	w := e.worker()
	return w != nil && w.slots.IsOpen() && len(w.workflows) > 0
}

// CountQueueChecks returns the numbers of the worker's latest check of all queues that has begun, and of the latest that has ended.
func (e *Engine) CountQueueChecks() (begun, ended uint64) {
	w := e.worker()
	if w == nil {
		return 0, 0
	}
	return w.queueAdmitter.checksBegun.Load(), w.queueAdmitter.checksEnded.Load()
}

// CountResultChecks returns how often the waiters have checked for results. waiting is false if nobody waits for a
// result.
func (e *Engine) CountResultChecks() (looks uint64, waiting bool) {
	return e.resultWaiters.QueryCount()
}

// CountAwaitCallers returns how many callers other than runs wait for results.
func (e *Engine) CountAwaitCallers() int { return int(e.awaitCallerCount.Load()) }
