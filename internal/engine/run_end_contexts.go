package engine

import (
	"time"

	"github.com/seed8ec063be/durable/internal/record"
)

// If a run that must end is claimed, its contexts end only after it has repeated its recorded calls, because code that checks its context would
// otherwise return before it has registered all compensations. No goroutine of the run knows whether the others have repeated their calls. So
// the contexts end when no goroutine has repeated a recorded call for concurrentRunIdleTime, the time after which a run that only waits leaves
// memory. Calls without an outcome are refused meanwhile, so only code that waits for the end of its context waits that long.

// noteReplayBegins is called before the function is called, when the history is complete. r.mu is not held.
func (r *run) noteReplayBegins() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.pastReplay.Load() {
		r.lastReplayedAt = time.Now()
	}
	r.endContextsUnlessRepeatingLocked()
}

// noteReplayedCallLocked notes that a goroutine has repeated a recorded call. r.mu is held.
func (r *run) noteReplayedCallLocked() {
	r.countReplayedCall()
	r.lastReplayedAt = time.Now()
}

// notePastReplay notes that the run waits in a call that has no outcome yet. If the run must end, its contexts end. r.mu is not held.
func (r *run) notePastReplay() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.pastReplay.Store(true)
	r.endContextsUnlessRepeatingLocked()
}

// replayQuietTimeLeftLocked returns after how long without a repeated call the run counts as one that has repeated its recorded calls.
// r.mu is held.
func (r *run) replayQuietTimeLeftLocked() time.Duration {
	if r.lastReplayedAt.IsZero() {
		return 0
	}
	return concurrentRunIdleTime - time.Since(r.lastReplayedAt)
}

// endContextsUnlessRepeatingLocked ends the contexts of a run that must end: now, or, if the run still repeats its recorded calls, when it
// has repeated them. r.mu is held.
func (r *run) endContextsUnlessRepeatingLocked() {
	if r.forcedEnd == nil || r.contextEndTimer != nil {
		return
	}
	if r.lastReplayedAt.IsZero() && !r.pastReplay.Load() {
		r.forcedEnd.inReplay = true
		return // noteReplayBegins follows
	}
	quiet := r.replayQuietTimeLeftLocked()
	if quiet <= 0 {
		r.endCallContexts(r.forcedEnd.cause)
		return
	}
	r.forcedEnd.inReplay = true
	r.contextEndTimer = time.AfterFunc(quiet, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.contextEndTimer = nil
		r.endContextsUnlessRepeatingLocked()
	})
}

// awaitBranchesRepeatCalls waits until the branches have repeated their recorded calls, before the contexts end because the function has returned
// an error. Branches that nobody waits for may still register compensations.
func (r *run) awaitBranchesRepeatCalls(failure *record.Failure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for failure != nil && r.suspension == nil {
		returned, quiet := r.goroutines.returnedChan(), r.replayQuietTimeLeftLocked()
		if returned == nil || quiet <= 0 {
			return
		}
		r.mu.Unlock()
		timer := time.NewTimer(quiet)
		select {
		case <-returned:
		case <-timer.C:
		}
		timer.Stop()
		r.mu.Lock()
	}
}
