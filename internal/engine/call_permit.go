package engine

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	maxPermitGrantAge = 100 * time.Millisecond // the largest age of the grant of a rate when the function is called, and the longest time for which a step keeps its permit while it waits for its slot
	maxPermitTries    = 10                     // after this many tries an older grant is used, because the database or this process is slow
)

// PermitSpec names the limit from which each attempt of a step needs a permit.
type PermitSpec struct {
	Limit    string
	Key      string // the key under which the step waits; may be empty
	Units    int    // at least 1
	Settings store.LimitSettings
}

// awaitPermitAndSlot waits for the permit of the attempt, and then for its slot, so that the attempt may call its function. The
// returned function gives both back, and may be called more than once.
//
// A step keeps its permit only for maxPermitGrantAge while it waits for its slot, because other steps could use the permit meanwhile.
// If it gets no slot in this time, it gives the permit back, waits for its slot, and then requests the permit again. If no permit is
// free at that moment, it gives the slot back and waits in the line, at its old place.
func (t *stepTask) awaitPermitAndSlot() (leave func(), err error) {
	if t.spec.Permit == nil {
		return t.awaitStepSlot(0)
	}
	var arrived time.Time // the step's place in the line
	var vacate func()     // gives the slot back; nil: the step has none
	leaveSlot := func() {
		if vacate != nil {
			vacate()
			vacate = nil
		}
	}
	for try := 1; ; try++ {
		granted, giveBack, err := t.awaitPermit(&arrived, leaveSlot)
		if err != nil {
			leaveSlot()
			return nil, err
		}
		if vacate == nil {
			atMost := maxPermitGrantAge
			if try == maxPermitTries {
				atMost = 0
			}
			vacate, err = t.awaitStepSlot(atMost)
			if errors.Is(err, errNoSlotInTime) {
				giveBack()
				if vacate, err = t.awaitStepSlot(0); err == nil {
					continue
				}
			}
			if err != nil {
				giveBack()
				return nil, err
			}
		}
		aged := !granted.IsZero() && t.r.e.clock.Now().Sub(granted) > maxPermitGrantAge
		if !aged || try == maxPermitTries {
			vacate := vacate
			return func() {
				vacate()
				giveBack()
			}, nil
		}
		leaveSlot()
		giveBack()
	}
}

// awaitPermit waits in the line of the limit until the attempt has its permit. Meanwhile the run may leave
// memory, and keeps its place. awaitPermit returns when the permit was granted, or zero if the limit has no rate. If the step's total
// timeout is over first, awaitPermit returns a zero time, without a permit and without an error: the attempt then fails without
// calling its function. The argument arrived points to the time at which the step entered the line, zero for a step that is not in
// the line yet; awaitPermit sets it. It calls beforeWait before it waits.
func (t *stepTask) awaitPermit(arrived *time.Time, beforeWait func()) (granted time.Time, giveBack func(), err error) {
	r, p := t.r, t.spec.Permit
	a := &store.PermitRequest{
		Limit: p.Limit, Key: p.Key, Settings: p.Settings,
		Run: r.row.UUID, Step: t.name, Epoch: r.row.Epoch, Attempt: t.attempt, Units: p.Units, Priority: r.row.Priority,
		ArrivedAt: *arrived,
	}
	giveBack = sync.OnceFunc(func() { r.w.permits.Return(r.ownedCtx, a) })
	began := time.Now()
	place := r.permitWaits.Add(store.LimitKey{Limit: p.Limit, Key: p.Key}, t.name)
	defer r.w.permits.EndWait(place)
	for {
		if err := r.w.permits.Request(t.scope.ctx, place, a); err != nil {
			return t.endPermitWaitAfterError(giveBack, err)
		}
		*arrived = a.ArrivedAt
		t.countTotalTimeoutFrom(a.ArrivedAt)
		switch a.Outcome {
		case store.Written:
			if err := t.checkAttemptMayBegin(); err != nil {
				giveBack()
				return time.Time{}, nil, err
			}
			r.e.telemetry.RecordPermitWait(r.ctx, p.Limit, time.Since(began))
			if !a.LimitHasRate { // the bounds that apply may differ from those that the code declares
				return time.Time{}, giveBack, nil
			}
			return a.GrantedAt, giveBack, nil
		case store.Fenced:
			return time.Time{}, nil, t.handleFencedStep(a.RunState)
		}
		due := a.RetryAt
		if t.spec.TotalTimeout > 0 {
			end := t.firstBegan.Add(t.spec.TotalTimeout)
			if !end.After(r.e.clock.Now()) {
				giveBack()
				return time.Time{}, func() {}, nil
			}
			if due.IsZero() || end.Before(due) {
				due = end
			}
		}
		beforeWait()
		r.idleTracker.endBusy()
		err := r.idleTracker.waitInMemoryUntil(t.scope, due, began.Add(r.e.cfg.ParkAfter), place.RequestDue())
		r.idleTracker.beginBusy()
		if err != nil {
			return t.endPermitWaitAfterError(giveBack, err)
		}
	}
}

// countTotalTimeoutFrom makes the total timeout begin with the arrival of the first attempt in the line. A step that waits for its first permit
// has no row that says when it began, and an earlier execution of the run may have entered the line and left memory.
func (t *stepTask) countTotalTimeoutFrom(arrived time.Time) {
	if !t.hasRow && t.attempt == 1 && !arrived.IsZero() && arrived.Before(t.firstBegan) {
		t.firstBegan = arrived
	}
}

// endPermitWaitAfterError ends the wait for a permit after an error. The step keeps its place in the line only if the run was
// suspended for another reason than a pause, because another execution then continues the run at once or when it is woken.
func (t *stepTask) endPermitWaitAfterError(giveBack func(), err error) (time.Time, func(), error) {
	r := t.r
	left := t.scope.checkOpen()
	if left == nil && t.scope.ctx.Err() == nil { // the database has rejected the request
		r.suspendAfterFailedWrite("ask for the permit of step", t.name, err)
		return time.Time{}, nil, ErrSuspended
	}
	s := r.currentSuspension()
	if s == nil || errors.Is(s.cause, ErrPaused) {
		giveBack()
	}
	return time.Time{}, nil, cmp.Or(left, ErrSuspended)
}
