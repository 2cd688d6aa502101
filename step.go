package durable

import (
	"context"
	"fmt"
	"math"
	"reflect"
	"time"

	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Step returns the recorded outcome of the step with the given name. If no outcome is recorded, Step executes fn, records what
// fn returns, and returns once the record is committed. Once the record of a step is committed, the step's function is never
// executed again. Before the record is committed, the function can be executed more than once, if the process dies or the
// option [Retry] allows further attempts.
//
// Step returns the value that decodes from the record, even when fn was executed just now. Step returns a failure of fn as a
// [*StepError], which is created from the record. Step also returns [ErrSuspended], [ErrCancelled] and, if the run's time is
// over, [ErrTimeout]. A workflow function should return ErrSuspended, ErrCancelled and ErrTimeout. The other errors of Step are
// [ErrDuplicateStep], [ErrNestedStep], [ErrInvalidName], [ErrInvalidConfig] and [ErrDiverged].
func (c *Ctx) Step[T any](name string, fn func(context.Context) (T, error), opts ...StepOption) (T, error) {
	call := newDurableCall(c, name, store.KindStep, callSite(0), fn, opts)
	if call.transact != nil { // called by the Tx of a store
		call.spec.CallSite = callSite(1)
		call.makeTransactional(call.transact)
	}
	return call.executeCall()
}

// Do works as [Ctx.Step] for functions that return only an error.
func (c *Ctx) Do(name string, fn func(context.Context) error, opts ...StepOption) error {
	_, err := newDurableCall(c, name, store.KindStep, callSite(0), withEmptyResult(fn), opts).executeCall()
	return err
}

// durableCall is the state of one durable call while it is made. It adds the type T of the result to an engine.Spec.
type durableCall[T any] struct {
	c    *Ctx
	spec engine.CallSpec
	fn   func(context.Context) (T, error) // what an attempt executes
	err  error                            // the error of an invalid argument or option: executeCall returns it
	// transact is set by the option of a transactional step; else nil.
	transact bridge.Transact
}

// newDurableCall returns a call of fn. where is the position of the user's call, which the exported function gets from site.
func newDurableCall[T any](c *Ctx, name string, kind store.StepKind, where uintptr, fn func(context.Context) (T, error), opts []StepOption) *durableCall[T] {
	k := &durableCall[T]{c: c, spec: engine.CallSpec{Name: name, Kind: kind, CallSite: where}, fn: fn}
	k.spec.ExecuteAttempt = k.executeAttempt
	if len(opts) > 0 || c.stepDefaults != nil {
		k.err = k.applyOptions(opts)
	}
	if fn == nil && k.err == nil {
		k.err = noFunctionError(kind.String(), name)
	}
	return k
}

// noFunctionError returns the error of a call whose function is nil. what is the kind of the call.
func noFunctionError(what, name string) error {
	return fmt.Errorf("%w: %s %q has no function", ErrInvalidConfig, what, name)
}

// withEmptyResult returns fn as a function with an empty result, or nil if fn is nil.
func withEmptyResult(fn func(context.Context) error) func(context.Context) (struct{}, error) {
	if fn == nil {
		return nil
	}
	return func(ctx context.Context) (struct{}, error) { return struct{}{}, fn(ctx) }
}

// executeAttempt executes one attempt of the call.
func (k *durableCall[T]) executeAttempt(ctx context.Context) (engine.AttemptOutput, *record.Failure) {
	v, err := k.fn(ctx)
	return k.encodeResult(v, err)
}

func (k *durableCall[T]) applyOptions(opts []StepOption) error {
	var o stepOptions
	o.setFirstError(applyOptions(opts, &o))
	o.setFirstError(o.check())
	if o.err != nil {
		return fmt.Errorf("step %q: %w", k.spec.Name, o.err)
	}
	if o.given&optionUndoes != 0 && k.spec.Kind != store.KindCompensation {
		return fmt.Errorf("%w: Undoes of step %q: it is for Compensate only", ErrInvalidConfig, k.spec.Name)
	}
	if k.c.stepDefaults != nil {
		o.addDefaults(k.c.stepDefaults)
	}
	k.spec.CompensatedSteps = o.undoes
	if o.hasRetries() {
		k.spec.RetryDelay = o.retry.waitAfter
		if o.retry.Attempts != Unlimited {
			k.spec.MaxAttempts = int32(min(o.retry.Attempts, math.MaxInt32))
		}
	}
	if o.transact != nil {
		k.transact, k.spec.Kind = o.transact, store.KindTx
	}
	k.spec.AttemptTimeout, k.spec.TotalTimeout, k.spec.AtMostOnce = o.attemptTimeout, o.totalTimeout, o.atMostOnce
	k.spec.Permit = o.permit
	if o.verify == nil {
		return nil
	}
	verify, err := verifyFunc[T](k.spec.Name, o.verify)
	if err != nil {
		return err
	}
	k.spec.VerifyInterruptedAttempt = func(ctx context.Context) (engine.AttemptOutput, bool, *record.Failure) {
		v, happened, err := verify(ctx)
		switch {
		case err != nil:
			return engine.AttemptOutput{}, false, toRecordedFailure(err)
		case !happened:
			return engine.AttemptOutput{}, false, nil
		}
		out, f := k.encodeResult(v, nil)
		return out, true, f
	}
	return nil
}

// verifyFunc returns the function that the option Verify has set for a step.
func verifyFunc[T any](step string, given any) (func(context.Context) (T, bool, error), error) {
	verify, ok := given.(func(context.Context) (T, bool, error))
	if !ok || verify == nil {
		return nil, fmt.Errorf("%w: Verify of step %q is a %T, its result must be the step's own %v", ErrInvalidConfig, step, given, reflect.TypeFor[T]())
	}
	return verify, nil
}

// encodeResult encodes what a user's function returned, for the checkpoint.
func (k *durableCall[T]) encodeResult(v T, err error) (engine.AttemptOutput, *record.Failure) {
	if err != nil {
		return engine.AttemptOutput{}, toRecordedFailure(err)
	}
	b, back, err := encodeAndDecode(v, k.c.maxPayload)
	if err != nil {
		return engine.AttemptOutput{}, toPermanentFailure(err) // the function has taken effect: it must not be executed again
	}
	return engine.AttemptOutput{Bytes: b, Value: back}, nil
}

// executeCall makes the call and returns the recorded outcome.
func (k *durableCall[T]) executeCall() (T, error) {
	var zero T
	if k.err != nil {
		return zero, k.err
	}
	res, err := k.c.callScope().Step(&k.spec)
	if err := callResultError(k.c, k.spec.Name, &res, err); err != nil {
		return zero, err
	}
	if back, fresh := res.Value.(*T); fresh {
		return *back, nil
	}
	v, err := decode[T](res.Output)
	if err != nil {
		return zero, undecodableError[T](k.c, k.spec.Name, "output of "+k.spec.Kind.String(), k.c.scope.DisplayName(k.spec.Name), "no longer decodes", res.Output, err,
			"bring back the old type, give the step another name, or replace the value with Override")
	}
	return v, nil
}

// callResultError returns the error of a durable call that returned res and err: err, or the recorded failure.
func callResultError(c *Ctx, name string, res *engine.CallResult, err error) error {
	if err == nil && res.Failure != nil {
		return newStepError(c.scope.DisplayName(name), res.Failure)
	}
	return err
}

// undecodableError returns the error for recorded bytes that do not decode into T. call is the name of the call that recorded the bytes.
// what, name and verdict are parts of the text: for example `output of step`, `"send"` and `no longer decodes`. err is the error of
// decode.
func undecodableError[T any](c *Ctx, call, what, name, verdict string, recorded []byte, err error, fix string) error {
	return c.scope.ReportDivergence(call, fmt.Errorf("%w: the %s %q in run %q of workflow %q (%d bytes) %s into %v: %w: %s",
		ErrDiverged, what, name, c.ID(), c.scope.Workflow(), len(recorded), verdict, reflect.TypeFor[T](), err, fix))
}

// StepOption configures one step.
type StepOption func(*stepOptions)

type stepOptions struct {
	givenOptions
	retry                        *RetryPolicy
	attemptTimeout, totalTimeout time.Duration
	atMostOnce                   bool
	verify                       any
	transact                     bridge.Transact
	permit                       *engine.PermitSpec
	undoes                       []string
}

const (
	optionRetry optionSet = 1 << iota
	optionAttemptTimeout
	optionTotalTimeout
	optionAtMostOnce
	optionVerify
	optionPermit
	optionUndoes
)

// Retry sets the policy by which failed attempts of the step are retried. The default is [NoRetry].
func Retry(p RetryPolicy) StepOption {
	return func(o *stepOptions) {
		o.addOptionOnce(optionRetry, "Retry")
		o.retry = &p
		o.setFirstError(p.check())
	}
}

// AttemptTimeout limits the duration of each attempt. The argument d must be positive. When an attempt has taken d, the context
// of the step's function ends, and the attempt fails with [ErrTimeout], even if the function ignores its context and continues.
// A result that the function returns within 100 ms after the end of its context still counts. Without AttemptTimeout, attempts
// have no bound.
func AttemptTimeout(d time.Duration) StepOption {
	return func(o *stepOptions) {
		o.addOptionOnce(optionAttemptTimeout, "AttemptTimeout")
		o.attemptTimeout = d
		o.checkPositive("AttemptTimeout", d)
	}
}

// TotalTimeout limits the duration of the whole step, across all attempts. The argument d must be positive. The time of
// TotalTimeout begins with the first attempt, or when the first attempt requests its permit of a [Limit]. The time of
// TotalTimeout includes waits between attempts, and does not begin again in another process. When the step has taken d, the
// step fails with [ErrTimeout]; as with [AttemptTimeout], a result within the next 100 ms still counts. If an attempt fails and
// the wait before the next attempt would end after d, the step fails with [ErrTimeout] at once. Without TotalTimeout, the step
// has no bound.
func TotalTimeout(d time.Duration) StepOption {
	return func(o *stepOptions) {
		o.addOptionOnce(optionTotalTimeout, "TotalTimeout")
		o.totalTimeout = d
		o.checkPositive("TotalTimeout", d)
	}
}

// AtMostOnce commits a started marker before the function is called, so that the function is executed at most once, even across
// crashes. If the process dies after the marker was committed, the step fails with [ErrOutcomeUnknown], unless [Verify] is given.
// If the run is paused while the function is executed, the function may finish, and its result is recorded. The function is not
// called after the lease has expired, or after the process has learned of a pause or a cancel.
func AtMostOnce() StepOption {
	return func(o *stepOptions) {
		o.addOptionOnce(optionAtMostOnce, "AtMostOnce")
		o.atMostOnce = true
	}
}

// Verify works as [AtMostOnce], and sets a function that finds out after a crash whether the step took effect. After a crash,
// if fn returns true for happened, the result of fn is recorded as the result of the step. If fn returns false for happened,
// the step's own function is executed. If fn returns an error, the step fails with [ErrOutcomeUnknown].
func Verify[T any](fn func(context.Context) (result T, happened bool, err error)) StepOption {
	return func(o *stepOptions) {
		o.addOptionOnce(optionVerify, "Verify")
		o.atMostOnce, o.verify = true, fn
	}
}

func (o *stepOptions) checkPositive(name string, d time.Duration) {
	if d <= 0 {
		o.setFirstError(fmt.Errorf("%w: %s of %v: it must be positive", ErrInvalidConfig, name, d))
	}
}
