package engine

import (
	"cmp"
	"errors"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	maxPermitGrantAge = 100 * time.Millisecond // how old the grant of a rate may be when the function is called, and how long a permit is kept while the step waits for its slot
	maxPermitTries    = 10                     // then an older grant is used, because the database or this process is that slow
)

// PermitSpec names the limit from which each attempt of a step needs a permit.
type PermitSpec struct {
	Limit    string
	Key      string // the key under which the step waits; may be empty
	Units    int    // at least 1
	Settings store.LimitSettings
}

// awaitPermitAndSlot waits until the attempt may call its function: for its permit, and then for its slot. The returned
// function gives both back, and may be called more than once.
//
// A step does not keep a permit while it waits for its slot, because others could use the permit meanwhile. If no slot comes in
// time, it gives the permit back, waits for its slot, and then requests the permit again. If the permit is not free at that
// moment, it gives the slot back and waits in the line, at its old place.
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
// memory, and keeps its place. If the step's total timeout is over first, awaitPermit returns without a
// permit and a zero time, because the attempt then fails without calling its function. If the limit has no rate, the time is
// zero, too. The argument arrived is the place of the step in the line, zero for a new one; awaitPermit keeps it up to date. It calls
// beforeWait before it waits.
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
			if !a.LimitHasRate { // the bounds that apply, whatever the code declares
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

// countTotalTimeoutFrom lets the total timeout count from the arrival of the first attempt in the line. An earlier execution of the run may have
// entered the line and left memory, and a step that waits for its first permit has no row that says when it began.
func (t *stepTask) countTotalTimeoutFrom(arrived time.Time) {
	if !t.hasRow && t.attempt == 1 && !arrived.IsZero() && arrived.Before(t.firstBegan) {
		t.firstBegan = arrived
	}
}

// endPermitWaitAfterError ends the wait for a permit after an error. The step keeps its place in the line if another
// execution continues the run at once or when it is woken.
func (t *stepTask) endPermitWaitAfterError(giveBack func(), err error) (time.Time, func(), error) {
	r := t.r
	left := t.scope.checkOpen()
	if left == nil && t.scope.ctx.Err() == nil { // the database rejects the request
		r.suspendAfterFailedWrite("ask for the permit of step", t.name, err)
		return time.Time{}, nil, ErrSuspended
	}
	s := r.currentSuspension()
	if s == nil || errors.Is(s.cause, ErrPaused) {
		giveBack()
	}
	return time.Time{}, nil, cmp.Or(left, ErrSuspended)
}
