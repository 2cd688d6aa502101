package engine

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// StateError is returned when the state of a run does not allow the requested operation.
type StateError struct {
	Ref     string
	Verb    string
	Status  store.Status
	Control store.ControlBits
	// Expiring says that the run's deadline has passed, and that the run neither has ended nor is being cancelled.
	Expiring bool
	// Begun says that the operation is allowed only for a run that has not begun, but that this run has begun.
	Begun bool
	// Detail describes the run's state in words if the other fields do not say why the operation is refused.
	Detail string
}

// Error returns a message that names the operation, the run and the run's state.
func (e *StateError) Error() string {
	return fmt.Sprintf("durable: cannot %s run %q: it is %s", e.Verb, e.Ref, e.State())
}

// State returns the run's state in words.
func (e *StateError) State() string {
	switch {
	case e.Detail != "":
		return e.Detail
	case e.Begun && (e.Status == store.Pending || e.Status == store.Paused):
		return e.Status.String() + ", and has begun"
	case e.Expiring && !e.Status.IsTerminal() && e.Control&store.CancelRequested == 0:
		return e.Status.String() + ", and its time is over"
	case e.Status.IsTerminal() || e.Control == 0:
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

// Control pauses, resumes, cancels or terminates the runs whose UUIDs the operation o contains. Control sets o.Now and, for a
// cancel or a termination, o.Error.
func (e *Engine) Control(ctx context.Context, o *store.ControlRequest) error {
	if err := e.CheckOutsideTx(ctx, "a pause, resume or cancel"); err != nil {
		return err
	}
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return err
	}
	return e.controlRuns(ctx, userCaller, o)
}

// controlRuns does the same as Control with the given options, but does not check that the call is made outside a transaction. It
// retries for Config.Patience. A request that a run makes has a Fence. If o.Fenced is set afterwards, that execution no longer owns
// its run.
func (e *Engine) controlRuns(ctx context.Context, by writeOptions, o *store.ControlRequest) error {
	o.Now = e.clock.Now()
	switch {
	case o.Error != nil:
	case o.Verb == store.VerbCancel:
		o.Error = record.Cancelled(o.Reason, o.Actor).Encode()
	case o.Verb == store.VerbTerminate:
		o.Error = record.Terminated(o.Reason, o.Actor).Encode()
	}
	if err := e.commitInSeparateTx(ctx, by, func() error { return e.store.ControlRuns(ctx, o) }); err != nil {
		return err
	}
	if o.DryRun {
		return nil
	}
	e.logCancelledRuns(o)
	if w := e.worker(); w != nil {
		w.notifyOwnedRunChange()
		w.wakeLoops()
	}
	return nil
}

// CheckRunID returns ErrNotFound for a text that the database would reject, because no run can have such an ID.
func CheckRunID(ref string) error {
	if naming.CheckText("ID", ref) != nil {
		return notFoundError(ref)
	}
	return nil
}

func notFoundError(ref string) error {
	return fmt.Errorf("%w: there is no run %q in this database", ErrNotFound, ref)
}

func uuidList(id ...uuid.UUID) []uuid.UUID { return id }
