package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
)

// DefaultQueue is the queue of a workflow that is defined without the option [Queue].
const DefaultQueue = "default"

// A Workflow is a function with a name under which its runs are recorded. Create a Workflow with [Define].
type Workflow[I, O any] struct {
	name           string
	queue          string       // empty: not given
	stepDefaults   *stepOptions // nil: not given
	declaredChange declaredCodeChanges
	pinned         bool
	grace          time.Duration // of a pinned workflow
	retryRun       *RetryPolicy  // nil: runs are not retried
	fn             func(*Ctx, I) (O, error)
	graph          *graphDefinition // see DefineGraph; nil: none
	isGraph        bool             // DefineGraph or DefineGraphFrom returned it
	err            error
}

// Define returns the workflow with the given name and function. The name is recorded with each run, and processes find the
// function by the recorded name: do not change the name while runs are live. If the name is invalid, the function is nil or an
// option is invalid, [New] and every start return [ErrInvalidName] or [ErrInvalidConfig].
//
// The function must be deterministic: what it does outside of durable calls must depend only on its input and on the results of
// durable calls. After a crash the function is executed again from the beginning, and recorded calls return their recorded
// results.
func Define[I, O any](name string, fn func(*Ctx, I) (O, error), opts ...WorkflowOption) *Workflow[I, O] {
	var o workflowOptions
	unusable := applyOptions(opts, &o)
	w := &Workflow[I, O]{name: name, queue: o.queue, stepDefaults: o.stepDefaults, declaredChange: o.declaredCodeChanges, pinned: o.pinned, grace: o.pinnedGrace, retryRun: o.retryRun, fn: fn}
	w.err = errors.Join(unusable, naming.Check("workflow", name), o.err)
	if fn == nil {
		w.err = errors.Join(w.err, fmt.Errorf("%w: workflow %q has no function", ErrInvalidConfig, name))
	}
	return w
}

// WorkflowOption configures a workflow; see [Queue], [Defaults], [RetryRun], [OnDrift], [Renamed], [Retired] and [Pinned].
type WorkflowOption func(*workflowOptions)

type workflowOptions struct {
	givenOptions
	queue        string
	stepDefaults *stepOptions
	declaredCodeChanges
	pinned      bool
	pinnedGrace time.Duration
	retryRun    *RetryPolicy
}

const (
	optionQueueName optionSet = 1 << iota
	optionDefaults
	optionOnDrift
	optionPinned
	optionRetryRun
)

// Queue sets the name of the queue in which the workflow's runs wait for a worker, unless a start names another queue by
// [InQueue]. Without the option Queue, root runs wait in [DefaultQueue], and children in the queue of their parent. A live run
// keeps its queue when the code changes the name of the queue. Workers still execute the runs in the old queue, because a
// worker serves all queues unless its Config.Queues names some.
func Queue(name string) WorkflowOption {
	return func(o *workflowOptions) {
		o.queue = name
		o.addOptionOnce(optionQueueName, "Queue")
		o.setFirstError(naming.Check("queue", name))
	}
}

// Definition is a [*Workflow] of any input and output types. Config.Workflows is a list of Definitions.
type Definition interface {
	// Name returns the workflow's name.
	Name() string
	engineDefinition(maxPayload int) (*engine.WorkflowDefinition, error)
	checkInput(input []byte) error
	queueName() string
	declaredGraph() *graphDefinition
}

// Name returns the workflow's name, or an empty string if w is nil.
func (w *Workflow[I, O]) Name() string {
	if w == nil {
		return ""
	}
	return w.name
}

// checkUsable returns an error if the workflow was not created by Define, or was defined with an invalid argument.
func (w *Workflow[I, O]) checkUsable() error {
	if w == nil || w.fn == nil && w.err == nil {
		return fmt.Errorf("%w: a %T that is nil or empty: make it with Define", ErrInvalidConfig, w)
	}
	if w.err != nil {
		return w.err
	}
	return w.graph.lateDeclarationError(w.name)
}

