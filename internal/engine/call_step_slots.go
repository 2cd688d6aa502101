package engine

import (
	"context"
	"errors"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// Config.StepConcurrency bounds how many functions of steps, Tx steps and compensations this process executes
// at once. A function takes its slot before its started marker is written, and keeps it until the function
// returns. So the wait for a slot counts neither towards the attempt's timeout nor towards Config.StartedMarkerDelay, and the
// checkpoint is written without a slot.
//
// Nothing else holds such a slot. The function of a step may wait for a run whose steps need slots in this
// process. While the function waits for a result through the engine, its slot is lent to other functions,
// and the slot of its run to other runs.

// errNoSlotInTime is returned by awaitStepSlot when no slot was free in time.
var errNoSlotInTime = errors.New("no slot for a step function became free in time")

// awaitStepSlot waits for the slot of an attempt, if the number of slots is bounded. The returned function gives
// the slot back, and may be called more than once. If atMost is not zero and no slot becomes free within atMost, it returns
// errNoSlotInTime.
func (t *stepTask) awaitStepSlot(atMost time.Duration) (leave func(), err error) {
	if t.r.e.stepSlots == nil || t.spec.Kind > store.KindCompensation { // an effect calls no function of the user
		return func() {}, nil
	}
	ctx := t.scope.ctx
	if atMost > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, atMost)
		defer cancel()
	}
	slot, waited, err := t.r.e.stepSlots.Acquire(ctx)
	if err != nil && t.scope.ctx.Err() == nil {
		return nil, errNoSlotInTime
	}
	if err != nil {
		return nil, t.interruptionCause()
	}
	t.slot = slot
	if waited {
		if err := t.checkAttemptMayBegin(); err != nil {
			slot.Release()
			return nil, err
		}
		if !t.hasRow && t.attempt == 1 && t.spec.Permit == nil {
			t.firstBegan = t.r.e.clock.Now() // the total timeout begins here or, with a permit, with the arrival in the line
		}
	}
	return slot.Release, nil
}

// lendSlotsDuringWait lends the slot of the step whose function was called with ctx, if it has a slot, and the slot of
// its run. The returned function takes both again.
func lendSlotsDuringWait(ctx context.Context) (regain func()) {
	t, ok := ctx.Value(attemptContextKey{}).(*stepTask)
	if !ok {
		return func() {}
	}
	regainRunSlot := t.r.slot.Lend()
	regainStepSlot := t.slot.Lend(ctx)
	return func() {
		regainRunSlot()
		regainStepSlot()
	}
}
