package durable

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Override replaces the value of a step that has succeeded, without executing the step again. Override drops all calls that
// began after the step, because those calls may depend on the value. In a run of a graph, Override does not drop all later
// calls, but only the nodes downstream of the step. The run makes the dropped calls again; dropped calls that had completed get
// new idempotency keys. With [FromEnd], Override drops no calls, and only code after the last recorded call uses the new value.
//
// Override can also replace the value of a Tx, a receive or a child. The argument step is the name of the call's [Checkpoint],
// with its scope. The new value of the step is encoded as JSON, like every result of a step. Pass a value of the Go type into
// which the code decodes the recorded value. Override cannot check the Go type, but returns [ErrValueType] for a value with
// another JSON type than the recorded value. Override accepts nil for every JSON type. If the run is held because the code does
// not fit the record of this call, Override accepts a value of any JSON type. For a child, Override changes only the value that
// the parent gets, and not the child itself.
//
// Override repairs live runs and runs that have ended, including completed runs. The execution before the repair is kept as a
// generation, as with [Engine.Retry]. Override first pauses a live run, and waits until the running steps of the run have
// finished, at most until ctx ends. If ctx ends before the running steps have finished, Override returns a [*StateError] that
// names the running step, and the run continues without the repair. With [InterruptSteps], Override does not wait for running
// steps. After the repair a live run continues, unless somebody had paused the run before the repair. A run that was held, because
// the code did not fit its history, also continues, and is held again if the code still does not fit. A run that is cancelled or
// being cancelled cannot be repaired.
//
// Override returns [ErrNotFound] if there is no such run, [ErrNoStep] if the run has not recorded the step, [ErrValueType],
// [ErrNotEncodable] or [ErrPayloadTooLarge] for a value that cannot be recorded for the step, and a [*StateError] if the state
// of the run or of the step does not allow the repair. Override returns [ErrFromRequired] if compensations without the option
// [Undoes] were executed, and [ErrSchema] while a worker with an older version of durable is running. The options of Override
// are [Reason], [Actor], [DryRun], [FromEnd] and [InterruptSteps].
func (e *Engine) Override(ctx context.Context, id, step string, value any, opts ...ControlOption) (*Repaired, error) {
	return e.repairStep(ctx, VerbOverride, id, step, &value, opts)
}

// Skip gives a value to a step that has not succeeded: the step has failed, was interrupted, waits for its next attempt, or
// waits for a signal or a child. A skipped step counts as completed with the value, and is not executed again. If the skipped
// step waits for a child, the child is cancelled unless it is [Detached]. If the skipped step is a sleep, the sleep ends; the
// value for a sleep must be nil. Skip keeps the records of all calls other than the skipped step. In a graph, however, a Skip of
// a failed step also executes again the nodes that ran or were skipped because of the failure, as [Engine.Retry] does.
//
// In all other respects, Skip works as [Engine.Override], which replaces the values of steps that have succeeded.
func (e *Engine) Skip(ctx context.Context, id, step string, value any, opts ...ControlOption) (*Repaired, error) {
	return e.repairStep(ctx, VerbSkip, id, step, &value, opts)
}

// Rerun executes one step again. If the step had completed, Rerun gives the step a new idempotency key. A step that had failed
// keeps its idempotency key, because its first attempt may have taken effect. Rerun returns a [*StateError] for a step in a
// branch that a choice has ended, because such a branch executes nothing more. Rerun keeps all other calls with their outcomes,
// including calls that began after the step; [Engine.Fork] executes the later calls again, too. If the call that Rerun repeats
// is a child, the run starts a new child; if it is a receive, the run receives the same signal again. If the run fails or is cancelled
// before the repeated call has succeeded, compensations that the function registers after the call are not executed: the error of
// the run then wraps [ErrCompensation] and names the kept calls.
//
// In all other respects, Rerun works as [Engine.Override].
func (e *Engine) Rerun(ctx context.Context, id, step string, opts ...ControlOption) (*Repaired, error) {
	return e.repairStep(ctx, VerbRerun, id, step, nil, opts)
}

// repairStep makes a repair of one step. A value that is not nil is encoded.
func (e *Engine) repairStep(ctx context.Context, verb Verb, id, step string, value *any, opts []ControlOption) (*Repaired, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("%s run %q: %w", verb, id, err)
	}
	q := engine.RepairRequest{Step: step}
	if value != nil {
		var err error
		if q.StepValue, err = encodeAndCheckDecodes(*value, e.cfg.MaxPayload); err != nil {
			return nil, fmt.Errorf("%s step %q of run %q: %w", verb, step, id, err)
		}
	}
	return e.repairRun(ctx, verb, id, q, opts)
}

// InterruptSteps makes a repair interrupt the running steps of a live run, instead of waiting until they have finished. When a
// repair interrupts a step, the context of the step ends. An interrupted step is executed again with its old idempotency key,
// even if its function has already taken effect. An interrupted [AtMostOnce] step is not executed again: the step fails with
// [ErrOutcomeUnknown], or its [Verify] function decides, even if the repair drops the step.
func InterruptSteps() ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionInterruptSteps, "InterruptSteps")
		o.interruptSteps = true
	}
}