// engineDefinition converts the workflow for the engine, which passes inputs and outputs as bytes. maxPayload bounds an output, in
// bytes.
func (w *Workflow[I, O]) engineDefinition(maxPayload int) (*engine.WorkflowDefinition, error) {
	if err := w.checkUsable(); err != nil {
		return nil, err
	}
	return &engine.WorkflowDefinition{Name: w.name, OnDrift: w.declaredChange.onDrift, PreviousCallNames: w.declaredChange.previousNames, RetiredCalls: w.declaredChange.retiredNames, Pinned: w.pinned, PinnedGrace: w.grace, RunRetryDelay: w.retryWaitFunc(), UserFunction: w.fn, IsGraph: w.isGraph, FirstCheckpoint: w.declaredGraph().firstShapeRecord(), UsedNameCount: w.declaredGraph().minNameCount(), CallFunction: func(s *engine.Scope, input []byte) ([]byte, *record.Failure) {
		in, err := decode[I](input)
		if err != nil {
			fix := "bring back the old type"
			if !s.HasRecordedCalls() {
				fix = "nothing of the run is recorded: start it again with an input that decodes, and terminate this run; or bring back the type that decodes it"
			}
			return nil, toRecordedFailure(s.ReportDivergence("", fmt.Errorf("%w: the input of run %q of workflow %q (%d bytes) does not decode: %w: %s",
				ErrDiverged, s.RunNameOrUUID(), w.name, len(input), err, fix)))
		}
		out, err := w.fn(&Ctx{Context: s.Context(), scope: s, maxPayload: maxPayload, stepDefaults: w.stepDefaults}, in)
		s.NoteFunctionReturned(withoutRecordedFailure(err))
		if next := continueAsNewInput(err, s); next != nil {
			s.SetContinueAsNewInput(next)
			return nil, nil
		}
		if err != nil {
			return nil, toRecordedRunFailure(err)
		}
		b, err := encodeAndCheckDecodes(out, maxPayload)
		if err != nil {
			return nil, toRecordedFailure(err)
		}
		return b, nil
	}, EncodeContinueAsNewInput: func(next any) ([]byte, error) { return w.encodeContinueAsNewInput(next, maxPayload) }}, nil
}

// StartOption configures one start of a run.
type StartOption func(*startOptions)

type startOptions struct {
	givenOptions
	id                 string
	queue              string
	priority           *int16
	groupKey           string
	weight             int32
	startBy            time.Duration
	timeout            time.Duration
	delay              time.Duration
	detached           bool
	tags               []store.Tag
	startKeySpec       *startkey.Spec            // nil: the start has no start key
	insert             bridge.InsertStarts       // set by the StartTx of a store; else nil
	insertWithStartKey bridge.InsertWithStartKey // set together with insert
}

const (
	optionID optionSet = 1 << iota
	optionTimeout
	optionDelay
	optionDetached
	optionQueue
	optionPriority
	optionGroupKey
	optionStartBy
	optionStartKey
)

// Timeout sets how long the run may take. The time of a Timeout begins when the run is due, which is after its [Delay], and
// passes by the database's clock, even while no process executes the run. A paused run whose time is over expires when it is
// resumed. The end of the Timeout is the Deadline of the run's Ctx. At its deadline, the run's Ctx ends with [ErrTimeout] as
// the cause, its compensations are executed, and the run ends as [StatusExpired] with [ErrTimeout]. If the function of an
// expired run was never called, it is not called any more. The argument d must be positive. A run that is started without
// Timeout has no deadline. [Engine.SetTimeout] changes the deadline.
//
// A worker that executes the workflow in the run's queue ends an expired run. As long as there is no such worker, the run does
// not end; [RunInfo.NoWorker] is then true.
func Timeout(d time.Duration) StartOption {
	return func(o *startOptions) {
		o.addOptionOnce(optionTimeout, "Timeout")
		o.timeout = atLeastMicrosecond(d)
		if d <= 0 {
			o.setFirstError(fmt.Errorf("%w: Timeout of %v: it must be positive", ErrInvalidConfig, d))
		}
	}
}

// Delay sets how long after its start the run is due, by the database's clock. With a d of zero or less, the run is due at
// once.
func Delay(d time.Duration) StartOption {
	return func(o *startOptions) {
		o.addOptionOnce(optionDelay, "Delay")
		o.delay = d
	}
}

// ID sets the ID of the run. All starts with the same ID, workflow and input, from any process, start one run. The ID is a text
// of 1 to 512 bytes without control characters. Without the option ID, the ID of the run is its UUID, which is of version 7. A
// start whose ID is the UUID of a child, or of a run with an ID of its own, returns [ErrIDConflict], because the ID would
// address two runs.
func ID(id string) StartOption {
	return func(o *startOptions) {
		o.addOptionOnce(optionID, "ID")
		o.id = id
		o.setFirstError(naming.Check("run", id))
	}
}

