package engine

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// attemptReturnGrace is how long an attempt may take to return after its context has ended. After that the engine
// stops waiting for it, and the attempt counts as failed.
const attemptReturnGrace = 100 * time.Millisecond

// errAttemptTimeout is the cause of an attempt's context when the attempt has timed out.
var errAttemptTimeout = errors.New("durable: the attempt's time is over")

// attemptContext is the context that a step function receives. It follows the lifetime of the run and not
// that of the workflow function, so that a pause lets the step finish.
type attemptContext struct {
	context.Context
	task *stepTask
}

type attemptContextKey struct{}

// Value returns the task of the attempt for attemptContextKey. For other keys it returns the value of the parent
// context.
func (c *attemptContext) Value(key any) any {
	if key == (attemptContextKey{}) {
		return c.task
	}
	return c.Context.Value(key)
}

// ErrOutsideStep is the error of a call that needs the context of a step but was given the workflow's Ctx. The call returns it, or
// panics with an error that wraps it.
var ErrOutsideStep = errors.New("durable: a step's context is needed")

// ScopeContextKey is the key under which the context of a workflow function holds its Scope.
type ScopeContextKey struct{}

// IdempotencyKey returns a key made of the run's UUID and the step's name. If a repair of the run has renewed the step, or the run has
// continued as new, the key also contains the number of a generation. A step has the same IdempotencyKey in every attempt and in every process. Outside a step,
// IdempotencyKey returns an empty string. IdempotencyKey panics if it gets the workflow's own Ctx, because the step function would
// otherwise continue with an empty key.
func IdempotencyKey(ctx context.Context) string {
	if t, ok := ctx.Value(attemptContextKey{}).(*stepTask); ok {
		return t.r.runInKeyOf(t.name) + ":" + naming.Display(t.name)
	}
	if s, ok := ctx.Value(ScopeContextKey{}).(*Scope); ok {
		panic(fmt.Errorf("%w: IdempotencyKey was called with the Ctx of run %q of workflow %q, which belongs to no step: pass the context that the step's function gets",
			ErrOutsideStep, s.RunNameOrUUID(), s.Workflow()))
	}
	return ""
}

// AttemptNumber returns the number of the step's attempt that has this context, counted from 1. Outside a step, AttemptNumber returns zero.
func AttemptNumber(ctx context.Context) int {
	t, ok := ctx.Value(attemptContextKey{}).(*stepTask)
	if !ok {
		return 0
	}
	return int(t.attempt)
}

// RunningAttempt describes an attempt of a step.
type RunningAttempt struct {
	Name, MapName        string // with their scopes, as people see them
	ItemIndex            int    // the index of the item; -1: the step is no item of a Map
	ItemKey              string
	Attempt, MaxAttempts int
}

// AttemptInfo describes the step's attempt that has this context. AttemptInfo reports false if ctx is not the context of an attempt.
func AttemptInfo(ctx context.Context) (RunningAttempt, bool) {
	t, ok := ctx.Value(attemptContextKey{}).(*stepTask)
	if !ok {
		return RunningAttempt{}, false
	}
	i := RunningAttempt{
		Name: naming.Display(t.name), ItemIndex: t.spec.ItemNumber - 1, ItemKey: t.spec.ItemKey, Attempt: int(t.attempt), MaxAttempts: int(t.spec.MaxAttempts),
	}
	if t.spec.RetryDelay == nil {
		i.MaxAttempts = 1
	}
	if i.ItemIndex >= 0 {
		i.MapName = naming.Display(strings.TrimSuffix(t.scope.namePrefix, naming.Separator))
	}
	return i, true
}

// attemptResult is the result of one attempt.
type attemptResult struct {
	out               AttemptOutput
	selfCommittedStep *store.StepWrite // the checkpoint, if the attempt committed it in its own transaction
	failure           *record.Failure
	err               error // ErrSuspended: the attempt was interrupted, so its end says nothing about the step
	hadNoEffect       bool  // VerifyInterruptedAttempt has reported that the attempt of the dead process had no effect
}

