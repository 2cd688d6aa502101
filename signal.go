package durable

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Signal sends a named message to the run with the caller's ID, or the UUID. It is kept
// until the run receives it, also if the run does not wait for it yet, and each one is
// received once, first in, first out. The payload is encoded as a step's result is.
//
// Errors: ErrNotFound; *StateError if the run has ended; ErrIDConflict if a signal of the
// run with the same Key has another name or payload; ErrInvalidName, ErrNotEncodable,
// ErrPayloadTooLarge, ErrUnavailable.
func (e *Engine) Signal(ctx context.Context, id, name string, payload any, opts ...SignalOption) error {
	if err := e.writes(ctx, "a signal", "Ctx.Signal or Child.Signal"); err != nil {
		return fmt.Errorf("signal %q: %w", name, err)
	}
	signal, insert, err := newSignal(e.cfg.MaxPayload, name, payload, opts)
	if err != nil {
		return err
	}
	if insert != nil {
		return e.signalIn(ctx, id, signal, insert)
	}
	return stated(e.inner.Signal(ctx, id, signal))
}

// Complete posts the value that an Awaitable with this token waits for, from whatever
// process. The first value holds: the same one again is accepted, another one is
// ErrIDConflict. Further errors as for Signal; ErrInvalidToken for a text that is no token, or that
// was altered or made by somebody else; ErrInvalidName if the wait has a name that cannot be one.
func (e *Engine) Complete(ctx context.Context, token string, value any) error {
	if err := e.writes(ctx, "a completion of a token", ""); err != nil {
		return fmt.Errorf("complete a token: %w", err)
	}
	run, signal, err := e.inner.OpenToken(ctx, token)
	if err != nil {
		return fmt.Errorf("complete a token: %w", err)
	}
	b, err := encode(value, e.cfg.MaxPayload)
	if err != nil {
		return fmt.Errorf("complete a token: %w", err)
	}
	err = e.inner.Signal(ctx, run, &store.Signal{Name: signal, Key: signal, Payload: b})
	if errors.Is(err, ErrIDConflict) {
		return &engine.Conflict{Text: fmt.Sprintf("durable: the wait %q of this token, in run %s, was completed with another value before: the first one holds", engine.ShownSignal(signal), run)}
	}
	return stated(err)
}

// SignalOption changes one signal.
type SignalOption func(*signalOptions)

type signalOptions struct {
	key    string
	insert bridge.InsertSignal // by the SignalTx of a store
	given  given
	err    error
}

// SignalKey makes a signal idempotent: of all that are sent to one run with the same key,
// one is kept. It is any text of 1 to 512 bytes without control characters.
func SignalKey(key string) SignalOption {
	return func(o *signalOptions) {
		o.key, o.err = key, errors.Join(o.err, o.given.once(1, "SignalKey"), engine.CheckName("signal key", key))
	}
}

// newSignal checks and encodes one signal.
func newSignal(limit int, name string, payload any, opts []SignalOption) (*store.Signal, bridge.InsertSignal, error) {
	var o signalOptions
	if err := apply(opts, &o); err != nil {
		return nil, nil, fmt.Errorf("signal %q: %w", name, err)
	}
	if err := engine.CheckName("signal", name); err != nil {
		return nil, nil, err
	}
	if o.err != nil {
		return nil, nil, fmt.Errorf("signal %q: %w", name, o.err)
	}
	b, err := encode(payload, limit)
	if err != nil {
		return nil, nil, fmt.Errorf("signal %q: %w", name, err)
	}
	return &store.Signal{Name: name, Key: o.key, Payload: b}, o.insert, nil
}

// Receive answers the payload of the oldest signal called name that nothing has received
// yet, or waits for one. Which signal it is, and that it is taken, are recorded in one transaction. A run that
// only waits leaves memory. A second Receive in one scope needs a name of its own;
// OnSignal says which signal it is for.
//
// Without Within it waits for ever. When the time is over and no signal came first, the
// options say what follows; by default Receive fails with a *StepError that is
// ErrTimeout. Other errors as for Step.
func (c *Ctx) Receive[T any](name string, opts ...ReceiveOption) (T, error) {
	return receive[T](c, name, "", site(0), opts)
}

// Awaitable is a wait that an outside system completes: give it the token.
type Awaitable[T any] struct {
	c    *Ctx
	name string
	site uintptr
}

// Awaitable makes a wait called name. Nothing is recorded before Wait.
func (c *Ctx) Awaitable[T any](name string) *Awaitable[T] {
	return &Awaitable[T]{c: c, name: name, site: site(0)}
}

// Token is a text that any process can give to Engine.Complete, once or more often. It
// stays the same in every execution. Who has it can complete the wait, and nobody can make it
// without a key that is kept in the database.
func (a *Awaitable[T]) Token() string { return a.c.scope.Token(a.name) }

// Wait answers the value that the token was completed with, before or after; otherwise it
// is as Receive, whose options it takes.
func (a *Awaitable[T]) Wait(opts ...ReceiveOption) (T, error) {
	return receive[T](a.c, a.name, a.c.scope.TokenSignal(a.name), a.site, opts)
}