// newStartRequest checks and encodes a start of a root run. limit is the largest size of the encoded input, in bytes.
func (w *Workflow[I, O]) newStartRequest(limit int, in I, opts []StartOption) (engine.StartRequest, error) {
	return w.newStartRequestFromOptions(limit, in, newStartOptions(opts))
}

func newStartOptions(opts []StartOption) *startOptions {
	o := new(startOptions)
	o.setFirstError(applyOptions(opts, o))
	return o
}

// newStartRequestFromOptions does what request does, with options that were applied before.
func (w *Workflow[I, O]) newStartRequestFromOptions(limit int, in I, o *startOptions) (engine.StartRequest, error) {
	request, err := w.newRootOrChildRequest(limit, in, o)
	if err == nil {
		err = o.applyStartKey(&request)
	}
	request.Queue = firstNonZero(request.Queue, DefaultQueue)
	if err == nil && request.Detached {
		err = fmt.Errorf("start workflow %q: %w: the option Detached is for children, and a run of its own has no parent: leave it out", w.name, ErrInvalidConfig)
	}
	return request, err
}

// newRootOrChildRequest checks and encodes a start of a root run or a child. The queue is empty if neither the start nor the workflow
// names one.
func (w *Workflow[I, O]) newRootOrChildRequest(limit int, in I, o *startOptions) (engine.StartRequest, error) {
	if err := w.checkUsable(); err != nil {
		return engine.StartRequest{}, err
	}
	if o.err != nil {
		return engine.StartRequest{}, fmt.Errorf("start workflow %q: %w", w.name, o.err)
	}
	input, err := encodeAndCheckDecodes(in, limit)
	if err != nil {
		return engine.StartRequest{}, fmt.Errorf("start workflow %q: the input: %w", w.name, err)
	}
	return engine.StartRequest{
		Name: o.id, Workflow: w.name, Queue: firstNonZero(o.queue, w.queue), Priority: o.priority, Input: input, Timeout: o.timeout, Delay: o.delay, Detached: o.detached, Tags: o.tags,
		GroupKey: o.groupKey, Weight: o.weight, StartBy: o.startBy,
	}, nil
}

// Start records a run in the database and returns its handle once the record is committed. If e executes the workflow and has a
// free slot, the run begins in this process at once; otherwise any worker that executes the workflow claims the run. If a run
// with the ID exists, Start returns the handle of that run, or [ErrIDConflict] if that run has another workflow or input.
//
// Start returns [ErrInvalidName], [ErrInvalidConfig], [ErrNotEncodable] or [ErrPayloadTooLarge] for invalid arguments. If the
// database does not acknowledge the write, Start returns a [*WriteError]. The WriteError wraps [ErrPermission] at once;
// [ErrUnavailable], [ErrRejected] or [ErrLocked] after Config.Patience; or ctx.Err() and the cause of the end of ctx. If
// MayHaveCommitted of the WriteError is true, start the same ID again to find out whether the run exists.
func (w *Workflow[I, O]) Start(ctx context.Context, e *Engine, in I, opts ...StartOption) (*Run[O], error) {
	if err := e.checkUsableOutsideWorkflow(ctx, "a start", "Ctx.Start, Ctx.StartChild or Ctx.Child"); err != nil {
		return nil, fmt.Errorf("start workflow %q: %w", w.Name(), err)
	}
	o := newStartOptions(opts)
	request, err := w.newStartRequestFromOptions(e.cfg.MaxPayload, in, o)
	if err != nil {
		return nil, err
	}
	if o.insert != nil && request.StartKey == nil {
		return startInTx[O](ctx, e, request, o.insert)
	}
	if request.StartKey != nil {
		return w.startWithStartKey(ctx, e, &request, o)
	}
	started, err := e.inner.Start(ctx, []engine.StartRequest{request})
	if err != nil {
		return nil, fmt.Errorf("start workflow %q: %w", w.name, err)
	}
	if started[0].Err != nil {
		return nil, started[0].Err
	}
	return newRun[O](e, &started[0].Run), nil
}

