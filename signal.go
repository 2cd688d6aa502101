package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// Signal sends a named message to the run with the given ID, which is the caller's ID or the UUID. The signal is kept until the
// run receives it; the run need not wait for the signal when Signal is called. Each signal is received once, and signals of one
// name are received in the order in which they arrived. The payload of a signal is encoded as JSON, like the result of a step.
//
// Signal returns [ErrNotFound] if there is no such run, a [*StateError] if the run has ended, and [ErrIDConflict] if a signal
// to the run with the same [SignalKey] has another name or payload. If the option [Reason] or [Actor] is given, an [Event]
// records who has sent the signal, but not the signal's payload. The SignalTx functions do not take Reason and Actor. Signal
// returns [ErrInvalidName], [ErrNotEncodable] or [ErrPayloadTooLarge] for invalid arguments, and a [*WriteError] if the
// database does not acknowledge the write.
func (e *Engine) Signal(ctx context.Context, id, name string, payload any, opts ...SignalOption) error {
	if err := e.checkUsableOutsideWorkflow(ctx, "a signal", "Ctx.Signal or Child.Signal"); err != nil {
		return fmt.Errorf("signal %q: %w", name, err)
	}
	signal, insert, err := newSignal(e.cfg.MaxPayload, name, payload, opts)
	if err != nil {
		return err
	}
	if insert != nil {
		if signal.ActorAndReason.HasActorOrReason() {
			return fmt.Errorf("signal %q: %w: Reason and Actor are not recorded for a signal in your own transaction: record them there, and leave the options out", name, ErrInvalidConfig)
		}
		return e.signalInTx(ctx, id, signal, insert)
	}
	return convertStateError(e.inner.Signal(ctx, id, signal))
}

// Complete completes the [Callback] with the given token. Any process can call Complete. Complete keeps the first value of a
// callback: another call with the same value succeeds and changes nothing, and a call with another value returns
// [ErrIDConflict]. Complete returns [ErrInvalidToken] if the token was forged or altered, or is of another database, and
// [ErrInvalidName] if the name of the wait is invalid. The options of Complete are [Reason] and [Actor]: with a Reason or an
// Actor, an [Event] records who has completed the token. Complete also returns the errors of [Engine.Signal].
func (e *Engine) Complete(ctx context.Context, token string, value any, opts ...ControlOption) error {
	if err := e.checkUsableOutsideWorkflow(ctx, "a completion of a token", ""); err != nil {
		return fmt.Errorf("complete a token: %w", err)
	}
	o, err := applyActorReasonOptions("a completion of a token", opts)
	if err != nil {
		return fmt.Errorf("complete a token: %w", err)
	}
	run, signal, err := e.inner.DecodeCallbackToken(ctx, token)
	if err != nil {
		return fmt.Errorf("complete a token: %w", err)
	}
	b, err := encode(&value, e.cfg.MaxPayload)
	if err != nil {
		return fmt.Errorf("complete a token: %w", err)
	}
	err = e.inner.Signal(ctx, run, &store.SignalWrite{Name: signal, Key: signal, Payload: b, ActorAndReason: o.actorAndReason()})
	if errors.Is(err, ErrIDConflict) {
		return &engine.ConflictError{Text: fmt.Sprintf("durable: the wait %q of this token, in run %s, was completed with another value before: the first one holds", naming.DisplaySignal(signal), run)}
	}
	return convertStateError(err)
}

// SignalOption configures one signal: [SignalKey], [Reason] or [Actor].
type SignalOption interface{ applyToSignal(o *signalOptions) }

type signalOptions struct {
	key     string
	insert  bridge.InsertSignal // set by the SignalTx of a store; else nil
	control []ControlOption
	given   optionSet
	err     error
}

type signalOptionFunc func(*signalOptions)

func (f signalOptionFunc) applyToSignal(o *signalOptions) { f(o) }

func (f ControlOption) applyToSignal(o *signalOptions) { o.control = append(o.control, f) }

