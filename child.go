package durable

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// Detached lets a child continue when its parent ends. Without Detached, a child that has not ended is cancelled when its
// parent ends. A detached child still belongs to the tree of its parent: [Engine.Cancel], [Engine.Terminate], [Engine.Pause]
// and [Engine.Resume] of the parent or of another ancestor also affect a detached child, except a Cancel with [OnlyItself].
// After [Ctx.ContinueAsNew] of the parent, they no longer affect a detached child of the earlier generation. To start a run that
// continues even if this run is cancelled, terminated or paused, use [Ctx.Start]. If a run that is not a child is started with
// Detached, the start returns [ErrInvalidConfig].
func Detached() StartOption {
	return func(o *startOptions) {
		o.addOptionOnce(optionDetached, "Detached")
		o.detached = true
	}
}

// Child starts a run of the workflow as a child of this run, and returns the child's result once the child has ended. Any
// worker that executes the workflow may claim the child. A parent that only waits for its child is unloaded from memory.
//
// Child returns a [*RunError] with the child's UUID if the child did not complete. Child returns [ErrInvalidConfig] for the
// option [ID], because the name of the call already identifies the child. Child also returns the errors of [Ctx.Step] and, for
// the input, of [Workflow.Start]. A recorded child keeps the input with which it was started. If the code now calls another
// workflow under the same name, Child returns [ErrDiverged].
func (c *Ctx) Child[I, O any](name string, w *Workflow[I, O], in I, opts ...StartOption) (O, error) {
	child, err := startChild(c, name, w, in, callSite(0), opts)
	if err != nil {
		var zero O
		return zero, err
	}
	return child.Wait()
}

// StartChild starts a child as [Ctx.Child] does, and returns a handle of the child without waiting for its end.
func (c *Ctx) StartChild[I, O any](name string, w *Workflow[I, O], in I, opts ...StartOption) (*Child[O], error) {
	return startChild(c, name, w, in, callSite(0), opts)
}

// Child is the parent's handle of a child, returned by [Ctx.StartChild]. A Child is safe for concurrent use.
type Child[O any] struct {
	c     *Ctx
	name  string
	inner *engine.Child
}

func startChild[I, O any](c *Ctx, name string, w *Workflow[I, O], in I, where uintptr, opts []StartOption) (*Child[O], error) {
	o := newStartOptions(opts)
	request, err := w.newRootOrChildRequest(c.payloadLimit(name), in, o)
	if err == nil {
		err = o.checkNoStartKey("a child belongs to its parent alone: leave the option out, or use Ctx.Start")
	}
	if err != nil {
		return nil, fmt.Errorf("child %q: %w", name, err)
	}
	if request.Name != "" {
		return nil, fmt.Errorf("%w: child %q has the option ID: a child is named by its call, leave the option out", ErrInvalidConfig, name)
	}
	request.Name = name
	inner, err := c.callScope().StartChild(request, where)
	if err != nil {
		return nil, err
	}
	return &Child[O]{c: c, name: name, inner: inner}, nil
}

// ID returns the child's UUID in text form. Pass the UUID to the methods of [Engine] that take the ID of a run. ID returns the
// same UUID in every replay.
func (h *Child[O]) ID() string { return h.inner.UUID().String() }

// Signal sends a named message to the child, once; see [Ctx.Signal]. The call of Signal is recorded under name, in the scope
// that started the child. If the child has ended, Signal returns a [*StepError] that wraps a [*StateError].
func (h *Child[O]) Signal(name, signalName string, payload any, opts ...SignalOption) error {
	return signalRun(h.c, name, h.ID(), signalName, payload, opts, callSite(0), func(err error) error {
		if errors.Is(err, ErrNotFound) && h.inner.HasRecordedEnd() { // a fork has copied the result of the child and not the child
			status := h.inner.RecordedStatus()
			return &StateError{ID: h.ID(), Verb: VerbSignal, Status: Status(status), Detail: status}
		}
		return convertStateError(err)
	})
}

// Cancel cancels the child as [Engine.Cancel] does, with the same options. The call of Cancel is recorded under name, in the
// scope that started the child. If the child has ended, Cancel returns no error. Cancel does not wait for the child's end. For
// a cancelled child, [Child.Wait] returns a [*RunError] with [StatusCancelled].
func (h *Child[O]) Cancel(name string, opts ...ControlOption) error {
	order, err := newControlRequest(store.VerbCancel, opts)
	if err == nil && order.DryRun {
		err = fmt.Errorf("%w: DryRun is for the calls of an Engine, not for Child.Cancel", ErrInvalidConfig)
	}
	if err != nil {
		return fmt.Errorf("cancel call %q: %w", name, err)
	}
	if order.Reason == "" {
		order.Reason = "its parent has cancelled it"
	}
	_, err = recordEngineCall(h.c, name, store.KindCancelChild, callSite(0), withEmptyResult(func(ctx context.Context) error {
		err := h.c.scope.CancelRun(ctx, h.inner.UUID(), order)
		if errors.Is(err, ErrNotFound) && h.inner.HasRecordedEnd() {
			return nil // a fork has copied the result of the child and not the child
		}
		return err
	}))
	return err
}

// Wait waits until the child has ended, and returns the result of the child. Wait belongs to the branch that started the child,
// even if another branch calls it; see [CancelLosers]. Wait returns the errors of [Ctx.Child].
func (h *Child[O]) Wait() (O, error) {
	var zero O
	res, err := h.inner.Wait()
	switch {
	case err != nil:
		return zero, err
	case res.Failure != nil:
		return zero, newChildError(h.inner.Name(), res.Failure)
	}
	out, err := decode[O](res.Output)
	if err != nil {
		return zero, undecodableError[O](h.c, h.name, "output of child", h.c.scope.DisplayName(h.name), "does not decode", res.Output, err, "bring back the old type, or replace the value with Override")
	}
	return out, nil
}

func newChildError(name string, f *record.Failure) *RunError {
	return &RunError{
		ID: f.Run, Name: name, Workflow: f.Workflow, Status: Status(f.Status), Message: f.Message, Type: f.Type, Step: f.Step, Stack: f.Stack,
		sentinelCodes: f.Codes, isPermanent: f.Permanent,
	}
}
