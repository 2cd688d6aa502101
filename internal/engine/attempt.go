package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// overtime is how long an attempt whose context has ended may take to say so itself;
// after that it is left behind and counts as failed.
const overtime = 100 * time.Millisecond

// errAttemptTimeout is the cause of an attempt's context when its time is over.
var errAttemptTimeout = errors.New("durable: the attempt's time is over")

// attemptContext is what a step function gets: the run's lifetime, not the workflow
// function's, so that a pause lets it finish.
type attemptContext struct {
	context.Context
	t *task
}

type attemptKey struct{}

// Value answers the attempt itself for its own key.
func (c *attemptContext) Value(key any) any {
	if key == (attemptKey{}) {
		return c.t
	}
	return c.Context.Value(key)
}

// ErrOutsideStep is the panic's value where a step's own context is needed, and the workflow's Ctx was given.
var ErrOutsideStep = errors.New("durable: a step's context is needed")

// WorkflowKey is the key under which the context of a workflow function holds its Scope.
type WorkflowKey struct{}

// IdempotencyKey is the same in every attempt and every process: the run's UUID and
// the step's name. It is empty outside a step. With a workflow's own context it panics: the step's function
// would go on with an empty key.
func IdempotencyKey(ctx context.Context) string {
	if t, ok := ctx.Value(attemptKey{}).(*task); ok {
		return t.r.row.ID.String() + ":" + Shown(t.name)
	}
	if s, ok := ctx.Value(WorkflowKey{}).(*Scope); ok {
		panic(fmt.Errorf("%w: IdempotencyKey was called with the Ctx of run %q of workflow %q, which belongs to no step: pass the context that the step's function gets",
			ErrOutsideStep, s.ID(), s.Workflow()))
	}
	return ""
}

// Attempt is the number of the attempt, from 1; zero outside a step.
func Attempt(ctx context.Context) int {
	t, ok := ctx.Value(attemptKey{}).(*task)
	if !ok {
		return 0
	}
	return int(t.attempt)
}

// tried is what one attempt came to.
type tried struct {
	out     Output
	sealed  *store.StepWrite // the checkpoint, if the attempt committed it itself
	failure *Failure
	err     error // ErrSuspended: it was interrupted, and its end says nothing about the step
	unmade  bool  // Verify says that what its process took with it did not happen
}

// try calls the user's function within its time. An error is ErrSuspended.
func (t *task) try() (tried, error) {
	parent := t.s.work
	var span trace.Span
	if t.r.traced {
		parent, span = t.r.e.tel.StepSpan(parent, t.r.row.Workflow, t.label(), Shown(t.name), t.attempt)
	}
	got := t.within(parent)
	if got.unmade {
		t.unknown = false
		if got.err = t.mayBegin(); got.err == nil {
			got = t.within(parent) // as any attempt, with its own bounds
		}
	}
	if span != nil {
		outcome := telemetry.OutcomeCompleted
		if got.failure != nil {
			outcome = telemetry.OutcomeFailed
		}
		telemetry.EndSpan(span, outcome, got.failure.ErrorType())
	}
	if got.err != nil {
		return tried{}, got.err
	}
	// A function that failed because its process or its lease ended, or because the run
	// is cancelled, did not fail: the next owner tries again. One that succeeded all the
	// same is recorded. So is the error of one that may not be called again and was let finish: that
	// it met the suspension leaves nothing unknown.
	met := got.failure != nil && got.failure.Suspended && t.r.gone() && (!t.spec.AtMostOnce || t.spec.Verify != nil)
	if got.failure != nil && (t.s.work.Err() != nil || met || got.failure.Left) {
		return tried{failure: got.failure}, t.interruption()
	}
	return got, nil
}

// within calls the function, or what verifies it, for as long as it may take.
func (t *task) within(parent context.Context) tried {
	limit, timed := t.limit()
	switch {
	case timed && limit <= 0:
		return tried{failure: t.timedOut(limit)}
	case timed:
		return t.callWithin(parent, limit)
	case t.s.undo:
		return t.callApart(&attemptContext{parent, t})
	default:
		return t.callHere(&attemptContext{parent, t})
	}
}

// interruption is why an attempt was ended from outside.
func (t *task) interruption() error {
	if err := t.s.left(); err != nil {
		if errors.Is(err, ErrReturned) {
			t.r.mu.Lock()
			t.strayed()
			t.r.mu.Unlock()
		}
		return err
	}
	return ErrSuspended // by the end of the process: nobody has suspended the run yet
}

// limit is the time that this attempt may take.
func (t *task) limit() (time.Duration, bool) {
	limit := t.spec.AttemptTimeout
	timed := limit > 0
	if t.spec.TotalTimeout > 0 && !t.unknown { // what happened is asked however late it is
		left := t.first.Add(t.spec.TotalTimeout).Sub(t.r.e.clock.now())
		if !timed || left < limit {
			limit, timed = left, true
		}
	}
	return limit, timed
}

