package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// ControlResult is the result of a pause, resume, cancel or terminate.
type ControlResult struct {
	Matched int // the number of runs that the ID or the filter selected, without their descendants
	// Done is the number of runs, descendants included, that the call has already paused, resumed, cancelled or terminated.
	Done int
	// Requested is the number of runs, descendants included, that have not reached the requested state yet. A run that is being
	// paused counts as Requested until its current step has finished. A run that is being cancelled counts as Requested until
	// its compensations have finished.
	Requested int
	// DoneIDs and RequestedIDs are the UUIDs of the runs in Done and Requested, at most MaxControlIDs each.
	DoneIDs, RequestedIDs []string
}

// MaxControlIDs is the largest length of ControlResult.DoneIDs and of ControlResult.RequestedIDs. The counts in a
// [ControlResult] are exact, even for more runs than MaxControlIDs.
const MaxControlIDs = 1000

var _ = [1]struct{}{}[MaxControlIDs-store.MaxControlIDs] // does not compile unless both are equal

// addResults adds the results of one operation to the total.
func (f *ControlResult) addResults(o *store.ControlRequest) {
	for _, a := range o.Results {
		f.Done += a.ChangedCount
		f.Requested += a.RequestedCount
	}
	f.DoneIDs = appendIDsUpToMax(f.DoneIDs, o.ChangedRuns)
	f.RequestedIDs = appendIDsUpToMax(f.RequestedIDs, o.RequestedRuns)
}

func appendIDsUpToMax(to []string, ids []uuid.UUID) []string {
	for _, id := range ids[:min(len(ids), MaxControlIDs-len(to))] {
		to = append(to, id.String())
	}
	return to
}

// Pause pauses the run with the given ID, which is the caller's ID or the UUID, and all its descendants. A paused run begins no
// further step. A step that is running when its run is paused finishes and is recorded, and then the run is unloaded from
// memory. ControlResult.Requested counts the runs that still execute a step. A Pause of a run that is already paused changes
// nothing.
//
// Pause returns [ErrNotFound] if there is no such run, and a [*StateError] if the run has ended or is being cancelled.
func (e *Engine) Pause(ctx context.Context, id string, opts ...ControlOption) (ControlResult, error) {
	return e.controlRun(ctx, store.VerbPause, id, opts)
}

// Resume resumes the paused run with the given ID, which is the caller's ID or the UUID, and its descendants. Resume does not
// resume a descendant that was paused by a separate Pause call, nor the descendants of that descendant. If the run ended before
// a requested pause took effect, Resume resumes the descendants that were paused with the run. Timers keep their due times,
// unless the option [FreezeTimers] is given.
//
// Resume returns [ErrNotFound] if there is no such run, and a [*StateError] if neither the run nor a descendant was paused by a
// Pause of this run.
func (e *Engine) Resume(ctx context.Context, id string, opts ...ControlOption) (ControlResult, error) {
	return e.controlRun(ctx, store.VerbResume, id, opts)
}

// Cancel cancels the run with the given ID, which is the caller's ID or the UUID, and all its descendants, including detached
// ones, but not the detached children that an earlier generation of the run started before [Ctx.ContinueAsNew]. With the option
// [OnlyUnstarted] or [OnlyItself], Cancel cancels fewer descendants. If no process has executed the run
// yet, Cancel ends the run at once. A run that a process has already executed is counted in ControlResult.Requested, and can no
// longer complete. When a run is cancelled, first the contexts of its running steps end with [ErrCancelled] as the cause;
// results that these steps still return are recorded. When the steps have ended, the compensations of the cancelled run are
// executed, and the run ends as [StatusCancelled].
//
// If a cancelled run is not in memory, because the run waits, is paused or was interrupted, a worker that executes its workflow
// first replays the run. If no worker executes the workflow of a cancelled run, the state of the run does not change until a
// worker for the workflow starts, or until [Engine.Terminate] ends the run. If Cancel is called several times, the reason and
// the actor of the first call are kept. If the run is already cancelled or being cancelled, Cancel returns no error.
//
// Cancel returns [ErrNotFound] if there is no such run, and a [*StateError] if the run has completed, failed or expired.
func (e *Engine) Cancel(ctx context.Context, id string, opts ...ControlOption) (ControlResult, error) {
	return e.controlRun(ctx, store.VerbCancel, id, opts)
}

