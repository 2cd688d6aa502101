package durable

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
)

// Override replaces the value of a step that has succeeded. The step is not executed again. Override drops all calls that began
// after the step, because they may depend on the value; in a run of a graph, it drops the nodes downstream instead. The run makes
// the dropped calls again; calls that had completed get new idempotency keys. With [FromEnd], Override keeps these calls with their
// outcomes, and only code after the last recorded call uses the new value.
//
// The step can also be a Tx, a receive or a child. step is the name of its [Checkpoint], with its scope. The value is encoded as
// the result of a step is. Pass a value of the Go type that the code decodes. Override cannot check the Go type, but returns
// [ErrValueType] for a value with another JSON type than the recorded one. For a child, only the value that the parent gets changes; the child itself
// stays as it is.
//
// Override is for live runs and for runs that have ended, including completed ones. The former execution is kept as a generation,
// as with [Engine.Retry]. A live run is paused first, and Override waits until its running steps have finished, at most until ctx
// ends. If ctx ends first, Override returns a [*StateError] that names the step, and the run continues unrepaired. With [InterruptSteps],
// Override does not wait. After the repair the run continues, unless somebody had paused it before. A run that is cancelled or
// being cancelled cannot be repaired.
//
// Override returns [ErrNotFound]; [ErrNoStep]; [ErrValueType]; [ErrNotEncodable] or [ErrPayloadTooLarge]; a [*StateError] if the
// state of the run or of the step does not allow it; [ErrFromRequired] if compensations were executed and it is not known what they
// undid (see [Undoes]); and [ErrSchema] while a worker with an older version of durable lives. The options are [Reason], [Actor],
// [DryRun], [FromEnd] and [InterruptSteps].
func (e *Engine) Override(ctx context.Context, id, step string, value any, opts ...ControlOption) (*Repaired, error) {
	return e.repairStep(ctx, VerbOverride, id, step, &value, opts)
}

// Skip gives a value to a step that has not succeeded: it has failed, was interrupted, waits for its next attempt, or for a
// signal or a child. The step then counts as completed with the value, and is not executed again. A child that the step waits for
// is cancelled unless it is [Detached]. If the step is a sleep, the sleep ends; its value is nil. All other calls are kept, as by
// [Engine.Retry].
//
// In all other respects Skip works as [Engine.Override], which is for steps that have succeeded.
func (e *Engine) Skip(ctx context.Context, id, step string, value any, opts ...ControlOption) (*Repaired, error) {
	return e.repairStep(ctx, VerbSkip, id, step, &value, opts)
}

// Rerun executes one step again. A step that had completed gets a new idempotency key. A step that had failed keeps its key,
// because its first attempt may have taken effect. All other calls are kept with their outcomes, also those that began after the
// step: use [Engine.Fork] to execute them again, too. If the step is a child, a new child is started; if it is a receive, its
// signal is received again.
//
// In all other respects Rerun works as [Engine.Override].
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
		if q.Value, err = encodeDecodable(*value, e.cfg.MaxPayload); err != nil {
			return nil, fmt.Errorf("%s step %q of run %q: %w", verb, step, id, err)
		}
	}
	return e.repairRun(ctx, verb, id, q, opts)
}

// InterruptSteps makes a repair interrupt the running steps of a live run, instead of waiting until they have finished.
// The context of such a step ends. The step counts as interrupted, and is executed again with its old idempotency key, even if
// its function has taken effect meanwhile. An [AtMostOnce] step instead fails with [ErrOutcomeUnknown], or its [Verify] function
// decides, also if the repair drops it.
func InterruptSteps() ControlOption {
	return func(o *controlOptions) {
		o.addOption(optionInterruptSteps, "InterruptSteps")
		o.interruptSteps = true
	}
}
