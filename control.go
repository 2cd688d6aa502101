package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Effect says what a Pause, Resume, Cancel or Terminate did.
type Effect struct {
	Matched int // runs that were addressed
	// Done counts the runs, of these and their descendants, that the call brought into the state.
	Done int
	// Requested counts runs that reach the state when their current step (pause) or their
	// compensations (cancel) finish.
	Requested int
	// DoneIDs and RequestedIDs are the UUIDs of these runs, up to MaxEffectIDs of each.
	DoneIDs, RequestedIDs []string
}

// MaxEffectIDs bounds Effect.DoneIDs and Effect.RequestedIDs, so that a call on a huge tree
// does not return all of it. The counts are always exact.
const MaxEffectIDs = 1000

var _ = [1]struct{}{}[MaxEffectIDs-store.MaxControlIDs] // they are the same

// add counts what an order did.
func (f *Effect) add(o *store.Order) {
	for _, a := range o.Results {
		f.Done += a.Changed
		f.Requested += a.Requested
	}
	f.DoneIDs = addIDs(f.DoneIDs, o.Changed)
	f.RequestedIDs = addIDs(f.RequestedIDs, o.Requested)
}

func addIDs(to []string, ids []uuid.UUID) []string {
	for _, id := range ids[:min(len(ids), MaxEffectIDs-len(to))] {
		to = append(to, id.String())
	}
	return to
}

// Pause stops the run with the caller's ID, or the UUID, and everything beneath it:
// nothing new starts. A step that is running is let finish and is recorded; such a run is
// counted in Effect.Requested, and leaves memory then. A run that is paused already stays so.
//
// Errors: ErrNotFound; *StateError if the run has ended or is being cancelled.
func (e *Engine) Pause(ctx context.Context, id string, opts ...ControlOption) (Effect, error) {
	return e.order(ctx, store.VerbPause, id, opts)
}

// Resume lets a run that was paused go on, and what is beneath it, but for runs that
// were paused themselves and what is beneath those. If the run has come to its end
// although it was asked to pause, what was paused with it goes on. Timers keep their due
// times unless FreezeTimers is given.
//
// Errors: ErrNotFound; *StateError if the run itself is not paused, and nothing was with it.
func (e *Engine) Resume(ctx context.Context, id string, opts ...ControlOption) (Effect, error) {
	return e.order(ctx, store.VerbResume, id, opts)
}

// Cancel ends the run and all its descendants, detached ones included; OnlyUnstarted and
// OnlyItself reach less far. A run that no process has executed yet is cancelled at once. Any other is
// counted in Effect.Requested: its running steps see their contexts end, with ErrCancelled as the
// cause, results that arrive all the same are recorded, its compensations run, and then it is
// cancelled; it cannot complete any more. A run that is not in memory, because it waits, is paused or
// was interrupted, is replayed for this by a worker that has its workflow, whatever it has recorded; without
// such a worker it stays as it is until one comes, or until Terminate. The first reason and actor are kept. To cancel
// again what is being cancelled, or is cancelled, is no error.
//
// Errors: ErrNotFound; *StateError if the run has ended in another way.
func (e *Engine) Cancel(ctx context.Context, id string, opts ...ControlOption) (Effect, error) {
	return e.order(ctx, store.VerbCancel, id, opts)
}

// Terminate ends the run and all its descendants at once, detached ones included, whatever
// they are doing: running, waiting, paused or being cancelled. Compensations do not run. It needs no
// worker that has the workflow, so it also ends what no process can execute any more;
// prefer Cancel, which undoes what was done.
//
// The runs are cancelled, and their errors are ErrCancelled and [ErrTerminated]. Where one
// of them is executed, its Ctx and its running steps' contexts end with ErrTerminated as the
// cause, and nothing that it returns is recorded any more. Parents that wait for a terminated
// child go on with its error. To terminate again what is terminated, or cancelled, is no error.
//
// Options: Reason and Actor. Errors: ErrNotFound; *StateError if the run has ended in another way.
func (e *Engine) Terminate(ctx context.Context, id string, opts ...ControlOption) (Effect, error) {
	return e.order(ctx, store.VerbTerminate, id, opts)
}

// SetTimeout has the run expire d from now, by the database's clock, in place of the [Timeout]
// that it was started with; zero removes it. A process that executes the run learns of it; the Ctx's
// Deadline follows. A run whose Delay is longer expires when it is due. FreezeTimers
// moves the deadline by the whole pause, also if it was set during the pause.
//
// Errors: ErrNotFound; ErrInvalidConfig for a negative d; *StateError if the run has ended, is
// being cancelled, or its time was over already.
func (e *Engine) SetTimeout(ctx context.Context, id string, d time.Duration) error {
	if err := e.writes(ctx, "a change of a timeout", "the option Timeout"); err != nil {
		return fmt.Errorf("set the timeout of run %q: %w", id, err)
	}
	if d < 0 {
		return fmt.Errorf("%w: SetTimeout of %v for run %q: it must be positive, or zero for none", ErrInvalidConfig, d, id)
	}
	return stated(e.inner.SetTimeout(ctx, id, d))
}