// Terminate immediately ends the run with the given ID, which is the caller's ID or the UUID, and all its descendants,
// including detached ones. Terminate also ends runs that are waiting, paused or being cancelled. The compensations of
// terminated runs are not executed. Terminate needs no worker, and can therefore end a run that no process can execute any
// more. Prefer [Engine.Cancel], which executes the compensations.
//
// Terminated runs end as [StatusCancelled], and their errors wrap [ErrCancelled] and [ErrTerminated]. If a process executes a
// terminated run, the Ctx of the run and the contexts of its running steps end with ErrTerminated as the cause. After a run is
// terminated, none of its calls are recorded any more. A parent that waits for a terminated child gets the child's error and
// continues. If the run is already terminated or cancelled, Terminate returns no error.
//
// The options of Terminate are [Reason] and [Actor]. Terminate returns [ErrNotFound] if there is no such run, and a
// [*StateError] if the run has completed, failed or expired.
func (e *Engine) Terminate(ctx context.Context, id string, opts ...ControlOption) (ControlResult, error) {
	return e.controlRun(ctx, store.VerbTerminate, id, opts)
}

// SetTimeout makes the run expire after d from now, by the database's clock. SetTimeout replaces the [Timeout] with which the
// run was started; a d of zero removes the timeout. If a process executes the run, the process is notified, and the Deadline of
// the run's Ctx changes. If the run's [Delay] ends later than the new deadline, the run expires when it is due. A Resume with
// [FreezeTimers] moves the deadline by the whole duration of the pause, even if SetTimeout was called during the pause.
//
// The options of SetTimeout are [Reason] and [Actor]. If a Reason or an Actor is given, an [Event] records the change of the
// timeout. SetTimeout returns [ErrNotFound] if there is no such run, [ErrInvalidConfig] if d is negative, and a [*StateError]
// if the run has ended, is being cancelled, or has already reached its deadline.
func (e *Engine) SetTimeout(ctx context.Context, id string, d time.Duration, opts ...ControlOption) error {
	if err := e.checkUsableOutsideWorkflow(ctx, "a change of a timeout", "the option Timeout"); err != nil {
		return fmt.Errorf("set the timeout of run %q: %w", id, err)
	}
	if d < 0 {
		return fmt.Errorf("%w: SetTimeout of %v for run %q: it must be positive, or zero for none", ErrInvalidConfig, d, id)
	}
	o, err := applyActorReasonOptions("a change of a timeout", opts)
	if err != nil {
		return fmt.Errorf("set the timeout of run %q: %w", id, err)
	}
	return convertStateError(e.inner.SetRunTimeout(ctx, id, atLeastMicrosecond(d), o.actorAndReason()))
}

// PauseAll pauses every run that matches the filter as [Engine.Pause] does, 100 runs per transaction. PauseAll skips runs that
// cannot be paused. Without Filter.Status, PauseAll considers the runs that have not ended. If PauseAll returns an error, the
// ControlResult counts the runs that PauseAll had handled before the error, and PauseAll can be called again. PauseAll returns
// [ErrInvalidConfig] for a filter without any condition; to pause all runs, set CreatedBefore.
func (e *Engine) PauseAll(ctx context.Context, f Filter, opts ...ControlOption) (ControlResult, error) {
	return e.controlAll(ctx, store.VerbPause, f, opts)
}

// ResumeAll resumes every run that matches the filter as [Engine.Resume] does. ResumeAll returns the same errors, and the same
// kind of result, as [Engine.PauseAll].
func (e *Engine) ResumeAll(ctx context.Context, f Filter, opts ...ControlOption) (ControlResult, error) {
	return e.controlAll(ctx, store.VerbResume, f, opts)
}

