package engine

import (
	"cmp"
	"context"
	"errors"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// Escalation tells somebody that a wait takes long. It is idempotent by the id, which
// names the wait, since it is called again when the process dies before that is recorded.
type Escalation func(to *Escalator, id string) error

// Escalator makes the write of an escalation. A choice that ends the branch of the wait comes after the
// write, or the write is not made.
type Escalator struct {
	s   *Scope
	ctx context.Context // it does not end with the run, so that the outcome of each write is known
	by  caller
}

// Start starts a run.
func (x *Escalator) Start(q StartRequest) error {
	started, err := x.s.r.e.startUnlessUsurped(x.ctx, x.by, []StartRequest{q})
	if err != nil {
		return err
	}
	return started[0].Err
}

// Signal sends a signal to the run that ref names.
func (x *Escalator) Signal(ref string, s *store.Signal) error {
	return x.s.r.e.signal(x.ctx, x.by, ref, s, x.s.r.lastSent(s.CreatedAt))
}

// escalate makes the escalation. An error says that the run leaves, or that its branch was ended. What the
// escalation met that no retry changes, such as a run that has ended, is logged.
func (w *receiving) escalate() error {
	r := w.r
	err := w.spec.Escalate(&Escalator{w.s, r.durable, caller{over: w.s.work.Done(), around: w.s.unended}}, r.row.ID.String()+":"+Shown(w.name))
	var state *StateError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, ErrNotFound), errors.Is(err, ErrIDConflict), errors.Is(err, ErrInvalidName), errors.Is(err, store.ErrBadData), errors.As(err, &state):
		r.logger().Error("a wait could not be escalated; it goes on", telemetry.KeyStep, Shown(w.name), telemetry.KeyError, err)
		return nil
	case errors.Is(err, ErrLeft), w.s.left() != nil:
		return cmp.Or(w.s.left(), ErrSuspended)
	}
	r.unwritten("escalate wait", w.name, err)
	return ErrSuspended
}
