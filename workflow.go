package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// DefaultQueue is where runs wait whose workflow names no queue.
const DefaultQueue = "default"

// Workflow is a registered name and its function. Make it with Define.
type Workflow[I, O any] struct {
	name  string
	queue string
	fn    func(*Ctx, I) (O, error)
	err   error
}

// Define names a workflow function. The name is kept in the database, and is how other
// processes find the function: never change it while runs are alive. A name that
// cannot be one, or a nil function, is answered by New and by each start.
//
// The function must be deterministic: what it does outside durable calls must follow
// from its input and their results, since it is executed again from its beginning
// after a crash, with recorded results answered from history.
func Define[I, O any](name string, fn func(*Ctx, I) (O, error), opts ...WorkflowOption) *Workflow[I, O] {
	o := workflowOptions{queue: DefaultQueue}
	unusable := apply(opts, &o)
	w := &Workflow[I, O]{name: name, queue: o.queue, fn: fn}
	w.err = errors.Join(unusable, engine.CheckName("workflow", name), engine.CheckName("queue", o.queue), o.err)
	if fn == nil {
		w.err = errors.Join(w.err, fmt.Errorf("%w: workflow %q has no function", ErrInvalidConfig, name))
	}
	return w
}

// WorkflowOption changes how a workflow is dispatched.
type WorkflowOption func(*workflowOptions)

type workflowOptions struct {
	queue string
	given given
	err   error
}

// Queue names the queue in which the workflow's runs wait. Unless given: DefaultQueue.
func Queue(name string) WorkflowOption {
	return func(o *workflowOptions) {
		o.queue = name
		o.err = errors.Join(o.err, o.given.once(1, "Queue"))
	}
}

// Definition is a *Workflow of any types, for Config.Workflows.
type Definition interface {
	// Name is the workflow's name.
	Name() string
	definition(maxPayload int) (*engine.Definition, error)
}

// Name is the workflow's name.
func (w *Workflow[I, O]) Name() string {
	if w == nil {
		return ""
	}
	return w.name
}

// usable is why the workflow cannot be used, nil if it can.
func (w *Workflow[I, O]) usable() error {
	if w == nil || w.fn == nil && w.err == nil {
		return fmt.Errorf("%w: a %T that is nil or empty: make it with Define", ErrInvalidConfig, w)
	}
	return w.err
}

// definition is the workflow as the engine sees it: bytes in, bytes out.
func (w *Workflow[I, O]) definition(maxPayload int) (*engine.Definition, error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	return &engine.Definition{Name: w.name, Queue: w.queue, Run: func(s *engine.Scope, input []byte) ([]byte, *engine.Failure) {
		in, err := decode[I](input)
		if err != nil {
			return nil, failureOf(fmt.Errorf("%w: the input of run %q of workflow %q (%d bytes) does not decode: %w: bring back the old type",
				ErrDiverged, s.ID(), w.name, len(input), err))
		}
		out, err := w.fn(&Ctx{Context: s.Context(), scope: s, maxPayload: maxPayload}, in)
		if err != nil {
			return nil, failureOf(err)
		}
		b, err := encodeReadable(out, maxPayload)
		if err != nil {
			return nil, failureOf(err)
		}
		return b, nil
	}}, nil
}

// StartOption changes one start.
type StartOption func(*startOptions)

type startOptions struct {
	id       string
	timeout  time.Duration
	delay    time.Duration
	detached bool
	tags     []store.Tag
	insert   bridge.InsertStarts // by the StartTx of a store
	given    given
	err      error
}

const (
	givenID given = 1 << iota
	givenTimeout
	givenDelay
	givenDetached
)

func (o *startOptions) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}