// SignalKey makes a signal idempotent: of all signals that are sent to one run with the same key, only the first signal is
// kept. The key of a signal is a text of 1 to 512 bytes without control characters.
func SignalKey(key string) SignalOption {
	return signalOptionFunc(func(o *signalOptions) {
		o.key, o.err = key, errors.Join(o.err, o.given.addOnce(1, "SignalKey"), naming.Check("signal key", key))
	})
}

// newSignal checks and encodes one signal. limit is the largest size of the encoded payload, in bytes.
func newSignal(limit int, name string, payload any, opts []SignalOption) (*store.SignalWrite, bridge.InsertSignal, error) {
	var o signalOptions
	for i, option := range opts {
		if option == nil {
			return nil, nil, fmt.Errorf("signal %q: %w: the SignalOption at place %d of %d options is nil: leave it out", name, ErrInvalidConfig, i+1, len(opts))
		}
		option.applyToSignal(&o)
	}
	if err := naming.Check("signal", name); err != nil {
		return nil, nil, err
	}
	if o.err != nil {
		return nil, nil, fmt.Errorf("signal %q: %w", name, o.err)
	}
	by, err := applyActorReasonOptions("a signal", o.control)
	if err != nil {
		return nil, nil, fmt.Errorf("signal %q: %w", name, err)
	}
	b, err := encode(&payload, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("signal %q: %w", name, err)
	}
	return &store.SignalWrite{Name: name, Key: o.key, Payload: b, ActorAndReason: by.actorAndReason()}, o.insert, nil
}

// Receive returns the payload of the oldest signal with the given name that the run has not received yet. If no such signal has
// arrived, Receive waits for a signal. A run that only waits is unloaded from memory. Receive takes the signal and records the
// payload in one transaction. Each Receive in one scope needs a name of its own; with [OnSignal], the name of the Receive can
// differ from the name of the signal.
//
// Without the option [Within], Receive waits without a bound. If the time of Within is over before a signal arrives, the
// options [Else], [ElseCancel], [ElseExpire], [ElseStart] and [ElseSignal] determine what happens. Without an Else option,
// Receive returns a [*StepError] that wraps [ErrTimeout] when its time is over. Receive also returns the errors of [Ctx.Step].
func (c *Ctx) Receive[T any](name string, opts ...ReceiveOption) (T, error) {
	return receiveSignal[T](c, name, "", callSite(0), opts)
}

// Callback is a value that the run gets from an outside system. Pass the [Callback.Token] to the system, which completes the
// callback with [Engine.Complete], and wait for the value with [Callback.Wait].
type Callback[T any] struct {
	c        *Ctx
	name     string
	callSite uintptr
}

// Callback returns the callback with the given name. The library records nothing about a callback before [Callback.Wait] is
// called.
func (c *Ctx) Callback[T any](name string) *Callback[T] {
	return &Callback[T]{c: c, name: name, callSite: callSite(0)}
}

// Token returns the token of the callback, which any process can pass to [Engine.Complete], once or several times. Every
// execution of the run returns the same token, even after a repair. After [Ctx.ContinueAsNew], a callback of the same name has
// another token. Anybody who has the token can complete the callback. The token is signed with a key that is stored in the
// database, so that nobody can forge a token without the key. In the replays of [Engine.Preflight], [Engine.ReplayExport] and
// durabletest.Replay, Token returns a token that completes nothing, because these replays write nothing.
func (a *Callback[T]) Token() string { return a.c.scope.CallbackToken(a.c.scope.CallbackName(a.name)) }

// Wait returns the value with which the token was completed, before or during the wait. In all other respects, Wait works as
// [Ctx.Receive]. Callback.Wait takes the options of Receive, except [OnSignal]. Wait belongs to the branch that created the
// callback, even if another branch calls it; see [CancelLosers].
func (a *Callback[T]) Wait(opts ...ReceiveOption) (T, error) {
	name := a.c.scope.CallbackName(a.name)
	return receiveSignal[T](a.c, name, a.c.scope.CallbackSignalName(name), a.callSite, opts)
}

