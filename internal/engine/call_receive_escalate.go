package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/startkey"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// An EscalationFunc notifies somebody that a receive has waited for too long. The argument id identifies the receive. An EscalationFunc must
// be idempotent for each id: it is called again if the process dies before the escalation is recorded. The receive has another id if the run
// makes it again, after it has continued as new, or because a repair has dropped the receive after its escalation.
type EscalationFunc func(to *EscalationWriter, id string) error

// EscalationWriter sends the signal or starts the run of an escalation. If a choice ends the branch that waits, the choice is either
// recorded after the escalation is written, or prevents the escalation.
type EscalationWriter struct {
	scope   *Scope
	call    string          // the name of the receive with its scope
	ctx     context.Context // it does not end with the run, so that the outcome of each write is known
	options writeOptions
}

// Start starts a run. If the run has a start key, Start may return startkey.ErrLive or startkey.ErrSkipped.
func (x *EscalationWriter) Start(q StartRequest) error {
	if q.StartKey != nil {
		// The start has the identity of a call, so that a repeated start leads to the same run, even if the start has joined an existing run.
		t := &stepTask{r: x.scope.r, scope: x.scope, name: x.call, attempt: 1}
		started, err := t.executeStartWithStartKey(context.WithValue(x.ctx, attemptContextKey{}, t), &q, true)
		return cmp.Or(err, started.Err)
	}
	started, err := x.scope.r.e.checkNamesAndStart(x.ctx, x.options, []StartRequest{q})
	if err != nil {
		return err
	}
	return started[0].Err
}

// Signal sends a signal to the run that the argument ref names.
func (x *EscalationWriter) Signal(ref string, s *store.SignalWrite) error {
	return x.scope.r.e.sendSignal(x.ctx, x.options, ref, s, x.scope.r.noteSignalSent(s.CreatedAt))
}

// escalate calls the escalation of the wait. It returns an error if the run was suspended or must end, or
// if its branch was ended. It only logs an error that a retry would not change, for example that the target run has ended.
func (w *receiveCall) escalate() error {
	r := w.r
	err := w.spec.Escalate(&EscalationWriter{w.s, w.name, r.writeCtx, writeOptions{stopRetrying: w.s.stepsCtx.Done(), wrapAttempt: w.s.writeOnlyInOpenBranch}}, r.deriveStartedRunName(w.name))
	var state *StateError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrIDConflict), errors.Is(err, naming.ErrInvalid), errors.Is(err, store.ErrBadData), errors.As(err, &state), isQueueRefusal(err):
		r.logger().Error("a wait could not be escalated; it goes on", telemetry.KeyStep, naming.Display(w.name), telemetry.KeyError, err)
		return nil
	case errors.Is(err, startkey.ErrLive), errors.Is(err, startkey.ErrSkipped):
		r.logger().Info("the escalation of a wait started no run", telemetry.KeyStep, naming.Display(w.name), telemetry.KeyReason, err)
		return nil
	case errors.Is(err, ErrEffectInterrupted), w.s.checkOpen() != nil:
		return cmp.Or(w.s.checkOpen(), ErrSuspended)
	}
	r.suspendAfterFailedWrite("escalate wait", w.name, err)
	return ErrSuspended
}