// Timeout bounds the run, from when it is due (after its [Delay]), by the database's clock,
// also while nobody executes it; a paused run is held to it when it is resumed. It is the Ctx's
// Deadline. When it is over, the run's context ends with ErrTimeout as the cause, its compensations
// run, and it ends as [StatusExpired] with ErrTimeout. A function that was never called is not
// called then. [Engine.SetTimeout] changes it.
func Timeout(d time.Duration) StartOption {
	return func(o *startOptions) {
		o.fail(o.given.once(givenTimeout, "Timeout"))
		o.timeout = d
		if d <= 0 {
			o.fail(fmt.Errorf("%w: Timeout of %v: it must be positive", ErrInvalidConfig, d))
		}
	}
}

// Delay lets the run begin only after d, by the database's clock. Zero and less: at once.
func Delay(d time.Duration) StartOption {
	return func(o *startOptions) {
		o.fail(o.given.once(givenDelay, "Delay"))
		o.delay = d
	}
}

// ID names the run: the same ID with the same workflow and input is the same run, however
// often and from wherever it is started. It is any text of 1 to 512 bytes without
// control characters. Without it a UUIDv7 is made. The UUID of another run is refused as an ID, with
// ErrIDConflict: the text would name both.
func ID(id string) StartOption {
	return func(o *startOptions) {
		o.fail(o.given.once(givenID, "ID"))
		o.id = id
		o.fail(engine.CheckName("run", id))
	}
}

// request checks and encodes one start of a root.
func (w *Workflow[I, O]) request(limit int, in I, opts []StartOption) (engine.StartRequest, error) {
	return w.requestOf(limit, in, optionsOf(opts))
}

func optionsOf(opts []StartOption) *startOptions {
	o := new(startOptions)
	o.fail(apply(opts, o))
	return o
}

// requestOf is request with options that were taken already.
func (w *Workflow[I, O]) requestOf(limit int, in I, o *startOptions) (engine.StartRequest, error) {
	request, err := w.anyRequest(limit, in, o)
	if err == nil && request.Detached {
		err = fmt.Errorf("start workflow %q: %w: the option Detached is for children, and a run of its own has no parent: leave it out", w.name, ErrInvalidConfig)
	}
	return request, err
}

// anyRequest checks and encodes one start of a root or a child.
func (w *Workflow[I, O]) anyRequest(limit int, in I, o *startOptions) (engine.StartRequest, error) {
	if err := w.usable(); err != nil {
		return engine.StartRequest{}, err
	}
	if o.err != nil {
		return engine.StartRequest{}, fmt.Errorf("start workflow %q: %w", w.name, o.err)
	}
	input, err := encodeReadable(in, limit)
	if err != nil {
		return engine.StartRequest{}, fmt.Errorf("start workflow %q: the input: %w", w.name, err)
	}
	return engine.StartRequest{
		Name: o.id, Workflow: w.name, Queue: w.queue, Input: input, Timeout: o.timeout, Delay: o.delay, Detached: o.detached, Tags: o.tags,
	}, nil
}