// callWithin calls the function in a goroutine of its own, so that one which ignores
// its context cannot hold the run. It is owned by the attempt until it returns or is
// left behind; then its result goes nowhere. It works on a copy of the task, since
// further attempts may change the task beside one that was left behind.
func (t *task) callWithin(parent context.Context, limit time.Duration) tried {
	ctx, cancel := context.WithTimeoutCause(parent, limit, errAttemptTimeout)
	defer cancel()
	results := make(chan tried, 1)
	t.phase = nil
	if t.spec.Transact != nil {
		t.phase = new(phase)
	}
	own := *t
	go func() {
		got := tried{failure: own.goexit()}
		defer func() { results <- got }() // also after a Goexit
		got = own.call(&attemptContext{ctx, &own})
	}()
	select {
	case got := <-results:
		return t.judge(ctx, got, limit)
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), errAttemptTimeout) { // the run is to end: within its own time the attempt is let finish
		end, _ := ctx.Deadline()
		rest := time.NewTimer(time.Until(end))
		defer rest.Stop()
		select {
		case got := <-results:
			return t.judge(ctx, got, limit)
		case <-rest.C:
		case <-t.r.hard.Done():
		}
	}
	late := time.NewTimer(overtime)
	defer late.Stop()
	select {
	case got := <-results:
		return t.judge(ctx, got, limit)
	case <-late.C:
	}
	if !t.phase.leave() { // the function has returned, and its transaction may be committed: that bounds itself
		select {
		case got := <-results:
			return t.judge(ctx, got, limit)
		case <-t.r.hard.Done():
			return tried{err: t.interruption()}
		}
	}
	if t.s.work.Err() != nil {
		return tried{err: t.interruption()}
	}
	f := t.timedOut(limit)
	f.Message += " (the function ignored the end of its context and was left behind)"
	return tried{failure: f}
}

// judge marks a failure that the timeout caused as such.
func (t *task) judge(ctx context.Context, got tried, limit time.Duration) tried {
	if got.failure != nil && errors.Is(context.Cause(ctx), errAttemptTimeout) {
		f := t.timedOut(limit)
		f.Message += ": " + got.failure.Message
		got.failure = f
	}
	return got
}

func (t *task) timedOut(limit time.Duration) *Failure {
	f := &Failure{Codes: []string{CodeTimeout}, Type: "timeout"}
	if t.spec.TotalTimeout > 0 && limit != t.spec.AttemptTimeout {
		f.Message = fmt.Sprintf("the step's total timeout of %v is over", t.spec.TotalTimeout)
		f.Permanent = true
	} else {
		f.Message = fmt.Sprintf("the attempt's timeout of %v is over", limit)
	}
	return f
}

// callHere calls the function in the workflow's own goroutine, or one of its making.
// runtime.Goexit in it ends that goroutine without an answer, so the run itself fails.
func (t *task) callHere(ctx *attemptContext) tried {
	returned := false
	defer func() {
		if !returned {
			t.r.mu.Lock()
			t.r.exited = t.goexit()
			t.r.mu.Unlock()
		}
	}()
	got := t.call(ctx)
	returned = true
	return got
}

// callApart calls a compensation in a goroutine of its own: runtime.Goexit in it must not end
// the one that brings the run to its end.
func (t *task) callApart(ctx *attemptContext) tried {
	results := make(chan tried, 1)
	go func() {
		got := tried{failure: t.goexit()}
		defer func() { results <- got }()
		got = t.call(ctx)
	}()
	return <-results
}

// call runs the user's function once, and turns a panic into a failed attempt.
//
//go:noinline
func (t *task) call(ctx *attemptContext) (got tried) {
	defer func() {
		if v := recover(); v != nil {
			got = tried{failure: panicFailure(v, debug.Stack())}
			if t.unknown {
				got.failure.Codes = append(got.failure.Codes, CodeOutcomeUnknown)
			}
			t.r.logger().Warn("a step panicked", telemetry.KeyStep, Shown(t.name), telemetry.KeyAttempt, t.attempt,
				telemetry.KeyError, got.failure.Message, telemetry.KeyStack, got.failure.Stack)
		}
	}()
	return t.perform(ctx)
}

// act does what the attempt is made of.
func (t *task) act(ctx context.Context) (got tried) {
	switch {
	case t.unknown:
		return t.verify(ctx)
	case t.spec.Transact != nil:
		return t.transact(ctx)
	}
	got.out, got.failure = t.spec.Attempt(ctx)
	return got
}

// goexit is the failure of a function that ended its goroutine.
func (t *task) goexit() *Failure {
	return &Failure{
		Message: fmt.Sprintf("step %q left by runtime.Goexit (t.FailNow in a test does that): return an error instead", Shown(t.name)),
		Codes:   []string{CodeGoexit}, Step: Shown(t.name), Permanent: true,
	}
}

// verify asks what became of an attempt whose process died.
func (t *task) verify(ctx context.Context) tried {
	unknown := &Failure{
		Message: fmt.Sprintf("attempt %d began, its process died, and what it did is not known", t.attempt-1),
		Codes:   []string{CodeOutcomeUnknown}, Permanent: true,
	}
	if t.spec.Verify == nil {
		return tried{failure: unknown}
	}
	out, happened, failure := t.spec.Verify(ctx)
	switch {
	case failure != nil:
		unknown.Message += "; to verify it failed too: " + failure.Message
		return tried{failure: unknown}
	case happened:
		return tried{out: out}
	}
	return tried{unmade: true}
}
