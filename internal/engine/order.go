package engine

import (
	"context"
	"errors"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// StateError says that what was asked of a run does not go with its state.
type StateError struct {
	ID      string
	Verb    string
	Status  store.Status
	Control store.ControlBits
	// Expiring says that a live run which nothing else hinders has come to its deadline.
	Expiring bool
}

// Error names the run and the state.
func (e *StateError) Error() string {
	return fmt.Sprintf("durable: cannot %s run %q: it is %s", e.Verb, e.ID, e.State())
}

// State is the run's state in words.
func (e *StateError) State() string {
	switch {
	case e.Expiring && !e.Status.Terminal() && e.Control&store.CancelRequested == 0:
		return e.Status.String() + ", and its time is over"
	case e.Status.Terminal() || e.Control == 0:
		return e.Status.String()
	case e.Control&store.CancelRequested != 0:
		return e.Status.String() + ", being cancelled"
	case e.Control == store.PausedByAncestor:
		return e.Status.String() + ", paused with a run above it"
	case e.Status == store.Running:
		return e.Status.String() + ", being paused"
	default:
		return e.Status.String()
	}
}

// Order carries out an order on runs whose IDs are known; its time and the error of
// cancelled runs are filled in here.
func (e *Engine) Order(ctx context.Context, o *store.Order) error {
	if err := e.Outside(ctx, "a pause, resume or cancel"); err != nil {
		return err
	}
	if err := e.clock.ensure(ctx, e.store); err != nil {
		return err
	}
	return e.order(ctx, outsider, o)
}

// order carries out the order.
func (e *Engine) order(ctx context.Context, by caller, o *store.Order) error {
	o.Now = e.clock.now()
	switch {
	case o.Error != nil:
	case o.Verb == store.VerbCancel:
		o.Error = CancelFailure(o.Reason, o.Actor).Encode()
	case o.Verb == store.VerbTerminate:
		o.Error = TerminateFailure(o.Reason, o.Actor).Encode()
	}
	if err := e.patiently(ctx, by, func() error {
		_, err := by.wrap(func(journal.Writer) (*store.Outcome, error) { return nil, e.store.Control(ctx, o) })(nil)
		return err
	}); err != nil {
		if _, is := errors.AsType[*WriteError](err); is || errors.Is(err, store.ErrClosed) {
			return err
		}
		return &WriteError{MayHaveCommitted: !MayPass(err), Err: err}
	}
	e.reportCancel(o)
	if w := e.worker(); w != nil {
		w.news.poke()
		w.hint()
	}
	return nil
}

// CheckRef answers ErrNotFound for a text by which no run can be addressed, and which a database
// would refuse.
func CheckRef(ref string) error {
	if CheckText("ID", ref) != nil {
		return notFound(ref)
	}
	return nil
}

func notFound(ref string) error {
	return fmt.Errorf("%w: there is no run %q in this database", ErrNotFound, ref)
}

func ids(id ...uuid.UUID) []uuid.UUID { return id }