// Start makes a run durable and answers its handle. If e executes the workflow and has
// a free slot, the run begins here at once; otherwise any worker takes it. Starting an
// ID again answers the existing run, or ErrIDConflict if the workflow or the input is
// another. Other errors: ErrInvalidName, ErrNotEncodable, ErrPayloadTooLarge, and a
// *WriteError with ErrPermission, with ErrUnavailable, ErrRejected or ErrLocked after
// Config.Patience, or with the end of ctx. If its MayHaveCommitted is true, start the same ID again to know.
func (w *Workflow[I, O]) Start(ctx context.Context, e *Engine, in I, opts ...StartOption) (*Run[O], error) {
	if err := e.writes(ctx, "a start", "Ctx.Start, Ctx.StartChild or Ctx.Child"); err != nil {
		return nil, fmt.Errorf("start workflow %q: %w", w.Name(), err)
	}
	o := optionsOf(opts)
	request, err := w.requestOf(e.cfg.MaxPayload, in, o)
	if err != nil {
		return nil, err
	}
	if o.insert != nil {
		return startIn[O](ctx, e, request, o.insert)
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

// Handle answers the handle of a run of this workflow that exists already, by the
// caller's ID or its UUID. ErrNotFound if there is none, ErrIDConflict if it is of
// another workflow.
func (w *Workflow[I, O]) Handle(ctx context.Context, e *Engine, id string) (*Run[O], error) {
	if err := w.usable(); err != nil {
		return nil, err
	}
	if err := e.usable(ctx); err != nil {
		return nil, fmt.Errorf("handle of run %q: %w", id, err)
	}
	row, err := e.inner.Find(ctx, id)
	if err != nil {
		return nil, err
	}
	if row.Workflow != w.name {
		return nil, fmt.Errorf("%w: run %q is of workflow %q, not %q", ErrIDConflict, id, row.Workflow, w.name)
	}
	return newRun[O](e, row), nil
}

// Run is a handle of one run. It is safe for concurrent use.
type Run[O any] struct {
	e              *Engine
	id             uuid.UUID
	name, workflow string
}

func newRun[O any](e *Engine, row *store.Run) *Run[O] {
	return &Run[O]{e: e, id: row.ID, name: row.Address(), workflow: row.Workflow}
}

// ID is what the run is addressed by: the caller's ID of a root run; the UUID of a child, and of a
// root that was started without an ID.
func (r *Run[O]) ID() string { return r.name }

// RunID is the run's UUID in text form.
func (r *Run[O]) RunID() string { return r.id.String() }

// Result waits until the run has ended, wherever it is executed, and returns its output.
// A run that did not complete is a [*RunError]; an output that no longer decodes is
// [ErrDiverged]. If ctx ends first, the error is its cause and tells the run's state, and the
// run goes on. While the database is away Result waits. It returns [ErrPermission] if the database
// refuses the privilege to read the run, and [ErrRejected] or [ErrSchema] if the database has rejected
// each look for the result for Config.Patience.
func (r *Run[O]) Result(ctx context.Context) (O, error) {
	if err := r.usable(ctx); err != nil {
		return *new(O), err
	}
	row, err := r.e.inner.Await(ctx, r.id)
	if err != nil {
		var zero O
		state := ""
		if ctx.Err() != nil {
			state = r.e.inner.StateFor(ctx, r.id)
		}
		return zero, fmt.Errorf("wait for run %q of workflow %q%s: %w", r.name, r.workflow, state, err)
	}
	return resultOf[O](row)
}

// TryResult is Result without the wait: ended is false, and err is nil, if the run has not ended yet. It reads
// the database once. ErrNotFound is returned if the run was removed.
func (r *Run[O]) TryResult(ctx context.Context) (out O, ended bool, err error) {
	if err := r.usable(ctx); err != nil {
		return out, false, err
	}
	row, err := r.e.inner.Get(ctx, r.id.String())
	switch {
	case err != nil:
		return out, false, fmt.Errorf("look for the result of run %q of workflow %q: %w", r.name, r.workflow, err)
	case !row.Status.Terminal():
		return out, false, nil
	}
	out, err = resultOf[O](row)
	return out, true, err
}

// usable returns ErrInvalidConfig for a handle that no call has returned, and for a nil context.
func (r *Run[O]) usable(ctx context.Context) error {
	if r == nil {
		return fmt.Errorf("%w: the *Run is nil: it comes with an error from Start, StartMany or Handle", ErrInvalidConfig)
	}
	return r.e.usable(ctx)
}

// resultOf is what a run that has ended came to.
func resultOf[O any](row *store.Run) (O, error) {
	var zero O
	if row.Status != store.Completed {
		return zero, runError(row)
	}
	out, err := decode[O](row.Output)
	if err != nil {
		return zero, fmt.Errorf("%w: the output of run %q of workflow %q: %w", ErrDiverged, row.Address(), row.Workflow, err)
	}
	return out, nil
}