// Handle returns a handle of an existing run with the given ID, which is the caller's ID or the UUID. Handle returns
// [ErrNotFound] if there is no such run, and [ErrIDConflict] if the run has another workflow.
func (w *Workflow[I, O]) Handle(ctx context.Context, e *Engine, id string) (*Run[O], error) {
	if err := w.checkUsable(); err != nil {
		return nil, err
	}
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("handle of run %q: %w", id, err)
	}
	row, err := e.inner.GetWithoutPayloads(ctx, id)
	if err != nil {
		return nil, err
	}
	if row.Workflow != w.name {
		return nil, fmt.Errorf("%w: run %q is of workflow %q, not %q", ErrIDConflict, id, row.Workflow, w.name)
	}
	return newRun[O](e, row), nil
}

// Run is a handle of one run, returned by [Workflow.Start] and [Workflow.Handle]. A Run is safe for concurrent use.
type Run[O any] struct {
	e            *Engine
	uuid         uuid.UUID
	id, workflow string
}

func newRun[O any](e *Engine, row *store.Run) *Run[O] {
	return &Run[O]{e: e, uuid: row.UUID, id: row.NameOrUUID(), workflow: row.Workflow}
}

// ID returns the ID that addresses the run: the caller's ID of a root run, or the UUID of a child or of a root run that was
// started without an ID.
func (r *Run[O]) ID() string { return r.id }

// RunID returns the run's UUID in text form.
func (r *Run[O]) RunID() string { return r.uuid.String() }

// Result waits until the run has ended, in whatever process, and returns the output of the run. Result returns a [*RunError] if
// the run did not complete, [ErrDiverged] if the output does not decode into O, and [ErrNotFound] if the run was removed. If
// ctx ends before the run has ended, Result returns an error that wraps ctx.Err() and the cause of the end of ctx, and the run
// continues. The text of this error contains the state of the run and, if the run is paused or held, who paused it, why, and what continues it. While the
// database is not available, Result continues to wait. Result returns [ErrPermission] if the database refuses the privilege to
// read the run, and [ErrRejected] or [ErrSchema] if the database has rejected every query for the result for Config.Patience.
func (r *Run[O]) Result(ctx context.Context) (O, error) {
	if err := r.checkUsable(ctx); err != nil {
		return *new(O), err
	}
	row, err := r.e.inner.Await(ctx, r.uuid)
	if err != nil {
		var zero O
		state := ""
		if ctx.Err() != nil {
			state = r.e.inner.DescribeRunState(ctx, r.uuid)
			if err == context.Cause(ctx) { //nolint:errorlint // the wait returned the cause alone
				err = store.ContextError(ctx)
			}
		}
		return zero, fmt.Errorf("wait for run %q of workflow %q%s: %w", r.id, r.workflow, state, err)
	}
	return decodeRunResult[O](row)
}

// TryResult returns the result of the run without waiting for its end. If the run has ended, ended is true, and out and err are
// what [Run.Result] returns. If the run has not ended, ended is false and err is nil. TryResult reads the database once.
// TryResult returns [ErrNotFound] if the run was removed.
func (r *Run[O]) TryResult(ctx context.Context) (out O, ended bool, err error) {
	if err := r.checkUsable(ctx); err != nil {
		return out, false, err
	}
	row, err := r.e.inner.Get(ctx, r.uuid.String())
	switch {
	case err != nil:
		return out, false, fmt.Errorf("look for the result of run %q of workflow %q: %w", r.id, r.workflow, err)
	case !row.Status.IsTerminal():
		return out, false, nil
	}
	out, err = decodeRunResult[O](row)
	return out, true, err
}

// checkUsable returns ErrInvalidConfig if the handle, its engine or the context is nil.
func (r *Run[O]) checkUsable(ctx context.Context) error {
	if r == nil {
		return fmt.Errorf("%w: the *Run is nil: it comes with an error from Start, StartMany or Handle", ErrInvalidConfig)
	}
	return r.e.checkUsable(ctx)
}

// decodeRunResult returns the decoded output of a run that has ended, or its failure.
func decodeRunResult[O any](row *store.Run) (O, error) {
	var zero O
	if row.Status != store.Completed {
		return zero, newRunError(row)
	}
	out, err := decode[O](row.Output)
	if errors.Is(err, ErrUnreadable) {
		return zero, fmt.Errorf("the output of run %q of workflow %q: %w", row.NameOrUUID(), row.Workflow, err)
	}
	if err != nil {
		return zero, fmt.Errorf("%w: the output of run %q of workflow %q: %w", ErrDiverged, row.NameOrUUID(), row.Workflow, err)
	}
	return out, nil
}
