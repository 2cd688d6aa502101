package engine

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/stack"
	"github.com/seed8ec063be/durable/internal/store"
)

// A run parks when the engine sees no activity in it. The engine does not see the function's own code
// between two durable calls, and cannot tell such code from a machine that has stopped. So the engine may
// park a run too early. The engine notices this in four cases: a goroutine that was not notified of the suspension makes its next
// call, which is refused; such a goroutine begins to wait; the function returns a result, which is lost; or the function does not
// return at all. The row of the run then only wakes it for the event that its other goroutines wait for, which may never come. So the
// run is woken again after a delay. Each time this happens, the run gets a longer idle time before it parks.

const (
	maxRememberedEarlyParks = 10_000 // the maximum number of runs parked too early that a worker remembers
	maxWakesOfStuckRun      = 1      // the maximum number of delayed wake-ups of a run whose function does not return, and keeps its slot
	maxEarlyParkDoublings   = 10     // the maximum number of doublings of the delay and of the settling time
)

// goroutinesNotifiedOfSuspension records which goroutines know that the run is suspended.
type goroutinesNotifiedOfSuspension struct {
	notifiedGoroutines goroutineSet // goroutines that were notified
	sawSuspendedBranch goroutineSet // goroutines that got ErrSuspended as the result of a branch
	callBeforeNotice   bool         // a goroutine that was not notified made a call
}

// goroutineSet is a set of goroutines of one run.
type goroutineSet map[string]bool

func (g *goroutineSet) addCaller(r *run) {
	if *g == nil {
		*g = make(goroutineSet)
	}
	(*g)[r.callerID()] = true
}

func (g goroutineSet) hasCaller(r *run) bool { return len(g) > 0 && g[r.callerID()] }

// callerID identifies the calling goroutine among those of the run. To read the number of a goroutine takes 30 microseconds, because the
// runtime shows it only together with the whole stack. The goroutine of the workflow function is recognized by the function with which it
// began, which takes one microsecond.
func (r *run) callerID() string {
	if stack.BaseFunction() == r.functionStackBase {
		return "workflow function"
	}
	return stack.GoroutineID()
}

// noteGoroutineNotifiedOfSuspension records that the calling goroutine is notified of the suspension. r.mu is held.
func (r *run) noteGoroutineNotifiedOfSuspension() {
	if r.preflightFindings == nil { // a preflight parks nothing
		r.suspensionNotices.notifiedGoroutines.addCaller(r)
	}
}

// noteRefusedCall records that a call of the calling goroutine is refused. r.mu is held.
func (r *run) noteRefusedCall() {
	if r.suspension != nil && r.suspension.cause == ErrParked && !r.suspensionNotices.notifiedGoroutines.hasCaller(r) {
		r.suspensionNotices.callBeforeNotice = true
	}
	r.noteGoroutineNotifiedOfSuspension()
}

// noteCallWhileParked records that the calling goroutine begins a call that it was allowed to make before the run was parked.
func (r *run) noteCallWhileParked() {
	r.mu.Lock()
	r.noteRefusedCall()
	r.mu.Unlock()
}

// NoteBranchSuspensionSeen records that the goroutine which calls it has received ErrSuspended as the result of a branch, or of a call in a
// preflight.
func (s *Scope) NoteBranchSuspensionSeen() {
	s.noteSuspendedBranchInPreflight()
	s.noteGoroutineSawSuspendedBranch()
}

func (s *Scope) noteGoroutineSawSuspendedBranch() {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.suspensionNotices.sawSuspendedBranch.addCaller(s.r)
}

// NoteFunctionReturned records that the workflow function has returned with the error, or has panicked with it. If the run was
// parked although its function was about to end the run, the result of the function is lost.
func (s *Scope) NoteFunctionReturned(err error) {
	s.r.idleTracker.noteFunctionReturned()
	if errors.Is(err, ErrSuspended) || errors.Is(err, context.Canceled) {
		return
	}
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	if cause := s.r.suspension; cause != nil && !errors.Is(err, cause.cause) && !s.r.suspensionNotices.sawSuspendedBranch.hasCaller(s.r) {
		s.r.noteRefusedCall()
	}
}

// noteWait records that the calling goroutine begins to wait. If the run is already suspended, the time at which it is woken does not
// consider this wait.
func (r *run) noteWait() {
	r.mu.Lock()
	if r.suspension != nil {
		r.noteRefusedCall()
	}
	r.mu.Unlock()
}

// wakeDelayIfParkedEarly reports whether the run was parked too early, and returns the delay after which such a run is woken. A
// function that ignores the suspension and makes calls from another goroutine cannot be distinguished from a run that was parked too
// early, so the delay doubles each time.
func (r *run) wakeDelayIfParkedEarly(s *suspensionSpec) (away time.Duration, early bool) {
	if s.cause != ErrParked || s.status != store.Waiting {
		return 0, false
	}
	r.mu.Lock()
	stuck := !r.goroutines.allReturned
	early = r.suspensionNotices.callBeforeNotice || stuck
	r.mu.Unlock()
	times := r.w.earlyParks.recordPark(r.row.UUID, early)
	if stuck && times >= maxWakesOfStuckRun {
		return 0, false
	}
	return max(concurrentRunIdleTime, min(r.e.cfg.ParkAfter, time.Hour)) << min(times, maxEarlyParkDoublings), early
}

// earlyParkCounts counts how often runs were parked too early, by their UUIDs.
type earlyParkCounts struct {
	mu         sync.Mutex
	countByRun map[uuid.UUID]int
}

// recordPark records whether the run was parked too early, and returns how often that had happened before.
func (p *earlyParkCounts) recordPark(id uuid.UUID, early bool) (times int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	times = p.countByRun[id]
	if !early {
		delete(p.countByRun, id)
		return times
	}
	if p.countByRun == nil {
		p.countByRun = make(map[uuid.UUID]int)
	}
	if len(p.countByRun) >= maxRememberedEarlyParks { // some of these runs have ended in other processes
		clear(p.countByRun)
	}
	p.countByRun[id] = times + 1
	return times
}

// minIdleTime returns the least idle time of a run that was parked too early before, or zero.
func (p *earlyParkCounts) minIdleTime(id uuid.UUID) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if times := p.countByRun[id]; times > 0 {
		return 2 * concurrentRunIdleTime << min(times, maxEarlyParkDoublings)
	}
	return 0
}
