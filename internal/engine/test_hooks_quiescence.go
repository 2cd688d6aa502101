package engine

import (
	"time"
)

// The test hooks of a test call these methods to find out whether anything can happen before a given time.

// LoadedRunsActivity describes what the runs in the memory of a worker are doing.
type LoadedRunsActivity struct {
	BusyRun     string        // a run that does more than wait for a future time or for an event; empty: none
	ActiveCalls int           // durable calls that execute or write
	IdleAfter   time.Duration // how long there must be no activity until the runs count as idle
}

// LoadedRunsActivity returns what the runs in the memory of this worker are doing.
func (e *Engine) LoadedRunsActivity() LoadedRunsActivity {
	rest := LoadedRunsActivity{IdleAfter: sequentialRunIdleTime}
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
		rest.ActiveCalls += r.idleTracker.activeCalls
		if r.idleTracker.isConcurrent {
			rest.IdleAfter = concurrentRunIdleTime
		}
		r.idleTracker.mu.Unlock()
	}
	return rest
}

func (r *run) isOnlyWaiting() bool {
	r.mu.Lock()
	compensates := r.compensations.cancelContext != nil // then the run waits for the next attempt of a compensation
	going := r.suspension != nil || r.goroutines.functionReturned && !compensates || r.contextEndTimer != nil
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
			return false // this wait has just ended
		}
	}
	stepsAwaitingRuns := len(i.awaitsRuns)
	if i.awaitsRuns[nil] > 0 {
		stepsAwaitingRuns--
	}
	return i.activeCalls == stepsAwaitingRuns && len(i.waits)+len(i.awaitsRuns) > 0 && !i.stopped
}

// ParkWaitingRuns parks every run in memory that only waits, if its wait lasts longer than Config.ParkAfter. ParkWaitingRuns does not first
// wait until the runs have been idle for some time. ParkWaitingRuns reports whether any run in memory is now suspended.
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

// WakeAllLoops makes the worker query for due runs and due schedules at once, and admit runs to their queues at once. Callers that wait for
// results of runs also query for these results at once.
func (e *Engine) WakeAllLoops() {
	if w := e.worker(); w != nil {
		w.wakeLoops()
		w.scheduleHints.Notify()
		w.startKeyHints.Notify()
		w.queueAdmitter.RequestRowsReread()
	}
	e.resultWaiters.QueryNow()
}

// IsClaiming reports whether the worker claims runs now. A worker claims runs if it is not stopping, is not quiet, and has free slots.
func (e *Engine) IsClaiming() bool {
	w := e.worker()
	if w == nil {
		return false
	}
	return w.slots.IsOpen() && !w.slots.IsQuiet() && len(w.workflows) > 0 && w.loadedRuns.count() < e.cfg.Concurrency
}

// IsFiringSchedules reports whether the worker queries for due schedules and fires them.
func (e *Engine) IsFiringSchedules() bool {
	w := e.worker()
	return w != nil && w.slots.IsOpen() && len(w.workflows) > 0
}

// CountAdmissionPasses returns how many checks of all queues this worker has begun, and the number of the latest of these checks that
// has ended.
func (e *Engine) CountAdmissionPasses() (begun, ended uint64) {
	w := e.worker()
	if w == nil {
		return 0, 0
	}
	return w.queueAdmitter.CountChecks()
}

// CountResultChecks returns how often the callers that wait for results of runs have checked for these results. The result waiting is false
// if no caller waits.
func (e *Engine) CountResultChecks() (looks uint64, waiting bool) {
	return e.resultWaiters.QueryCount()
}

// CountAwaitCallers returns how many callers wait for results of runs that have not ended. CountAwaitCallers does not count runs that wait
// for other runs, nor their steps. A caller whose result has arrived no longer counts, even if its goroutine has not continued yet. The
// clock of a test advances because of callers that wait, so such a caller does not make it advance. The result changes counts how often a
// caller began to wait or got its result.
func (e *Engine) CountAwaitCallers() (waiting int, changes uint64) { return e.awaitCallerCount.Read() }