// PauseAll pauses every run that the filter chooses, page by page, as Pause does. Runs that
// cannot be paused are left. If it fails on its way, the Effect says how far it came, and it
// can be called again. A filter that chooses nothing in particular is ErrInvalidConfig:
// give CreatedBefore to mean all.
func (e *Engine) PauseAll(ctx context.Context, f Filter, opts ...ControlOption) (Effect, error) {
	return e.orderAll(ctx, store.VerbPause, f, opts)
}

// ResumeAll is PauseAll for Resume.
func (e *Engine) ResumeAll(ctx context.Context, f Filter, opts ...ControlOption) (Effect, error) {
	return e.orderAll(ctx, store.VerbResume, f, opts)
}

// CancelAll is PauseAll for Cancel.
func (e *Engine) CancelAll(ctx context.Context, f Filter, opts ...ControlOption) (Effect, error) {
	return e.orderAll(ctx, store.VerbCancel, f, opts)
}

// TerminateAll is PauseAll for Terminate.
func (e *Engine) TerminateAll(ctx context.Context, f Filter, opts ...ControlOption) (Effect, error) {
	return e.orderAll(ctx, store.VerbTerminate, f, opts)
}

// ControlOption changes one Pause, Resume, Cancel or Terminate.
type ControlOption func(*controlOptions)

type controlOptions struct {
	reason, actor string
	scope         store.Scope
	freeze        bool
	dry           bool
	given         given
	err           error
}

const (
	givenReason given = 1 << iota
	givenActor
	givenScope // OnlyUnstarted or OnlyItself
	givenFreeze
	givenDry
)

func (o *controlOptions) once(bit given, option string) {
	if err := o.given.once(bit, option); err != nil && o.err == nil {
		o.err = err
	}
}

// Reason says why, for people, in at most 16 KiB. It is kept with the run.
func Reason(text string) ControlOption {
	return func(o *controlOptions) {
		o.once(givenReason, "Reason")
		o.reason = text
	}
}

// Actor says who, for people, in at most 16 KiB. It is kept with the run.
func Actor(name string) ControlOption {
	return func(o *controlOptions) {
		o.once(givenActor, "Actor")
		o.actor = name
	}
}

// OnlyUnstarted has Cancel end the run itself and, of its descendants, those that have never
// been executed. The others run to their ends: the run's own children among them become Detached.
func OnlyUnstarted() ControlOption {
	return func(o *controlOptions) {
		o.once(givenScope, "OnlyUnstarted")
		o.scope = store.NotStarted
	}
}

// OnlyItself has Cancel leave the run's descendants alone. They run to their ends: its children
// become Detached, so that its own end does not cancel them.
func OnlyItself() ControlOption {
	return func(o *controlOptions) {
		o.once(givenScope, "OnlyItself")
		o.scope = store.RunItself
	}
}

// FreezeTimers has Resume move the timers, backoffs, wait times and timeouts of what it
// resumes by the time that it was paused. The StartedAt of a step without an outcome moves too, since its
// TotalTimeout counts from it. A sleep that was over before the run learned of the pause stays over.
func FreezeTimers() ControlOption {
	return func(o *controlOptions) {
		o.once(givenFreeze, "FreezeTimers")
		o.freeze = true
	}
}

// DryRun has PauseAll, ResumeAll, CancelAll and TerminateAll change nothing, and count in
// Effect.Matched what the filter chooses.
func DryRun() ControlOption {
	return func(o *controlOptions) {
		o.once(givenDry, "DryRun")
		o.dry = true
	}
}

// StateError is returned when a run's state does not allow the operation. It is ErrState.
type StateError struct {
	ID     string
	Verb   Verb
	Status Status
	Detail string // the state in words, with what was asked of the run before
}

// Error names the run and its state.
func (e *StateError) Error() string {
	return fmt.Sprintf("cannot %s run %q: it is %s", e.Verb, e.ID, e.Detail)
}

// Unwrap answers ErrState.
func (e *StateError) Unwrap() error { return ErrState }

// stated makes the engine's StateError the public one.
func stated(err error) error {
	var inner *engine.StateError
	if errors.As(err, &inner) {
		return &StateError{ID: inner.ID, Verb: Verb(inner.Verb), Status: Status(inner.Status.String()), Detail: inner.State()}
	}
	return err
}

var verbs = map[store.Verb]Verb{
	store.VerbPause: VerbPause, store.VerbResume: VerbResume, store.VerbCancel: VerbCancel, store.VerbTerminate: VerbTerminate,
}