// CancelAll cancels every run that matches the filter as [Engine.Cancel] does. CancelAll takes the same options, and returns
// the same errors and the same kind of result, as [Engine.PauseAll].
func (e *Engine) CancelAll(ctx context.Context, f Filter, opts ...ControlOption) (ControlResult, error) {
	return e.controlAll(ctx, store.VerbCancel, f, opts)
}

// TerminateAll terminates every run that matches the filter as [Engine.Terminate] does. TerminateAll takes the same options,
// and returns the same errors and the same kind of result, as [Engine.PauseAll].
func (e *Engine) TerminateAll(ctx context.Context, f Filter, opts ...ControlOption) (ControlResult, error) {
	return e.controlAll(ctx, store.VerbTerminate, f, opts)
}

// ControlOption configures a call that controls runs, schedules, queues or limits:
//
//   - [Reason] and [Actor] are for all calls that take a ControlOption, for [Child.Cancel], and for other calls that a person
//     may make: [Engine.Signal], [Engine.Complete], [Engine.SetTags], [Engine.SetTimeout], [Engine.TriggerSchedule] and
//     [Engine.Backfill].
//   - [OnlyUnstarted] and [OnlyItself] are options of Cancel only.
//   - [FreezeTimers] is for [Engine.Resume] and [Engine.ResumeAll].
//   - [DryRun] is for [Engine.Pause], [Engine.Resume], [Engine.Cancel], [Engine.Terminate] and [Engine.Delete], for the methods
//     that do the same to all runs of a filter, and for repairs: [Engine.Retry], [Engine.Override], [Engine.Skip],
//     [Engine.Rerun], [Engine.Fork].
//   - [From], [FromEnd], [InterruptSteps], [OverrideStep] and [NewID] are for repairs; the comment of each repair names its
//     options.
type ControlOption func(*controlOptions)

type controlOptions struct {
	givenOptions
	reason, actor  string
	cancelScope    store.CancelScope
	freezeTimers   bool
	dryRun         bool
	fromStep       string
	fromEnd        bool
	interruptSteps bool
	stepValues     []stepOverride
	newID          string
}

const (
	optionReason optionSet = 1 << iota
	optionActor
	optionScope // OnlyUnstarted or OnlyItself
	optionFreezeTimers
	optionDryRun
	optionFrom // From or FromEnd
	optionInterruptSteps
	optionStepValue
	optionNewID
)

// Reason sets the reason of the call, a text of at most 16 KiB for people. The reason is recorded in the transaction that makes
// the change: in an [Event], or in the LastChange of a queue, a limit, a schedule or a worker. The LastChange of a queue, a
// limit, a schedule or a worker holds only the most recent change. The reason of a call that changes nothing is not recorded.
func Reason(text string) ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionReason, "Reason")
		o.reason = text
	}
}

// Actor sets who makes the call, a text of at most 16 KiB for people. The actor is recorded in the same places as the [Reason].
func Actor(name string) ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionActor, "Actor")
		o.actor = name
	}
}

// OnlyUnstarted makes Cancel cancel the run itself and its descendants that have never been executed. Descendants of the
// cancelled run that have already been executed continue. The run's own children that continue become [Detached], so that the
// end of the run does not cancel them.
func OnlyUnstarted() ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionScope, "OnlyUnstarted")
		o.cancelScope = store.CancelNotStarted
	}
}

// OnlyItself makes Cancel cancel the run itself only. The run's descendants continue, and its children become [Detached], so
// that the end of the run does not cancel them.
func OnlyItself() ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionScope, "OnlyItself")
		o.cancelScope = store.CancelRunItself
	}
}

// FreezeTimers makes Resume move the ends of sleeps, backoffs, receives and timeouts of the resumed runs by the duration of the
// pause. The StartedAt of a step without an outcome moves too, because the [TotalTimeout] of the step is counted from
// StartedAt. FreezeTimers does not move the end of a sleep that was over before the run learned of the pause.
func FreezeTimers() ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionFreezeTimers, "FreezeTimers")
		o.freezeTimers = true
	}
}

