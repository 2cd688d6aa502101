package engine

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A wait that begins after the run was suspended is not considered in the time when the run is woken. So the run was parked too early,
// and is woken soon. A goroutine that was notified of the suspension may wait again without that.
func TestAWaitThatBeginsAfterTheRunParked(t *testing.T) {
	for _, notified := range []bool{false, true} {
		r := &run{w: new(worker), e: new(Engine)}
		r.idleTracker.r, r.idleTracker.stopped = r, true
		s := &suspensionSpec{cause: ErrParked, status: store.Waiting, wakeAt: time.Now().Add(time.Hour)}
		r.suspension, r.goroutines.allReturned = s, true
		if notified {
			r.noteGoroutineNotifiedOfSuspension()
		}
		r.idleTracker.endWait(r.idleTracker.beginWait(time.Now().Add(time.Minute)))
		if _, early := r.wakeDelayIfParkedEarly(s); early == notified {
			t.Errorf("a goroutine that was notified (%v) waits: parked too early is %v", notified, early)
		}
	}
}

// A call that was allowed before the run was parked, and begins to execute only then, is refused and will have to be made again. So the
// run was parked too early.
func TestACallThatBeginsWhileTheRunParks(t *testing.T) {
	for _, notified := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			r := newLoneRun(t, new(slate), store.ClaimedRun{})
			r.idleTracker.beginWait(time.Time{})
			s := r.parked(concurrentRunIdleTime)
			r.mu.Lock()
			if r.goroutines.allReturned = true; notified {
				r.noteGoroutineNotifiedOfSuspension()
			}
			r.mu.Unlock()
			r.idleTracker.beginBusy()
			if _, early := r.wakeDelayIfParkedEarly(s); early == notified {
				t.Errorf("a goroutine that was notified (%v) begins a call: parked too early is %v", notified, early)
			}
		})
	}
}

// A function that returns because of something else than the suspension was about to end its run, and is called again soon. A branch may
// return what the function waits for.
func TestAFunctionOrBranchThatReturnsWhileTheRunParks(t *testing.T) {
	for _, c := range []struct {
		err   error
		early bool
	}{{nil, true}, {errors.New("refused"), true}, {ErrSuspended, false}, {fmt.Errorf("wait: %w", ErrSuspended), false}, {ErrParked, false}, {context.Canceled, false}} {
		for what, note := range map[string]func(*Scope, error){"function": (*Scope).NoteFunctionReturned, "branch": (*Scope).NoteBranchReturned} {
			synctest.Test(t, func(t *testing.T) {
				r := newLoneRun(t, new(slate), store.ClaimedRun{})
				r.idleTracker.beginWait(time.Time{})
				s := r.parked(concurrentRunIdleTime)
				r.mu.Lock()
				r.goroutines.allReturned = true
				r.mu.Unlock()
				note(r.scope(), c.err)
				if _, early := r.wakeDelayIfParkedEarly(s); early != c.early {
					t.Errorf("the %s returns %v: parked too early is %v", what, c.err, early)
				}
			})
		}
	}
}

// A run whose function has returned does not park, although a branch still waits: the result would be lost until the branch wakes. It may park
// while it executes compensations.
func TestARunWhoseFunctionHasReturnedDoesNotPark(t *testing.T) {
	for _, err := range []error{nil, errors.New("refused"), context.Canceled} {
		synctest.Test(t, func(t *testing.T) {
			r := newLoneRun(t, new(slate), store.ClaimedRun{})
			r.idleTracker.beginWait(time.Time{})
			r.scope().NoteFunctionReturned(err)
			if s := r.parked(time.Second); s != nil {
				t.Errorf("the function has returned %v: the run was suspended by %v", err, s.cause)
			}
			r.executeCompensations()
			r.idleTracker.beginWait(time.Time{})
			if s := r.parked(time.Second); s == nil || s.cause != ErrParked {
				t.Errorf("while compensations wait, the suspension is %v, want one by ErrParked", s)
			}
		})
	}
}

// A run whose function returned late gets more time before it parks again. A run is not woken again while two executions of it do not return.
func TestARunWhoseFunctionReturnsLate(t *testing.T) {
	const parkAfter = time.Second
	id, counts := store.NewUUID(0), new(earlyParkCounts)
	for i, want := range []time.Duration{4 * parkAfter, 8 * parkAfter} {
		if _, stuck := counts.recordPark(id, true, true); stuck != 1 {
			t.Errorf("execution %d: %d executions do not return, want this one", i+1, stuck)
		}
		if got := counts.minIdleTime(id, parkAfter); got != want {
			t.Errorf("execution %d: the next one parks after %v, want %v", i+1, got, want)
		}
		counts.removeStuck(id)
	}
	counts.recordPark(id, true, true)
	if _, stuck := counts.recordPark(id, true, true); stuck != maxStuckExecutions {
		t.Errorf("%d executions do not return, want %d", stuck, maxStuckExecutions)
	}
	counts.recordPark(id, true, false)
	if got := counts.minIdleTime(id, parkAfter); got != parkAfter {
		t.Errorf("a run that was parked too early, and whose function returned, parks after %v, want %v", got, parkAfter)
	}
}
