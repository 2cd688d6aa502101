package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Signal sends a named message to the run with the given ID, which is the caller's ID or the UUID, as [Engine.Signal] does, and
// records the call under name. The signal is sent once, even across replays and crashes. Without the option [SignalKey],
// durable derives the key of the signal from the call of Ctx.Signal.
//
// If the signal cannot be sent, Signal returns a [*StepError], which is recorded and the same in every replay. The StepError
// wraps [ErrNotFound] if there is no such run, a [*StateError] if the other run has ended, or [ErrIDConflict] if the SignalKey
// was used for another signal. Signal also returns the errors of [Ctx.Step]. If the payload cannot be encoded or is too large,
// Signal returns [ErrNotEncodable] or [ErrPayloadTooLarge], which are not recorded.
func (c *Ctx) Signal(name, id, signalName string, payload any, opts ...SignalOption) error {
	return signalRun(c, name, id, signalName, payload, opts, callSite(0), convertStateError)
}

// signalRun sends a signal to a run as one durable call. The function convert returns the error that is recorded for an error of the engine.
func signalRun(c *Ctx, name, id, signalName string, payload any, opts []SignalOption, where uintptr, convert func(error) error) error {
	signal, _, err := newSignal(c.payloadLimit(name), signalName, payload, opts)
	if err == nil && signal.ActorAndReason.HasActorOrReason() {
		err = fmt.Errorf("%w: Reason and Actor are for Engine.Signal: a workflow's own signals are in its history, leave the options out", ErrInvalidConfig)
	}
	if err != nil {
		return fmt.Errorf("signal call %q: %w", name, err)
	}
	_, err = recordEngineCall(c, name, store.KindSendSignal, where, withEmptyResult(func(ctx context.Context) error {
		return convert(c.scope.SendSignal(ctx, id, signal))
	}))
	return err
}

// Start starts a run of w that is not a child of this run, records the call under name, and returns the ID of the started run.
// Start starts the run only once, even across replays and crashes. The started run continues when the calling run ends. To get
// the result of the started run, use [Ctx.Child] instead.
//
// Without the option [ID], the ID of the started run is this run's UUID, a colon and the name of the call. If the name of the
// call is too long for an ID, a hash replaces the name. If the run makes the call again, after [Ctx.ContinueAsNew] or because of
// a repair, the ID has "#" and the number of the generation after the UUID. If a run with the ID that the option [ID] sets
// exists already, Start starts no run and returns the ID. If the existing run has another workflow or input, Start returns a
// [*StepError] that wraps [ErrIDConflict], in every replay. Start also returns the errors of [Ctx.Step]. If the input or an
// option is invalid, Start returns the errors of [Workflow.Start], which are not recorded.
func (c *Ctx) Start[I, O any](name string, w *Workflow[I, O], in I, opts ...StartOption) (id string, err error) {
	request, err := w.newStartRequest(c.payloadLimit(name), in, opts)
	if err != nil {
		return "", fmt.Errorf("start call %q: %w", name, err)
	}
	return recordEngineCall(c, name, store.KindStartRoot, callSite(0), func(ctx context.Context) (string, error) { return c.scope.StartRun(ctx, request) })
}

// SetTags sets tags of this run, as [Engine.SetTags] does, and records the call under name. An empty value removes a tag. If
// the process dies before the call of SetTags is recorded, the next execution sets the tags again, to the same values. SetTags
// returns the errors of [Ctx.Step], and [ErrInvalidName] for an invalid tag.
func (c *Ctx) SetTags(name string, tags map[string]string) error {
	list, err := sortedTags(tags)
	if err != nil {
		return fmt.Errorf("tags call %q: %w", name, err)
	}
	_, err = recordEngineCall(c, name, store.KindTags, callSite(0), withEmptyResult(func(ctx context.Context) error { return c.scope.SetTags(ctx, list) }))
	return err
}

// Now returns the time of the database's clock at the first execution of the call, in UTC and in whole microseconds. The time
// is recorded under name, and every replay returns the recorded time. Now returns the errors of [Ctx.Step].
func (c *Ctx) Now(name string) (time.Time, error) {
	return recordEngineCall(c, name, store.KindNow, callSite(0), func(context.Context) (time.Time, error) { return c.scope.Time(), nil })
}

// UUID returns a new UUID in text form. The UUID is recorded under name, and every replay returns the recorded UUID. The UUID
// is of version 7. Such UUIDs sort by the time of their creation, so they are suitable as keys of a table, and anybody who sees
// the UUID can read the time of its creation. UUID returns the errors of [Ctx.Step].
func (c *Ctx) UUID(name string) (string, error) {
	return recordEngineCall(c, name, store.KindUUID, callSite(0), func(context.Context) (string, error) { return c.scope.NewUUID().String(), nil })
}

// recordEngineCall makes a durable call whose function is the engine's: it changes something besides the run's own history, or returns
// something that differs between executions.
func recordEngineCall[T any](c *Ctx, name string, kind store.StepKind, where uintptr, fn func(context.Context) (T, error)) (T, error) {
	call := newDurableCall(c, name, kind, where, fn, nil)
	call.spec.ExecuteAttempt = func(ctx context.Context) (engine.AttemptOutput, *record.Failure) {
		v, err := fn(ctx)
		return call.encodeEngineCallResult(v, err)
	}
	return call.executeCall()
}

// encodeEngineCallResult encodes the outcome of an effect for the checkpoint. If the run left, or its branch ended, before the effect had an
// outcome, nothing is recorded.
func (k *durableCall[T]) encodeEngineCallResult(v T, err error) (engine.AttemptOutput, *record.Failure) {
	switch {
	case errors.Is(err, engine.ErrEffectInterrupted):
		return engine.AttemptOutput{}, &record.Failure{Message: err.Error(), CallIsOver: true}
	case errors.Is(err, store.ErrBadData):
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return k.encodeResult(v, err)
}