func newOrder(verb store.Verb, opts []ControlOption) (*store.Order, controlOptions, error) {
	var o controlOptions
	err := apply(opts, &o)
	switch {
	case err != nil:
	case o.err != nil:
		err = o.err
	case o.scope != store.WholeTree && verb != store.VerbCancel:
		err = fmt.Errorf("%w: OnlyUnstarted and OnlyItself are for Cancel, not for %s", ErrInvalidConfig, verbs[verb])
	case o.freeze && verb != store.VerbResume:
		err = fmt.Errorf("%w: FreezeTimers is for Resume, not for %s", ErrInvalidConfig, verbs[verb])
	}
	if err == nil {
		err = errors.Join(engine.CheckText("reason", o.reason), engine.CheckText("actor", o.actor))
	}
	return &store.Order{Verb: verb, Scope: o.scope, Reason: o.reason, Actor: o.actor, ShiftTimers: o.freeze}, o, err
}

func (e *Engine) order(ctx context.Context, verb store.Verb, id string, opts []ControlOption) (Effect, error) {
	if err := e.writes(ctx, "a pause, resume, cancel or terminate", "Child.Cancel for a child of this run"); err != nil {
		return Effect{}, fmt.Errorf("%s run %q: %w", verbs[verb], id, err)
	}
	o, options, err := newOrder(verb, opts)
	if err == nil && options.dry {
		err = fmt.Errorf("%w: DryRun is for PauseAll, ResumeAll, CancelAll and TerminateAll", ErrInvalidConfig)
	}
	if err != nil {
		return Effect{}, err
	}
	row, err := e.inner.Find(ctx, id)
	if err != nil {
		return Effect{}, err
	}
	o.Runs = []uuid.UUID{row.ID}
	if err := e.inner.Order(ctx, o); err != nil {
		return Effect{}, fmt.Errorf("%s run %q: %w", verbs[verb], id, err)
	}
	a := o.Results[0]
	refused := a.Status.Terminal()
	switch verb {
	case store.VerbPause:
		refused = refused || a.Control&store.CancelRequested != 0
	case store.VerbCancel, store.VerbTerminate:
		// Descendants may live on when a run has ended, and are ended then.
		refused = refused && a.Status != store.Cancelled && a.Changed+a.Requested == 0
	case store.VerbResume:
		// What was paused with a run is resumed also if that has ended meanwhile.
		refused = (refused || a.Control&store.PausedItself == 0) && a.Changed == 0
	}
	switch {
	case !a.Found:
		return Effect{}, fmt.Errorf("%w: run %q was removed", ErrNotFound, id)
	case refused:
		return Effect{}, stated(&engine.StateError{ID: id, Verb: string(verbs[verb]), Status: a.Status, Control: a.Control})
	}
	effect := Effect{Matched: 1}
	effect.add(o)
	return effect, nil
}

// orderPage is how many runs, each with what is beneath it, are changed in one transaction.
const orderPage = 100

func (e *Engine) orderAll(ctx context.Context, verb store.Verb, f Filter, opts []ControlOption) (effect Effect, err error) {
	if err := e.writes(ctx, "a pause, resume, cancel or terminate", "Child.Cancel for the children of this run"); err != nil {
		return Effect{}, fmt.Errorf("%s runs by a filter: %w", verbs[verb], err)
	}
	template, options, err := newOrder(verb, opts)
	if err != nil {
		return Effect{}, err
	}
	filter, err := e.filter(ctx, f)
	if err != nil {
		return Effect{}, err
	}
	if chosen := filter; len(chosen.Statuses) == 0 && chosen.Workflow+chosen.Queue+chosen.NamePrefix+chosen.Tag.Key == "" &&
		chosen.CreatedAfter.IsZero() && chosen.CreatedBefore.IsZero() {
		return Effect{}, fmt.Errorf("%w: the filter of a %s of many runs chooses nothing in particular: set CreatedBefore to mean all", ErrInvalidConfig, verbs[verb])
	}
	if len(filter.Statuses) == 0 {
		filter.Statuses = []store.Status{store.Pending, store.Running, store.Waiting, store.Paused}
	}
	var before uuid.UUID
	for {
		rows, err := e.inner.Store().List(ctx, filter, before, orderPage)
		if err != nil {
			return effect, fmt.Errorf("%s runs by a filter: %w", verbs[verb], err)
		}
		if len(rows) == 0 {
			return effect, nil
		}
		before = rows[len(rows)-1].ID
		effect.Matched += len(rows)
		if options.dry {
			continue
		}
		o := *template
		for _, row := range rows {
			o.Runs = append(o.Runs, row.ID)
		}
		if err := e.inner.Order(ctx, &o); err != nil {
			return effect, fmt.Errorf("%s runs by a filter: %w", verbs[verb], err)
		}
		effect.add(&o)
	}
}
