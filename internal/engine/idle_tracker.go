package engine

import (
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A run leaves memory only after it has executed no durable call for concurrentRunIdleTime, because the engine does not see the
// workflow's own code between two durable calls. A run that never had two durable calls at the same time has one goroutine, as far as the
// engine knows, and leaves memory after sequentialRunIdleTime.
const (
	concurrentRunIdleTime = 100 * time.Millisecond
	sequentialRunIdleTime = 5 * time.Millisecond
)

// idleTracker tracks whether a run does anything but wait. If the run executes no durable call, and none of its waits ends soon, it
// leaves memory, and its row says when to wake it.
type idleTracker struct {
	r            *run
	mu           sync.Mutex    // locked before run.mu
	activeCalls  int           // durable calls that execute or write
	minIdleTime  time.Duration // the least idle time, if the run was parked too early before; zero: it was not
	isConcurrent bool          // the run has had two durable calls at the same time, or goroutines of its own
	waits        map[*waitingCall]struct{}
	awaitsRuns   map[*stepTask]int // how many goroutines of a step, or of the function (nil), wait for results of runs; only with test hooks
	suspendTimer *runningTimer
	isParked     bool // suspendIfIdle has suspended the run
	isReturned   bool // the function has returned, so the run is about to end; see noteFunctionReturned
	stopped      bool
}

// waitingCall is one durable call that waits until due or, if due is zero, for an event such as a signal.
type waitingCall struct {
	due           time.Time
	inMemoryUntil time.Time // until when the run stays in memory while half of the slots are free; zero: the wait does not keep the run in memory
}

// beginBusy marks the beginning of a durable call that executes or writes. endBusy marks its end. If the run was parked after the call
// was found to be allowed, the call will be refused, and beginBusy notes that the run was parked too early.
func (i *idleTracker) beginBusy() {
	i.mu.Lock()
	i.activeCalls++
	if i.isParked {
		i.r.noteCallWhileParked()
	}
	i.isConcurrent = i.isConcurrent || i.activeCalls+len(i.waits) > 1
	if i.suspendTimer != nil {
		i.suspendTimer.stop()
		i.suspendTimer = nil
	}
	i.mu.Unlock()
}

// endBusy notes that a call is no longer active.
func (i *idleTracker) endBusy() {
	i.mu.Lock()
	i.activeCalls--
	i.startSuspendTimer()
	i.mu.Unlock()
}

// noteGoroutineStart records that the run has goroutines of its own.
func (i *idleTracker) noteGoroutineStart() {
	i.mu.Lock()
	i.isConcurrent = true
	i.mu.Unlock()
}

// startSuspendTimer starts the timer that suspends the run, if the run does nothing but wait. i.mu is held.
func (i *idleTracker) startSuspendTimer() {
	if i.activeCalls != 0 || len(i.waits) == 0 || i.suspendTimer != nil || i.stopped || i.r.e.clock.IsManual() {
		return // the test that moves the manual clock calls Engine.ParkWaitingRuns
	}
	after := sequentialRunIdleTime
	if i.isConcurrent {
		after = concurrentRunIdleTime
	}
	i.suspendAfter(max(min(after, i.r.e.cfg.ParkAfter), i.minIdleTime))
}

// suspendAfter starts the timer. A timer that has fired, and was replaced before it had i.mu, has no effect. i.mu is held.
func (i *idleTracker) suspendAfter(d time.Duration) {
	var timer *runningTimer
	timer = afterRunning(d, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		if i.suspendTimer == timer {
			i.suspendTimer = nil
			i.suspendIfIdleLocked()
		}
	})
	i.suspendTimer = timer
}

// suspendIfIdle suspends the run if it still does nothing but wait, and none of its waits ends within
// Config.ParkAfter. It holds i.mu until the run is suspended, so a call that begins meanwhile is refused. Without the mutex, such a
// call would be executed, and the suspended run would have to wait for its function.
func (i *idleTracker) suspendIfIdle() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.suspendIfIdleLocked()
}

// suspendIfIdleLocked is suspendIfIdle. i.mu is held.
func (i *idleTracker) suspendIfIdleLocked() {
	if i.activeCalls > 0 || len(i.waits) == 0 || i.isReturned || i.stopped {
		return
	}
	if stays := i.remainingTimeInMemory(); stays > 0 {
		i.suspendAfter(min(stays, concurrentRunIdleTime))
		return
	}
	var first time.Time // zero: no wait has a due time
	for w := range i.waits {
		if !w.due.IsZero() && (first.IsZero() || w.due.Before(first)) {
			first = w.due
		}
	}
	isDueUntilEnd, cancelBegun := i.r.stateOfForcedEnd()
	if isDueUntilEnd {
		return // it is not recorded how the run ends, so it would be claimed again at once if it parked
	}
	if first.IsZero() || i.r.e.clock.Until(first) > i.r.e.cfg.ParkAfter {
		i.isParked = true
		i.r.suspend(suspensionSpec{cause: ErrParked, status: store.Waiting, wakeAt: first, cancelBegun: cancelBegun})
	}
}