// DryRun makes a call change nothing, but return the same result or error as without DryRun. With DryRun, [Engine.PauseAll],
// [Engine.ResumeAll], [Engine.CancelAll] and [Engine.TerminateAll] return only the number of runs that match the filter, as
// ControlResult.Matched.
func DryRun() ControlOption {
	return func(o *controlOptions) {
		o.addOptionOnce(optionDryRun, "DryRun")
		o.dryRun = true
	}
}

var publicVerbs = map[store.ControlVerb]Verb{
	store.VerbPause: VerbPause, store.VerbResume: VerbResume, store.VerbCancel: VerbCancel, store.VerbTerminate: VerbTerminate,
}

func newControlRequest(verb store.ControlVerb, opts []ControlOption) (*store.ControlRequest, error) {
	var o controlOptions
	err := applyOptions(opts, &o)
	switch {
	case err != nil:
	case o.err != nil:
		err = o.err
	case o.cancelScope != store.CancelWholeTree && verb != store.VerbCancel:
		err = fmt.Errorf("%w: OnlyUnstarted and OnlyItself are for Cancel, not for %s", ErrInvalidConfig, publicVerbs[verb])
	case o.given&(optionFrom|optionInterruptSteps|optionStepValue|optionNewID) != 0:
		err = fmt.Errorf("%w: From, FromEnd, InterruptSteps, OverrideStep and NewID are for repairs, not for %s", ErrInvalidConfig, publicVerbs[verb])
	case o.freezeTimers && verb != store.VerbResume:
		err = fmt.Errorf("%w: FreezeTimers is for Resume, not for %s", ErrInvalidConfig, publicVerbs[verb])
	}
	if err == nil {
		err = o.checkActorAndReason()
	}
	return &store.ControlRequest{Verb: verb, Scope: o.cancelScope, Reason: o.reason, Actor: o.actor, ShiftTimers: o.freezeTimers, DryRun: o.dryRun}, err
}

// applyActorReasonOptions applies the options of a call that takes only Reason and Actor. call describes the call, for the error.
func applyActorReasonOptions(call string, opts []ControlOption) (o controlOptions, err error) {
	err = applyOptions(opts, &o)
	switch {
	case err != nil:
		return o, err
	case o.err != nil:
		return o, o.err
	case o.given&^(optionReason|optionActor) != 0:
		return o, fmt.Errorf("%w: %s takes only the options Reason and Actor: leave the others out", ErrInvalidConfig, call)
	}
	return o, o.checkActorAndReason()
}

// actorAndReason returns the actor and the reason.
func (o *controlOptions) actorAndReason() store.ActorAndReason {
	return store.ActorAndReason{Actor: o.actor, Reason: o.reason}
}

// checkActorAndReason returns ErrInvalidName for a reason or an actor that cannot be recorded.
func (o *controlOptions) checkActorAndReason() error {
	return errors.Join(naming.CheckText("reason", o.reason), naming.CheckText("actor", o.actor))
}

