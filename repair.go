package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
)

// Errors of repairs.
var (
	// ErrNoStep is returned for a repair that names a step that the run has not recorded.
	ErrNoStep = repair.ErrNoStep
	// ErrFromRequired is returned by [Engine.Retry] when the library does not know from which step to execute the run again. The
	// library does not know the step if the failure of the run names no failed step, or if compensations without the option
	// [Undoes] were executed. In these cases call Retry with the option [From] or [FromEnd]. Retry and [Engine.Fork] with FromEnd
	// also return ErrFromRequired if a compensation without Undoes has succeeded: then use From to name the first step to execute
	// again.
	ErrFromRequired = repair.ErrFromRequired
	// ErrValueType is returned by [Engine.Override], and by [Engine.Fork] with [OverrideStep], for a value whose JSON has another
	// type than the recorded value, such as a text instead of an object. [Engine.Skip] of a sleep returns ErrValueType for a value
	// other than nil.
	ErrValueType = repair.ErrValueType
)

// Repaired describes what a repair did to a run. With [DryRun], Repaired describes what the repair would do. The names of calls
// are as in [Checkpoint].Name.
type Repaired struct {
	ID         string // the ID that addresses the run: the caller's ID of a root run, or the UUID of a child
	RunID      string // the UUID of the run
	Generation int    // the number of the new generation
	Kept       int    // the number of checkpoints that the new generation keeps from the previous one
	// Dropped lists the calls whose checkpoints the repair drops, so that the run makes them again. Renewed lists the dropped calls
	// that get new idempotency keys. Dropped and Renewed hold at most 1,000 names each.
	Dropped, Renewed []string
	Corrected        []string    // the calls whose values the repair has set, at most 1,000 of them
	Children         []*Repaired // the children that are retried together with the run
	Cancelled        []string    // the UUIDs of children that are cancelled, because the calls that started them were dropped
}

// Retry executes a failed or expired run again. The run keeps its ID, UUID, input and tags, and its recorded steps are not
// executed again. The execution before the retry is kept as a generation, with its result: see [Engine.Generations].
//
// Without further options, Retry drops the failed steps whose errors the run's error wraps, such as [RunError.Step]. The
// retried run executes the dropped steps again. Failures that the workflow function handled are kept. If a failed step is a
// child, the child is retried, and its parent waits for the child again. If compensations were executed, Retry also drops the
// steps that the compensations undid, which the code declares with [Undoes]. A retried run without recorded calls is executed
// from its beginning. Retry returns [ErrFromRequired] if it does not know which steps to drop: call Retry again with the option
// [From] or [FromEnd].
//
// In a graph, Retry also executes again the nodes that ran because another node had failed, and the nodes that were skipped
// because of the values of these nodes.
//
// A step that failed or was interrupted is executed again with its old [IdempotencyKey], because its first attempt may have
// taken effect. A completed step that Retry drops gets a new idempotency key, and so does a step that a compensation has undone. If Retry drops the call of a child, the run
// starts another child; the old child is cancelled unless it is [Detached]. If Retry drops a receive, the retried run receives
// the signal of the dropped receive again. The [Timeout] of a retried run begins again. With [DryRun], Retry changes nothing
// and returns what it would do.
//
// Deploy corrected code before the retry. If a retried run fails, it can be retried again. [Run.Result] of a new handle, and
// callers that already wait, get the result of the newest generation.
//
// Retry returns [ErrNotFound] if there is no such run, [ErrNoStep] if the run has not recorded the step that From names,
// [ErrFromRequired] in the case above, and a [*StateError] for a run that has not failed or expired. For a child whose parent
// is not paused, or has already recorded the end of the child, Retry also returns a StateError: retry the parent instead. Retry
// returns [ErrUnreadable] if the record of an earlier repair cannot be decoded, and [ErrSchema] while a worker with an older
// version of durable is running.
func (e *Engine) Retry(ctx context.Context, id string, opts ...ControlOption) (*Repaired, error) {
	return e.repairRun(ctx, VerbRetry, id, engine.RepairRequest{}, opts)
}

// RepairedRuns is the result of [Engine.RetryAll].
type RepairedRuns struct {
	Matched  int // the number of runs that match the filter
	Repaired []*Repaired
	Refused  []RefusedRepair // the matching runs that were not repaired, because the repair needs further options or another process, or is not possible now
}

// RefusedRepair describes a run that was not repaired, and the reason.
type RefusedRepair struct {
	ID  string
	Err error
}

