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
// process goes on with it. One that finally fails does not keep the others from running;
// the run's error then is also ErrCompensation.
//
// Register before the step where fn can be called without harm if the step did not take
// effect: then no crash and no cancel comes in between.
func (c *Ctx) Compensate(name string, fn func(context.Context) error, opts ...StepOption) error {
	call := newCall[struct{}](c, name, store.KindUndo, opts)
	call.needs(fn != nil)
	if call.err != nil {
		return call.err
	}
	call.spec.Attempt = func(ctx context.Context) (engine.Output, *engine.Failure) {
		return call.record(struct{}{}, fn(ctx))
	}
	return c.calls().Compensate(&call.spec)
}
