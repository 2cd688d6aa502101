package durable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// Signal sends a named message to the run with the caller's ID, or the UUID, as [Engine.Signal] does, and
// records that under name. The message is sent once, however often the run is replayed, and whenever a
// process dies: without a [SignalKey] it has a key of this call's own.
//
// A signal that could not be sent is a *StepError, the same in every replay: errors.Is finds
// ErrNotFound, ErrState with a *StateError if the other run has ended, or ErrIDConflict if the SignalKey
// was used for another signal. Other errors are those of Step, and ErrNotEncodable and
// ErrPayloadTooLarge for the payload, of which nothing is recorded.
func (c *Ctx) Signal(name, id, signalName string, payload any, opts ...SignalOption) error {
	return signalRun(c, name, id, signalName, payload, opts, site(0))
}

func signalRun(c *Ctx, name, id, signalName string, payload any, opts []SignalOption, where uintptr) error {
	signal, _, err := newSignal(c.limit(name), signalName, payload, opts)
	if err != nil {
		return fmt.Errorf("signal call %q: %w", name, err)
	}
	return effect(c, name, store.KindSignal, where, func(ctx context.Context) error {
		return stated(c.scope.SendSignal(ctx, id, signal))
	})
}

// Start starts a run of the workflow that is no child of this one, records that under name, and returns
// the run's ID. It is started once, however often this run is replayed, and whenever a process dies. It
// goes on when this run ends, whatever the result; nothing waits for it. For a run whose result is needed
// use [Ctx.Child].
//
// Without the option [ID], the run's ID is this run's UUID, a colon and the name of the call. With it, a
// run that exists already with the same workflow and input is the same start, and a run that differs is a
// *StepError that is ErrIDConflict, in every replay. Other errors are those of Step, and of
// [Workflow.Start] for the input and the options, of which nothing is recorded.
func (c *Ctx) Start[I, O any](name string, w *Workflow[I, O], in I, opts ...StartOption) (id string, err error) {
	request, err := w.request(c.limit(name), in, opts)
	if err != nil {
		return "", fmt.Errorf("start call %q: %w", name, err)
	}
	call := newCall[string](c, name, store.KindStart, nil)
	call.spec.Attempt = func(ctx context.Context) (engine.Output, *engine.Failure) {
		id, err := c.scope.StartRun(ctx, request)
		return call.settle(id, err)
	}
	return call.do()
}

// SetTags sets tags of this run, as [Engine.SetTags] does, and records that under name; an empty value
// removes a tag. A process that dies before the record leaves the tags to be set once more, to the same
// values. Errors are those of Step, and ErrInvalidName for a tag.
func (c *Ctx) SetTags(name string, tags map[string]string) error {
	list, err := tagList(tags)
	if err != nil {
		return fmt.Errorf("tags call %q: %w", name, err)
	}
	return effect(c, name, store.KindTags, site(0), func(ctx context.Context) error { return c.scope.SetTags(ctx, list) })
}

// Now returns the database's time at the first execution of the call, in UTC and in whole microseconds.
// It is recorded under name: every replay returns the same time. Errors are those of Step.
func (c *Ctx) Now(name string) (time.Time, error) {
	call := newCall[time.Time](c, name, store.KindNow, nil)
	call.spec.Attempt = func(context.Context) (engine.Output, *engine.Failure) { return call.record(c.scope.Time(), nil) }
	return call.do()
}

// UUID returns a UUID in its text form that no other call returns: version 7, which sorts by the time at
// which it was made and makes a good key of a table. It is recorded under name: every replay returns the
// same one. Whoever sees it can read that time from it. Errors are those of Step.
func (c *Ctx) UUID(name string) (string, error) {
	call := newCall[string](c, name, store.KindUUID, nil)
	call.spec.Attempt = func(context.Context) (engine.Output, *engine.Failure) {
		return call.record(c.scope.NewUUID().String(), nil)
	}
	return call.do()
}

// effect makes a call that does something outside of the run's own history, and returns nothing.
func effect(c *Ctx, name string, kind store.Kind, where uintptr, do func(context.Context) error) error {
	call := newCall[struct{}](c, name, kind, nil)
	call.spec.Site = where
	call.spec.Attempt = func(ctx context.Context) (engine.Output, *engine.Failure) {
		return call.settle(struct{}{}, do(ctx))
	}
	_, err := call.do()
	return err
}

// settle is record for an effect of the engine.
func (k *call[T]) settle(v T, err error) (engine.Output, *engine.Failure) {
	switch {
	case errors.Is(err, engine.ErrLeft):
		return engine.Output{}, &engine.Failure{Message: err.Error(), Left: true}
	case errors.Is(err, store.ErrBadData):
		err = fmt.Errorf("%w: %w", ErrRefused, err)
	}
	return k.record(v, err)
}