// RetryAll retries every root run that matches the filter as [Engine.Retry] does, each in a transaction of its own. Without
// Filter.Status, RetryAll considers the runs that failed or expired. A run that cannot be retried is in RepairedRuns.Refused,
// and RetryAll continues with the other runs. Refused also has the runs with records that this process cannot decode
// ([ErrUnreadable]), and the runs that changed each time RetryAll tried to retry them ([ErrLocked]). If RetryAll returns an
// error, its result describes what RetryAll did before the error, and RetryAll can be called again. RetryAll returns
// [ErrInvalidConfig] for a filter without any condition; to retry all runs, set CreatedBefore.
func (e *Engine) RetryAll(ctx context.Context, f Filter, opts ...ControlOption) (RepairedRuns, error) {
	var all RepairedRuns
	q, err := e.newRepairRequest(ctx, VerbRetry, engine.RepairRequest{}, opts)
	if err != nil {
		return all, fmt.Errorf("%s runs by a filter: %w", VerbRetry, err)
	}
	filter, err := e.convertFilter(ctx, f)
	if err != nil {
		return all, err
	}
	if err := checkFilterNotEmpty(&filter, VerbRetry); err != nil {
		return all, err
	}
	if len(filter.Statuses) == 0 {
		filter.Statuses = []store.Status{store.Failed, store.Expired}
	}
	var before uuid.UUID
	for {
		rows, err := e.inner.Store().ListRuns(ctx, filter, before, controlPageSize)
		if err != nil || len(rows) == 0 {
			return all, err
		}
		before = rows[len(rows)-1].UUID
		if rows, err = e.inner.SelectRoots(ctx, rows); err != nil {
			return all, fmt.Errorf("%s runs by a filter: %w", VerbRetry, err)
		}
		for _, row := range rows {
			all.Matched++
			runs, err := e.inner.Repair(ctx, row.UUID.String(), q)
			err = convertStateError(err)
			switch {
			case err == nil:
				all.Repaired = append(all.Repaired, newRepaired(runs))
			case isRefusedRepair(err):
				all.Refused = append(all.Refused, RefusedRepair{ID: row.NameOrUUID(), Err: err})
			default:
				return all, err
			}
		}
	}
}

// isRefusedRepair reports whether the error concerns only the run that was to be repaired, so that others can be.
func isRefusedRepair(err error) bool {
	for _, refused := range []error{ErrState, ErrNoStep, ErrFromRequired, ErrNotFound, ErrUnreadable} {
		if errors.Is(err, refused) {
			return true
		}
	}
	_, unwritten := errors.AsType[*WriteError](err)
	return !unwritten && errors.Is(err, ErrLocked) // it changed during each try
}

// From makes a repair drop the checkpoint of the call with the given name, and the checkpoints of all calls that began after
// that call. The argument of From is the name of a [Checkpoint], with its scope. In a run of a graph, From makes the repair
// drop the call, the later calls of the same node, and all nodes downstream, but no other calls. In a run of a graph, the
// argument of From can also be the name of a node: the repair then drops all calls of the node, and all nodes downstream. From
// also drops the steps that compensations have undone, if the code declares the steps with [Undoes].
func From(step string) ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionFrom, "From")
		if o.fromStep = step; step == "" {
			o.setFirstError(fmt.Errorf("%w: From needs the name of a step", ErrInvalidConfig))
		}
	}
}

// FromEnd makes a repair keep all checkpoints, except a checkpoint that the repair itself changes, so that the run continues
// after its last recorded call. The steps that compensations have undone are nevertheless executed again, if the code declares
// the steps with [Undoes]. If a compensation without Undoes has succeeded, the repair is refused with [ErrFromRequired]: name the
// first step to execute again with [From]. [Engine.Fork] with [NewID] keeps undone steps, and is not refused. Use FromEnd with
// [Engine.Retry] for runs whose function failed by itself, for example by a panic, and whose code was corrected since. A choice
// that a failed branch decided is made again if the run failed with the error of the branch; see [AllOrCancel]. In a graph, a
// node that failed outside its call, for example by a panic of its condition, is executed again, together with the nodes that
// ran or were skipped because of that.
func FromEnd() ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionFrom, "FromEnd")
		o.fromEnd = true
	}
}