// callWithTimeouts calls the user's function within the timeouts of the attempt. If the attempt was interrupted, callWithTimeouts
// returns the reason as an error (see interruptionCause).
func (t *stepTask) callWithTimeouts() (attemptResult, error) {
	parent := t.scope.stepsCtx
	var span trace.Span
	if t.r.isTraced {
		parent, span = t.r.e.telemetry.StepSpan(parent, t.r.row.Workflow, t.nameInMetrics(), naming.Display(t.name), t.attempt)
	}
	got := t.callWithinRemainingTime(parent)
	if got.hadNoEffect {
		t.outcomeUnknown = false
		if got.err = t.checkAttemptMayBegin(); got.err == nil {
			got = t.callWithinRemainingTime(parent) // like any other attempt, with its own timeout
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
		return attemptResult{}, got.err
	}
	// A function that failed because its process or its lease ended, or because the run is cancelled, does not count as failed: the
	// next owner calls it again. If the function succeeded nevertheless, its result is recorded. The error of an at-most-once
	// function without VerifyInterruptedAttempt is also recorded, even if it came from a call of the suspended run: the function may
	// not be called again, and since it returned, its outcome is known.
	met := got.failure != nil && got.failure.Suspended && t.r.isSuspended() && (!t.spec.AtMostOnce || t.spec.VerifyInterruptedAttempt != nil)
	if got.failure != nil && (t.scope.stepsCtx.Err() != nil || met || got.failure.CallIsOver) {
		return attemptResult{failure: got.failure}, t.interruptionCause()
	}
	return got, nil
}

// callWithinRemainingTime calls the step function, or VerifyInterruptedAttempt, within the remaining time.
func (t *stepTask) callWithinRemainingTime(parent context.Context) attemptResult {
	limit, timed := t.remainingTime()
	switch {
	case timed && limit <= 0:
		return attemptResult{failure: t.timeoutFailure(limit)}
	case timed:
		return t.callWithTimeout(parent, limit)
	case t.scope.compensating:
		return t.callInGoroutine(&attemptContext{parent, t})
	default:
		return t.callInline(&attemptContext{parent, t})
	}
}

// interruptionCause returns the reason why an attempt was ended from outside.
func (t *stepTask) interruptionCause() error {
	if err := t.scope.checkOpen(); err != nil {
		if errors.Is(err, ErrReturned) {
			t.r.mu.Lock()
			t.warnLateStep()
			t.r.mu.Unlock()
		}
		return err
	}
	return ErrSuspended // the process is stopping: the run is not suspended yet
}

// remainingTime returns how long this attempt may take, and whether it has a limit at all.
func (t *stepTask) remainingTime() (time.Duration, bool) {
	limit := t.spec.AttemptTimeout
	timed := limit > 0
	if t.spec.TotalTimeout > 0 && !t.outcomeUnknown { // VerifyInterruptedAttempt is called even after the total timeout
		left := t.firstBegan.Add(t.spec.TotalTimeout).Sub(t.r.e.clock.Now())
		if !timed || left < limit {
			limit, timed = left, true
		}
	}
	return limit, timed
}

// callWithTimeout calls the function in a goroutine of its own, so that a function which ignores its context
// cannot block the run. The attempt owns the goroutine until it returns or until callWithTimeout stops waiting;
// after that its result is discarded. The goroutine works on a copy of the task, because later attempts
// may change the task while an abandoned goroutine still runs.
func (t *stepTask) callWithTimeout(parent context.Context, limit time.Duration) attemptResult {
	ctx, cancel := context.WithTimeoutCause(parent, limit, errAttemptTimeout)
	defer cancel()
	results := make(chan attemptResult, 1)
	t.txPhase = nil
	if t.spec.ExecuteTxAttempt != nil {
		t.txPhase = new(txPhase)
	}
	own := *t
	go func() {
		got := attemptResult{failure: own.goexitFailure()}
		defer func() { results <- got }() // also after runtime.Goexit
		got = own.callFunction(&attemptContext{ctx, &own})
	}()
	select {
	case got := <-results:
		return t.replaceByTimeoutFailure(ctx, got, limit)
	case <-ctx.Done():
	}
	if !errors.Is(context.Cause(ctx), errAttemptTimeout) { // the run must end, but the attempt may still finish within its own time
		end, _ := ctx.Deadline()
		rest := time.NewTimer(time.Until(end))
		defer rest.Stop()
		select {
		case got := <-results:
			return t.replaceByTimeoutFailure(ctx, got, limit)
		case <-rest.C:
		case <-t.r.ownedCtx.Done():
		}
	}
	late := time.NewTimer(attemptReturnGrace)
	defer late.Stop()
	select {
	case got := <-results:
		return t.replaceByTimeoutFailure(ctx, got, limit)
	case <-late.C:
	}
	if !t.txPhase.tryAbandon() { // the function has returned, and its transaction may be committed; the commit has its own time limit
		select {
		case got := <-results:
			return t.replaceByTimeoutFailure(ctx, got, limit)
		case <-t.r.ownedCtx.Done():
			return attemptResult{err: t.interruptionCause()}
		}
	}
	if t.scope.stepsCtx.Err() != nil {
		return attemptResult{err: t.interruptionCause()}
	}
	f := t.timeoutFailure(limit)
	f.Message += " (the function ignored the end of its context and was left behind)"
	return attemptResult{failure: f}
}

// replaceByTimeoutFailure replaces a failure that the timeout caused by a timeout failure.
func (t *stepTask) replaceByTimeoutFailure(ctx context.Context, got attemptResult, limit time.Duration) attemptResult {
	if got.failure != nil && errors.Is(context.Cause(ctx), errAttemptTimeout) {
		f := t.timeoutFailure(limit)
		f.Message += ": " + got.failure.Message
		got.failure = f
	}
	return got
}

func (t *stepTask) timeoutFailure(limit time.Duration) *record.Failure {
	f := &record.Failure{Codes: []string{record.CodeTimeout}, Type: "timeout"}
	if t.spec.TotalTimeout > 0 && limit != t.spec.AttemptTimeout {
		f.Message = fmt.Sprintf("the step's total timeout of %v is over", t.spec.TotalTimeout)
		f.Permanent = true
	} else {
		f.Message = fmt.Sprintf("the attempt's timeout of %v is over", limit)
	}
	return f
}

// callInline calls the function in the goroutine of the workflow function, or in a goroutine that the
// workflow function started. If the function calls runtime.Goexit, that goroutine ends without a result,
// so the run itself fails.
func (t *stepTask) callInline(ctx *attemptContext) attemptResult {
	returned := false
	defer func() {
		if !returned {
			t.r.mu.Lock()
			t.r.stepGoexitFailure = t.goexitFailure()
			t.r.mu.Unlock()
		}
	}()
	got := t.callFunction(ctx)
	returned = true
	return got
}

// callInGoroutine calls a compensation in a goroutine of its own, because runtime.Goexit in it must not end the
// goroutine that ends the run.
func (t *stepTask) callInGoroutine(ctx *attemptContext) attemptResult {
	results := make(chan attemptResult, 1)
	go func() {
		got := attemptResult{failure: t.goexitFailure()}
		defer func() { results <- got }()
		got = t.callFunction(ctx)
	}()
	return <-results
}

// callFunction calls the user's function once, and turns a panic into a failed attempt.
//
//go:noinline
func (t *stepTask) callFunction(ctx *attemptContext) (got attemptResult) {
	defer func() {
		if v := recover(); v != nil {
			got = attemptResult{failure: panicFailure(v, debug.Stack())}
			if t.outcomeUnknown {
				got.failure.Codes = append(got.failure.Codes, record.CodeOutcomeUnknown)
			}
			t.r.logger().Warn("a step panicked", telemetry.KeyStep, naming.Display(t.name), telemetry.KeyAttempt, t.attempt,
				telemetry.KeyError, got.failure.Message, telemetry.KeyStack, got.failure.Stack)
		}
	}()
	return t.executeThroughTestHooksIfSet(ctx)
}

// callAttemptFunction calls the function of the attempt: VerifyInterruptedAttempt if the outcome of an earlier attempt is unknown, or
// else the transaction of a Tx step or the step function.
func (t *stepTask) callAttemptFunction(ctx context.Context) (got attemptResult) {
	switch {
	case t.outcomeUnknown:
		return t.callVerify(ctx)
	case t.spec.ExecuteTxAttempt != nil:
		return t.callTransactWithRetry(ctx)
	}
	got.out, got.failure = t.spec.ExecuteAttempt(ctx)
	return got
}

// goexitFailure returns the failure of a function that called runtime.Goexit.
func (t *stepTask) goexitFailure() *record.Failure {
	return &record.Failure{
		Message: fmt.Sprintf("step %q called runtime.Goexit (t.FailNow in a test does that): return an error instead", naming.Display(t.name)),
		Codes:   []string{record.CodeGoexit}, Step: naming.Display(t.name), Permanent: true,
	}
}

// workflowGoexitFailure returns the failure of a run whose workflow function called runtime.Goexit.
func workflowGoexitFailure() *record.Failure {
	return &record.Failure{Message: "the workflow function called runtime.Goexit", Codes: []string{record.CodeGoexit}}
}

// callVerify calls VerifyInterruptedAttempt to find out what an attempt did before its process died. If VerifyInterruptedAttempt is
// nil, the outcome is unknown.
func (t *stepTask) callVerify(ctx context.Context) attemptResult {
	unknown := &record.Failure{
		Message: fmt.Sprintf("attempt %d began, its process died, and what it did is not known", t.attempt-1),
		Codes:   []string{record.CodeOutcomeUnknown}, Permanent: true,
	}
	if t.spec.VerifyInterruptedAttempt == nil {
		return attemptResult{failure: unknown}
	}
	out, happened, failure := t.spec.VerifyInterruptedAttempt(ctx)
	switch {
	case failure != nil:
		unknown.Message += "; to verify it failed too: " + failure.Message
		return attemptResult{failure: unknown}
	case happened:
		return attemptResult{out: out}
	}
	return attemptResult{hadNoEffect: true}
}
