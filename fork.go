package durable

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
)

// Fork copies a run, and executes the copy from the given step on. The copy has the calls that the run had recorded before the
// step that [From] names, or all recorded calls if [FromEnd] is given. Fork requires From or FromEnd. In a graph, From can name
// a node: the copy then has all calls apart from the calls of that node and of the nodes downstream. Each [OverrideStep] sets
// the value of one call of the copy.
//
// Without [NewID] the copy is the next generation of the run, under the ID of the run, as after an [Engine.Retry]. Without
// NewID, Fork also accepts a live or completed run. Without NewID, the rules of [Engine.Override] for live runs, cancelled runs
// and idempotency keys also apply to Fork.
//
// With [NewID] the copy is a new run with the given ID. The forked run can be in any state and does not change, and Fork does
// not wait for the forked run. The new run has the workflow, queue, priority, input, tags and version ([RunInfo].Version) of
// the forked run, but not its [GroupKey] or [Singleton] key. The new run has the [Timeout] of the forked run, counted from the
// fork. Fork with NewID copies the recorded outcomes: steps that had failed or succeeded, received signals, results of
// children. It does not copy steps that compensations of the forked run have undone, as far as [Undoes] names them. Calls
// without an outcome, such as receives that wait, children that have not ended and steps in backoff, are made again in the new
// run. Signals that the forked run has not received stay with the forked run. The new run has idempotency keys of its own, so
// its steps can repeat effects of the forked run: check that repeated effects do no harm. Repairs of the forked run do not
// change the new run.
//
// Fork returns the errors of [Engine.Override]. With NewID, Fork also returns [ErrIDConflict] if a run with the ID exists, and
// the errors of a start in the queue, such as [ErrQueueFull]. The options of Fork are [From], [FromEnd], [OverrideStep],
// [NewID], [Reason], [Actor], [DryRun], and without NewID also [InterruptSteps].
func (e *Engine) Fork(ctx context.Context, id string, opts ...ControlOption) (*Repaired, error) {
	q, err := e.newRepairRequest(ctx, VerbFork, engine.RepairRequest{}, opts)
	if err == nil && q.ForkRunID != "" && q.InterruptSteps {
		err = fmt.Errorf("%w: a fork with NewID does not stop the run: leave InterruptSteps out", ErrInvalidConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("%s run %q: %w", VerbFork, id, err)
	}
	if q.ForkRunID == "" {
		runs, err := e.inner.Repair(ctx, id, q)
		if err != nil {
			return nil, convertStateError(err)
		}
		return newRepaired(runs), nil
	}
	made, err := e.inner.Fork(ctx, id, q)
	if err != nil {
		return nil, err
	}
	forked := newRepaired([]engine.PlannedRunRepair{*made})
	if q.DryRun {
		forked.RunID = "" // there is no run
	}
	return forked, nil
}

// OverrideStep makes Fork set the value of a call, as [Engine.Override] and [Engine.Skip] do. A call with an overridden value
// is not executed, even if [From] names the call. OverrideStep can be given for several calls.
func OverrideStep(step string, value any) ControlOption {
	return func(o *controlOptions) {
		o.given |= optionStepValue
		o.stepValues = append(o.stepValues, stepOverride{step, value})
	}
}

// stepOverride is the value of an option OverrideStep.
type stepOverride struct {
	step  string
	value any
}

// NewID makes Fork create another run with the given ID.
func NewID(id string) ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionNewID, "NewID")
		o.newID = id
		o.setFirstError(naming.Check("run", id))
	}
}

// encodeStepOverrides returns the encoded values of the options OverrideStep, by the names of their calls.
func (e *Engine) encodeStepOverrides(values []stepOverride) (map[string][]byte, error) {
	if len(values) == 0 {
		return nil, nil
	}
	all := make(map[string][]byte, len(values))
	for _, v := range values {
		if _, twice := all[v.step]; twice {
			return nil, fmt.Errorf("%w: OverrideStep is given twice for step %q: leave one of them out", ErrInvalidConfig, v.step)
		}
		b, err := encodeAndCheckDecodes(v.value, e.cfg.MaxPayload)
		if err != nil {
			return nil, fmt.Errorf("the value of step %q: %w", v.step, err)
		}
		all[v.step] = b
	}
	return all, nil
}