// Undoes declares which steps a compensation undoes, by their names in the scope of the compensation. In Undoes, the name of a
// [Ctx.Map] or of a branch of [Ctx.Go] stands for all calls in that Map or branch. If nothing is recorded for a name in Undoes,
// the step of that name counts as not executed. If the compensation was executed, [Engine.Retry] and the other repairs under the
// ID of the run execute again, with new idempotency keys, the steps that the compensation undid. A step that failed in a branch
// that did not win a choice, and whose failure the run has handled, stays failed if the repair keeps the choice. Undoes is an
// option of [Ctx.Compensate] only.
func Undoes(steps ...string) StepOption {
	return func(o *stepOptions) {
		o.addOptionOnce(optionUndoes, "Undoes")
		if o.undoes = steps; len(steps) == 0 {
			o.setFirstError(fmt.Errorf("%w: Undoes needs the name of a step", ErrInvalidConfig))
		}
		for _, step := range steps {
			o.setFirstError(naming.Check("step", step))
		}
	}
}

// repairRun makes one repair of a run.
func (e *Engine) repairRun(ctx context.Context, verb Verb, id string, q engine.RepairRequest, opts []ControlOption) (*Repaired, error) {
	q, err := e.newRepairRequest(ctx, verb, q, opts)
	if err != nil {
		return nil, fmt.Errorf("%s run %q: %w", verb, id, err)
	}
	runs, err := e.inner.Repair(ctx, id, q)
	if err != nil {
		return nil, convertStateError(err)
	}
	return newRepaired(runs), nil
}

// acceptedRepairOptions are the options that each repair takes, beside Reason, Actor and DryRun.
var acceptedRepairOptions = map[Verb]struct {
	given optionSet
	names string
}{
	VerbRetry:    {optionFrom, "From, FromEnd"},
	VerbOverride: {optionFrom | optionInterruptSteps, "FromEnd, InterruptSteps"},
	VerbSkip:     {optionInterruptSteps, "InterruptSteps"},
	VerbRerun:    {optionInterruptSteps, "InterruptSteps"},
	VerbFork:     {optionFrom | optionInterruptSteps | optionStepValue | optionNewID, "From, FromEnd, OverrideStep, NewID, InterruptSteps"},
}

// newRepairRequest adds the options of a repair to the request.
func (e *Engine) newRepairRequest(ctx context.Context, verb Verb, q engine.RepairRequest, opts []ControlOption) (engine.RepairRequest, error) {
	if err := e.checkUsableOutsideWorkflow(ctx, "a repair", "a RetryPolicy of the step"); err != nil {
		return q, err
	}
	var o controlOptions
	err := applyOptions(opts, &o)
	allowed := acceptedRepairOptions[verb]
	switch {
	case err != nil:
	case o.err != nil:
		err = o.err
	case o.given&^(optionReason|optionActor|optionDryRun|allowed.given) != 0 || verb == VerbOverride && o.fromStep != "":
		err = fmt.Errorf("%w: the call takes the options Reason, Actor, DryRun, %s: leave the others out", ErrInvalidConfig, allowed.names)
	default:
		err = o.checkActorAndReason()
	}
	if err == nil {
		q.ForkStepValues, err = e.encodeStepOverrides(o.stepValues)
	}
	q.ForkRunID = o.newID
	q.Verb, q.FromStep, q.KeepAllOtherCalls, q.InterruptSteps, q.DryRun, q.Actor, q.Reason = string(verb), o.fromStep, o.fromEnd, o.interruptSteps, o.dryRun, o.actor, o.reason
	return q, err
}

// newRepaired returns the description of a repair. runs has a run and those of its descendants that are retried with it.
func newRepaired(runs []engine.PlannedRunRepair) *Repaired {
	all := make(map[uuid.UUID]*Repaired, len(runs))
	for i := range runs { // a parent comes before its children
		r := &runs[i]
		one := &Repaired{
			ID: r.Run.NameOrUUID(), RunID: r.Run.UUID.String(), Generation: int(r.NewGeneration), Kept: r.Detail.Kept,
			Dropped: r.Detail.Dropped, Renewed: r.Detail.Renewed, Corrected: r.Detail.Corrected,
		}
		for _, id := range r.ChildrenToCancel {
			one.Cancelled = append(one.Cancelled, id.String())
		}
		all[r.Run.UUID] = one
		if parent := all[r.Run.Parent.UUID]; r.Run.Parent.Valid && parent != nil {
			parent.Children = append(parent.Children, one)
		}
	}
	return all[runs[0].Run.UUID]
}