// remainingTimeInMemory returns how long the run stays in memory although it may park. The run stays until the latest inMemoryUntil
// of its waits, as long as at least half of the worker's slots are free. i.mu is held.
func (i *idleTracker) remainingTimeInMemory() (left time.Duration) {
	for w := range i.waits {
		if !w.inMemoryUntil.IsZero() {
			left = max(left, time.Until(w.inMemoryUntil))
		}
	}
	if left <= 0 || i.r.e.clock.IsManual() {
		return 0
	}
	// Slots that a claim in progress has reserved count as free, because a claim seldom finds runs for all of them. Otherwise each claim
	// would unload runs that the next claim has to load again.
	if w := i.r.w; w.slots.IsQuiet() || 2*w.loadedRuns.count() > i.r.e.cfg.Concurrency {
		return 0
	}
	return left
}

// beginWait registers a durable call that waits until due or, if due is zero, for an event. The caller does not count as busy during
// the wait, and calls endWait when the wait is over.
func (i *idleTracker) beginWait(due time.Time) *waitingCall {
	return i.beginWaitInMemory(due, time.Time{})
}

// beginWaitInMemory does the same as beginWait, and sets waitingCall.inMemoryUntil to stays.
func (i *idleTracker) beginWaitInMemory(due, stays time.Time) *waitingCall {
	w := &waitingCall{due: due, inMemoryUntil: stays}
	i.mu.Lock()
	if i.waits == nil {
		i.waits = make(map[*waitingCall]struct{})
	}
	i.waits[w] = struct{}{}
	i.r.noteWait()
	i.isConcurrent = i.isConcurrent || i.activeCalls+len(i.waits) > 1
	i.startSuspendTimer()
	i.mu.Unlock()
	return w
}

func (i *idleTracker) endWait(w *waitingCall) {
	i.mu.Lock()
	delete(i.waits, w)
	i.startSuspendTimer() // this wait may have been the only one that kept the run in memory
	i.mu.Unlock()
}

// waitUntilDueOrNotified waits until due, a time on the database's clock, or until news is received. If due is zero, it waits for
// news only. If the scope's context ends first, waitUntilDueOrNotified returns the reason. The caller does not count as busy
// meanwhile.
func (i *idleTracker) waitUntilDueOrNotified(s *Scope, due time.Time, news <-chan struct{}) error {
	return i.waitInMemoryUntil(s, due, time.Time{}, news)
}

// waitInMemoryUntil does the same as waitUntilDueOrNotified, and keeps the run in memory until the time stays: see waitingCall.inMemoryUntil.
func (i *idleTracker) waitInMemoryUntil(s *Scope, due, stays time.Time, news <-chan struct{}) error {
	if err := s.endReason(); err != nil { // the context of a run that must end may end later; see run_end_contexts.go
		return err
	}
	defer i.endWait(i.beginWaitInMemory(due, stays))
	var over <-chan time.Time
	if !due.IsZero() {
		passed := make(chan time.Time, 1)
		t := i.r.e.clock.CallAt(due, func() { passed <- due })
		defer t.Stop()
		over = passed
	}
	select {
	case <-over:
		return nil
	case <-news:
		return nil
	case <-s.ctx.Done():
		return s.endReason()
	}
}

// noteFunctionReturned records that the function has returned. From now on the run does not park, because its result would be lost. A branch
// that nobody waits for may still be waiting, perhaps for an event that never comes.
func (i *idleTracker) noteFunctionReturned() {
	i.mu.Lock()
	i.isReturned = true
	i.mu.Unlock()
}

// noteCompensationsBegin records that all goroutines have returned, and that compensations are executed. The run may park again until the next
// attempt of a compensation is due.
func (i *idleTracker) noteCompensationsBegin() {
	i.mu.Lock()
	i.isReturned = false
	i.mu.Unlock()
}

// stop ends the tracking, because the run ends.
func (i *idleTracker) stop() {
	i.mu.Lock()
	i.stopped = true
	if i.suspendTimer != nil {
		i.suspendTimer.stop()
		i.suspendTimer = nil
	}
	i.mu.Unlock()
}

// hasExecutingCall reports whether a durable call executes or writes.
func (i *idleTracker) hasExecutingCall() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.activeCalls > 0
}