func receiveSignal[T any](c *Ctx, name, signal string, where uintptr, opts []ReceiveOption) (T, error) {
	var zero T
	o := receiveOptions{signal: name}
	o.setFirstError(applyOptions(opts, &o))
	if signal != "" {
		if o.given&optionOnSignal != 0 {
			o.setFirstError(fmt.Errorf("%w: the option OnSignal is for Receive: a Callback is completed by its token alone, leave the option out", ErrInvalidConfig))
		}
		o.signal = signal
	}
	spec := engine.ReceiveSpec{
		Name: name, Signal: o.signal, CallSite: where, TimeLimit: o.timeLimit, HasTimeLimit: o.hasTimeLimit, OnTimeout: o.onTimeout,
	}
	spec.Escalate, spec.TimeoutValue = checkTimeoutOptions[T](&o, c.payloadLimit(name))
	if o.err != nil {
		return zero, fmt.Errorf("receive %q: %w", name, o.err)
	}
	res, err := c.callScope().Receive(&spec)
	if err := callResultError(c, name, &res, err); err != nil {
		return zero, err
	}
	v, err := decode[T](res.Output)
	if err != nil {
		return zero, undecodableError[T](c, name, "signal", naming.DisplaySignal(o.signal), "does not decode", res.Output, err,
			fmt.Sprintf("replace the received value with Override of the call %q, or bring back the old type", c.scope.DisplayName(name)))
	}
	return v, nil
}

// checkTimeoutOptions checks the options that say what happens when the time of a receive of a T is over, and returns what they have set.
// limit is the largest size of an encoded payload, in bytes.
func checkTimeoutOptions[T any](o *receiveOptions, limit int) (escalate engine.EscalationFunc, value []byte) {
	if o.newEscalation != nil {
		var err error
		escalate, err = o.newEscalation(limit)
		o.setFirstError(err)
	}
	if o.onTimeout != engine.TimeoutFails && !o.hasTimeLimit {
		o.setFirstError(fmt.Errorf("%w: it says what to do when the time is over, and has no Within", ErrInvalidConfig))
	}
	if o.onTimeout == engine.TimeoutReturnsValue {
		v, ok := o.timeoutValue.(T)
		if !ok && (o.timeoutValue != nil || reflect.TypeFor[T]().Kind() != reflect.Interface) {
			o.setFirstError(fmt.Errorf("%w: Else is a %T, it must be what is received: %v", ErrInvalidConfig, o.timeoutValue, reflect.TypeFor[T]()))
		}
		var err error
		value, err = encodeAndCheckDecodes(v, limit)
		o.setFirstError(err)
	}
	return escalate, value
}

// ReceiveOption configures one [Ctx.Receive] or [Callback.Wait].
type ReceiveOption func(*receiveOptions)

type receiveOptions struct {
	givenOptions
	signal        string
	timeLimit     time.Duration
	hasTimeLimit  bool
	onTimeout     engine.TimeoutAction
	timeoutValue  any
	newEscalation func(limit int) (engine.EscalationFunc, error)
}

const (
	optionOnSignal optionSet = 1 << iota
	optionWithin
	optionWhenTimedOut // any of the options that determine what happens when the time is over
)

// OnSignal sets the name of the signal to receive. The default name of the signal is the name of the Receive.
func OnSignal(name string) ReceiveOption {
	return func(o *receiveOptions) {
		o.addOptionOnce(optionOnSignal, "OnSignal")
		o.signal = name
		o.setFirstError(naming.Check("signal", name))
	}
}

