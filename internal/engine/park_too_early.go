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
// call, which is refused; such a goroutine begins to wait; the function or a branch returns a result, which is lost; or one of them
// does not return at all. The row of the run then only wakes it for the event that its other goroutines wait for, which may never come.
// So the run is woken again after a delay. Each time this happens, the run gets a longer idle time before it parks.

const (
	maxRememberedEarlyParks = 10_000 // the maximum number of runs parked too early that a worker remembers
	maxStuckExecutions      = 2      // with so many executions whose functions do not return, and keep their slots, a run is not woken again
	maxEarlyParkDoublings   = 10     // the maximum number of doublings of the delay and of the settling time

	maxIdleTimeOfShortParkAfter = time.Second // the maximum settling time of a run that was parked too early, if ParkAfter is shorter
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
	s.NoteBranchReturned(err)
}

// NoteBranchReturned records that a branch has returned with the error. If the run was parked although the branch was about to return, its
// result may be what the function waits for, such as the first failure for which AllOrCancel waits.
func (s *Scope) NoteBranchReturned(err error) {
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
// early, so the delay doubles each time. A function that does not return is slow, or stuck. If it was stuck in each execution, each execution
// would keep a slot.
func (r *run) wakeDelayIfParkedEarly(s *suspensionSpec) (away time.Duration, early bool) {
	if s.cause != ErrParked || s.status != store.Waiting {
		return 0, false
	}
	r.mu.Lock()
	stuck := !r.goroutines.allReturned
	early = r.suspensionNotices.callBeforeNotice || stuck
	r.isCountedAsStuck = stuck // with mu held, so that noteExecutionOver, which follows the return, sees it
	times, stuckExecutions := r.w.earlyParks.recordPark(r.row.UUID, early, stuck)
	r.mu.Unlock()
	if stuckExecutions >= maxStuckExecutions {
		return 0, false
	}
	return max(concurrentRunIdleTime, min(r.e.cfg.ParkAfter, time.Hour)) << min(times, maxEarlyParkDoublings), early
}

// noteExecutionOver notes that the function of an execution has returned, or that the worker no longer waits for it.
func (r *run) noteExecutionOver() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.isCountedAsStuck {
		r.isCountedAsStuck = false
		r.w.earlyParks.removeStuck(r.row.UUID)
	}
}

// earlyParkCounts counts how often runs were parked too early, by their UUIDs.
type earlyParkCounts struct {
	mu         sync.Mutex
	countByRun map[uuid.UUID]earlyParkCount
}

// earlyParkCount is what a worker remembers of one run that was parked too early.
type earlyParkCount struct {
	times           int  // how often in a row it was parked too early
	stuckExecutions int  // how many executions were released whose functions have not returned
	wasStuck        bool // the function had not returned when the run was last released
}

// recordPark records whether the run was parked too early, and whether its function does not return. It returns how often the run had been parked
// too early before, and how many executions of it do not return now.
func (p *earlyParkCounts) recordPark(id uuid.UUID, early, stuck bool) (times, stuckExecutions int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.countByRun[id]
	times = c.times
	if !early {
		delete(p.countByRun, id)
		return times, 0
	}
	if p.countByRun == nil {
		p.countByRun = make(map[uuid.UUID]earlyParkCount)
	}
	if len(p.countByRun) >= maxRememberedEarlyParks { // some of these runs have ended in other processes
		clear(p.countByRun)
	}
	c.times, c.wasStuck = times+1, stuck
	if stuck {
		c.stuckExecutions++
		stuckExecutions = c.stuckExecutions
	}
	p.countByRun[id] = c
	return times, stuckExecutions
}

// removeStuck records that the function of an execution that did not return is over.
func (p *earlyParkCounts) removeStuck(id uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if c, known := p.countByRun[id]; known && c.stuckExecutions > 0 {
		c.stuckExecutions--
		p.countByRun[id] = c
	}
}

// minIdleTime returns the least idle time of a run that was parked too early before, or zero. It is at most parkAfter, or a second if parkAfter is
// shorter: otherwise each execution would park at the same place, and the run would never get past it. If the function of the run had not
// returned long after the run was parked, the run gets more time each time, because its slot is taken in any case.
func (p *earlyParkCounts) minIdleTime(id uuid.UUID, parkAfter time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := p.countByRun[id]
	if c.times == 0 {
		return 0
	}
	doublings := min(c.times, maxEarlyParkDoublings)
	settles := min(2*concurrentRunIdleTime<<doublings, max(parkAfter, maxIdleTimeOfShortParkAfter))
	if c.wasStuck {
		settles = max(settles, 2*min(parkAfter, time.Hour)<<doublings)
	}
	return settles
}