func (e *Engine) controlRun(ctx context.Context, verb store.ControlVerb, id string, opts []ControlOption) (ControlResult, error) {
	if err := e.checkUsableOutsideWorkflow(ctx, "a pause, resume, cancel or terminate", "Child.Cancel for a child of this run"); err != nil {
		return ControlResult{}, fmt.Errorf("%s run %q: %w", publicVerbs[verb], id, err)
	}
	o, err := newControlRequest(verb, opts)
	if err != nil {
		return ControlResult{}, err
	}
	row, err := e.inner.RunToChange(ctx, id)
	if err != nil {
		return ControlResult{}, err
	}
	o.Runs = []uuid.UUID{row.UUID}
	if err := e.inner.Control(ctx, o); err != nil {
		return ControlResult{}, fmt.Errorf("%s run %q: %w", publicVerbs[verb], id, err)
	}
	a := o.Results[0]
	refused := a.Status.IsTerminal()
	switch verb {
	case store.VerbPause:
		refused = refused || a.ControlBefore&store.CancelRequested != 0
	case store.VerbCancel, store.VerbTerminate:
		// Descendants may live when the run has ended: they are cancelled, and the call is not refused.
		refused = refused && a.Status != store.Cancelled && a.ChangedCount+a.RequestedCount == 0
	case store.VerbResume:
		// Descendants that were paused with the run are resumed, even if the run has ended.
		refused = (refused || a.ControlBefore&store.PausedItself == 0) && a.ChangedCount == 0
	}
	switch {
	case !a.Found:
		return ControlResult{}, fmt.Errorf("%w: run %q was removed", ErrNotFound, id)
	case refused:
		return ControlResult{}, convertStateError(&engine.StateError{Ref: id, Verb: string(publicVerbs[verb]), Status: a.Status, Control: a.ControlBefore})
	}
	effect := ControlResult{Matched: 1}
	effect.addResults(o)
	return effect, nil
}

// controlPageSize is the largest number of runs, each with its descendants, that one transaction changes.
const controlPageSize = 100

func (e *Engine) controlAll(ctx context.Context, verb store.ControlVerb, f Filter, opts []ControlOption) (effect ControlResult, err error) {
	if err := e.checkUsableOutsideWorkflow(ctx, "a pause, resume, cancel or terminate", "Child.Cancel for the children of this run"); err != nil {
		return ControlResult{}, fmt.Errorf("%s runs by a filter: %w", publicVerbs[verb], err)
	}
	template, err := newControlRequest(verb, opts)
	if err != nil {
		return ControlResult{}, err
	}
	filter, err := e.convertFilter(ctx, f)
	if err != nil {
		return ControlResult{}, err
	}
	if err := checkFilterNotEmpty(&filter, publicVerbs[verb]); err != nil {
		return ControlResult{}, err
	}
	if len(filter.Statuses) == 0 {
		filter.Statuses = []store.Status{store.Pending, store.Running, store.Waiting, store.Paused}
	}
	var before uuid.UUID
	for {
		var rows []*store.Run
		err := e.inner.ReadBeforeWrite(ctx, func() (err error) {
			rows, err = e.inner.Store().ListRuns(ctx, filter, before, controlPageSize)
			return err
		})
		if err != nil {
			return effect, fmt.Errorf("%s runs by a filter: %w", publicVerbs[verb], err)
		}
		if len(rows) == 0 {
			return effect, nil
		}
		before = rows[len(rows)-1].UUID
		effect.Matched += len(rows)
		if template.DryRun {
			continue
		}
		o := *template
		for _, row := range rows {
			o.Runs = append(o.Runs, row.UUID)
		}
		if err := e.inner.Control(ctx, &o); err != nil {
			return effect, fmt.Errorf("%s runs by a filter: %w", publicVerbs[verb], err)
		}
		effect.addResults(&o)
	}
}

// checkFilterNotEmpty returns ErrInvalidConfig for a filter without any condition, or with Roots only, which would select all runs by mistake.
func checkFilterNotEmpty(chosen *store.Filter, verb Verb) error {
	if len(chosen.Statuses)+len(chosen.Priorities)+len(chosen.UUIDs)+len(chosen.Parents) == 0 && !chosen.OnlyHeld && chosen.Owner == (uuid.UUID{}) &&
		chosen.Workflow+chosen.Queue+chosen.NamePrefix+chosen.Tag.Key+chosen.Failure.Workflow+chosen.Version == "" &&
		chosen.CreatedAfter.IsZero() && chosen.CreatedBefore.IsZero() && chosen.EndedAfter.IsZero() && chosen.EndedBefore.IsZero() {
		return fmt.Errorf("%w: the filter of a %s of many runs chooses nothing in particular: set CreatedBefore to mean all", ErrInvalidConfig, verb)
	}
	return nil
}