// Within limits the duration of the wait for a signal. The time of Within begins when the receive is first executed, by the
// database's clock. A signal is in time if it arrives before the time of Within is over, even if the run is executed only
// later. A signal that arrives after the time of Within is over is kept for another Receive. A signal arrives when the database
// writes it. The time of Within also passes during a pause of the run, unless the run is resumed with [FreezeTimers]. With a d
// of zero or less, the receive returns a signal that has already arrived, or is over at once.
func Within(d time.Duration) ReceiveOption {
	return func(o *receiveOptions) {
		o.addOptionOnce(optionWithin, "Within")
		o.timeLimit, o.hasTimeLimit = d, true
	}
}

// Else sets the value that the receive returns when the time of [Within] is over. Use a value that no signal has, so that the
// code can tell the value of Else from the payload of a signal.
func Else[T any](value T) ReceiveOption {
	return func(o *receiveOptions) {
		o.addOptionOnce(optionWhenTimedOut, "Else")
		o.onTimeout, o.timeoutValue = engine.TimeoutReturnsValue, value
	}
}

// ElseCancel cancels the run and its descendants when the time of [Within] is over.
func ElseCancel() ReceiveOption {
	return func(o *receiveOptions) {
		o.addOptionOnce(optionWhenTimedOut, "ElseCancel")
		o.onTimeout = engine.TimeoutCancels
	}
}

// ElseExpire ends the run when the time of [Within] is over, as the option [Timeout] does: the compensations of the run are
// executed, and the run ends as [StatusExpired] with [ErrTimeout].
func ElseExpire() ReceiveOption {
	return func(o *receiveOptions) {
		o.addOptionOnce(optionWhenTimedOut, "ElseExpire")
		o.onTimeout = engine.TimeoutExpires
	}
}

// ElseStart starts a run of w, once, when the time of [Within] is over. After ElseStart has started the run, the receive
// continues to wait without a bound. The ID of the started run is the waiting run's UUID, a colon and the name of the wait, or a
// hash of that name if the ID would be too long. If the run makes the wait again, after [Ctx.ContinueAsNew] or because of a
// repair, ElseStart starts another run, whose ID has "#" and the number of the generation after the UUID. The options
// [Singleton], [Debounce] and [Throttle] work as for [Workflow.Start]; if they allow no further run, ElseStart starts none. If
// the option [ID] is passed to ElseStart, the receive returns [ErrInvalidConfig]. If the database rejects the start, the
// waiting run is held and retries the start later; see [ErrHeld].
func ElseStart[I, O any](w *Workflow[I, O], in I, opts ...StartOption) ReceiveOption {
	return func(o *receiveOptions) {
		o.addOptionOnce(optionWhenTimedOut, "ElseStart")
		o.onTimeout = engine.TimeoutEscalates
		o.newEscalation = func(limit int) (engine.EscalationFunc, error) {
			request, err := w.newStartRequest(limit, in, opts)
			if err == nil && request.Name != "" {
				err = fmt.Errorf("%w: ElseStart names the run itself: leave out ID", ErrInvalidConfig)
			}
			return func(to *engine.EscalationWriter, id string) error {
				request := request
				request.Name = id
				return to.Start(request)
			}, err
		}
	}
}

// ElseSignal sends a signal to another run, once, when the time of [Within] is over. After ElseSignal has sent the signal, the
// receive continues to wait without a bound. If the run makes the wait again, after [Ctx.ContinueAsNew] or because of a repair,
// ElseSignal sends another signal. If the other run has ended or does not exist, the engine logs an error, and the receive
// continues to wait.
func ElseSignal(id, name string, payload any) ReceiveOption {
	return func(o *receiveOptions) {
		o.addOptionOnce(optionWhenTimedOut, "ElseSignal")
		o.onTimeout = engine.TimeoutEscalates
		o.setFirstError(naming.Check("signal", name))
		o.newEscalation = func(limit int) (engine.EscalationFunc, error) {
			b, err := encode(&payload, limit)
			return func(to *engine.EscalationWriter, key string) error {
				return to.Signal(id, &store.SignalWrite{Name: name, Key: key, Payload: b})
			}, err
		}
	}
}
