package durable

import (
	"context"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Compensate registers fn to undo what was done, or is about to be. If the run fails, is
// cancelled, or its time is over, the registered functions are executed when the workflow
// function has returned, the last one first, each as a step of its own under its name:
// recorded, tried again by its Retry option, and not again once it succeeded, whatever
// process goes on with it. This also holds for a run that is not in memory and has recorded nothing: it is
// replayed first, so that its functions are registered again. One that finally fails does not keep the others from running;
// the run's error then is also ErrCompensation.
//
// A run that has begun to execute its compensations only does that from then on, also if corrected code would not
// fail: it ends with the failure that was recorded before the first one. Until then its calls that are not
// recorded return ErrCancelled, or ErrTimeout if its time was over. If the code no longer registers a
// compensation that is still to be executed, the run is held (see ErrHeld) until code that does is deployed.
//
// Register before the step where fn can be called without harm if the step did not take
// effect: then no crash and no cancel comes in between.
func (c *Ctx) Compensate(name string, fn func(context.Context) error, opts ...StepOption) error {
	call := newCall[struct{}](c, name, store.KindCompensation, opts)
	call.needs(fn != nil)
	if call.err != nil {
		return call.err
	}
	call.spec.Attempt = func(ctx context.Context) (engine.Output, *engine.Failure) {
		return call.record(struct{}{}, fn(ctx))
	}
	return c.calls().Compensate(&call.spec)
}