func receive[T any](c *Ctx, name, signal string, where uintptr, opts []ReceiveOption) (T, error) {
	var zero T
	o := receiveOptions{signal: name}
	o.fail(apply(opts, &o))
	if signal != "" {
		if o.given&givenOnSignal != 0 {
			o.fail(fmt.Errorf("%w: the option OnSignal is for Receive: an Awaitable is completed by its token alone, leave the option out", ErrInvalidConfig))
		}
		o.signal = signal
	}
	spec := engine.ReceiveSpec{
		Name: name, Signal: o.signal, Site: where, Within: o.within, Bounded: o.bounded, Otherwise: o.otherwise,
	}
	if o.escalate != nil {
		var err error
		if spec.Escalate, err = o.escalate(c.limit(name)); err != nil {
			o.fail(err)
		}
	}
	if o.otherwise != engine.TimeoutFails && !o.bounded {
		o.fail(fmt.Errorf("%w: it says what to do when the time is over, and has no Within", ErrInvalidConfig))
	}
	if o.otherwise == engine.TimeoutGoesOn {
		v, ok := o.value.(T)
		if !ok && (o.value != nil || reflect.TypeFor[T]().Kind() != reflect.Interface) {
			o.fail(fmt.Errorf("%w: Else is a %T, it must be what is received: %v", ErrInvalidConfig, o.value, reflect.TypeFor[T]()))
		}
		b, err := encodeReadable(v, c.limit(name))
		if err != nil {
			o.fail(err)
		}
		spec.Value = b
	}
	if o.err != nil {
		return zero, fmt.Errorf("receive %q: %w", name, o.err)
	}
	res, err := c.calls().Receive(&spec)
	switch {
	case err != nil:
		return zero, err
	case res.Failure != nil:
		return zero, stepError(c.scope.Full(name), res.Failure)
	}
	v, err := decode[T](res.Output)
	if err != nil {
		return zero, fmt.Errorf("%w: the signal %q in run %q of workflow %q (%d bytes) does not decode into %v: %w: send what is received, or bring back the old type",
			ErrDiverged, engine.ShownSignal(o.signal), c.ID(), c.scope.Workflow(), len(res.Output), reflect.TypeFor[T](), err)
	}
	return v, nil
}

// ReceiveOption changes one Receive or Wait.
type ReceiveOption func(*receiveOptions)

type receiveOptions struct {
	signal    string
	within    time.Duration
	bounded   bool
	otherwise engine.Timeout
	value     any
	escalate  func(limit int) (engine.Escalation, error)
	given     given
	err       error
}

const (
	givenOnSignal given = 1 << iota
	givenWithin
	givenElse // any that says what to do when the time is over
)

// OnSignal receives the signal with this name, where the Receive has another one.
func OnSignal(name string) ReceiveOption {
	return func(o *receiveOptions) {
		o.fail(o.given.once(givenOnSignal, "OnSignal"))
		o.signal = name
		o.fail(engine.CheckName("signal", name))
	}
}

// Within bounds the wait, from its first execution, by the database's clock. A signal that
// arrives in time is received, however late the run looks for it, and one that arrives later is not, even
// if the run looks later still: it is kept for another Receive of its name. The database stamps the
// arrival while it writes the signal. A pause does not stop the time, unless the run is resumed with
// FreezeTimers. Zero and less: the wait receives what is there already, or is over.
func Within(d time.Duration) ReceiveOption {
	return func(o *receiveOptions) {
		o.fail(o.given.once(givenWithin, "Within"))
		o.within, o.bounded = d, true
	}
}

// Else goes on with this value when the time is over: choose one that can be told from a
// signal's.
func Else[T any](value T) ReceiveOption {
	return func(o *receiveOptions) {
		o.fail(o.given.once(givenElse, "Else"))
		o.otherwise, o.value = engine.TimeoutGoesOn, value
	}
}

// ElseCancel cancels the run, and everything beneath it, when the time is over.
func ElseCancel() ReceiveOption {
	return func(o *receiveOptions) {
		o.fail(o.given.once(givenElse, "ElseCancel"))
		o.otherwise = engine.TimeoutCancels
	}
}

// ElseExpire ends the run when the time is over, as its own Timeout does: compensations
// run, and then it has expired, with ErrTimeout.
func ElseExpire() ReceiveOption {
	return func(o *receiveOptions) {
		o.fail(o.given.once(givenElse, "ElseExpire"))
		o.otherwise = engine.TimeoutExpires
	}
}

// ElseStart starts a run of w when the time is over, once, and goes on waiting without
// a bound. Its ID is the waiting run's UUID and the name of the wait. If the database does not take the start,
// the waiting run is held, and tries it again; see ErrHeld.
func ElseStart[I, O any](w *Workflow[I, O], in I, opts ...StartOption) ReceiveOption {
	return func(o *receiveOptions) {
		o.fail(o.given.once(givenElse, "ElseStart"))
		o.otherwise = engine.TimeoutEscalates
		o.escalate = func(limit int) (engine.Escalation, error) {
			request, err := w.request(limit, in, opts)
			if err == nil && request.Name != "" {
				err = fmt.Errorf("%w: ElseStart names the run itself: leave out ID", ErrInvalidConfig)
			}
			return func(to *engine.Escalator, id string) error {
				request := request
				request.Name = id
				return to.Start(request)
			}, err
		}
	}
}

// ElseSignal sends a signal to another run when the time is over, once, and goes on
// waiting without a bound. That the other run has ended, or does not exist, is logged and
// no error.
func ElseSignal(id, name string, payload any) ReceiveOption {
	return func(o *receiveOptions) {
		o.fail(o.given.once(givenElse, "ElseSignal"))
		o.otherwise = engine.TimeoutEscalates
		o.fail(engine.CheckName("signal", name))
		o.escalate = func(limit int) (engine.Escalation, error) {
			b, err := encode(payload, limit)
			return func(to *engine.Escalator, key string) error {
				return to.Signal(id, &store.Signal{Name: name, Key: key, Payload: b})
			}, err
		}
	}
}

func (o *receiveOptions) fail(err error) {
	if o.err == nil {
		o.err = err
	}
}
