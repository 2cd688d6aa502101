package durable

import (
	"context"

	"github.com/seed8ec063be/durable/internal/store"
)

// Compensate registers fn as a compensation, a function that undoes the effect of a step. If the run fails, is cancelled or
// expires, its compensations are executed after the workflow function has returned, the last registered first. Each
// compensation is a step with the given name: its result is recorded, and its [Retry] option applies. No process executes a
// compensation again once the compensation has succeeded. If the run is not in memory, it is first replayed, so that its
// compensations are registered again. If a compensation fails and has no attempts left, the other compensations are still
// executed, and the run's error also wraps [ErrCompensation].
//
// A registration is not recorded. If branches that are executed concurrently register compensations, a replay may register them
// in another order: durable then keeps the reverse order only for the compensations of each branch. If the order between
// branches matters, register the compensations after the branches have returned, in the code that waited for them. Once the
// first compensation has begun, the order of all compensations is recorded and does not change.
//
// Once a run has begun to execute compensations, the run executes nothing else, even if corrected code would not fail. The run
// then ends with the failure that was recorded before the first compensation began. If the run is cancelled meanwhile, the
// remaining compensations are still executed, but the run ends as [StatusCancelled], with the error of the cancel in place of
// the failure. While a run executes compensations, calls that are not recorded return [ErrCancelled], or [ErrTimeout] if the
// run expires. If the code no longer registers a compensation that is still to be executed, the run is held (see [ErrHeld])
// until code that registers it is deployed.
//
// If a run fails or expires, its children are cancelled only after its compensations have been executed. A child that has not
// ended may take effect meanwhile, so let the child compensate its own effects.
//
// Register a compensation before its step if fn does no harm when the step did not take effect. If a compensation is registered
// before its step, no crash or cancel can come between the step and the registration. Compensate returns [ErrInvalidConfig] or
// [ErrInvalidName] for an invalid argument, [ErrDuplicateStep] if the name is used twice in the scope, [ErrNestedStep] inside a
// step, and [ErrDiverged] if another kind of call is recorded under the name.
func (c *Ctx) Compensate(name string, fn func(context.Context) error, opts ...StepOption) error {
	call := newDurableCall(c, name, store.KindCompensation, callSite(0), withEmptyResult(fn), opts)
	if call.err != nil {
		return call.err
	}
	return c.callScope().RegisterCompensation(&call.spec)
}
