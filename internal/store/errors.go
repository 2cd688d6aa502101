package store

import (
	"context"
	"errors"
	"fmt"
)

// The errors of a store. A returned error wraps one of them and the driver's error.
var (
	// ErrUnavailable: the database could not be reached, was busy, or rolled the transaction back. A call that returned ErrUnavailable may
	// succeed later. If the reply to a commit was lost, a caller repeats the call to find out whether the call had an effect.
	ErrUnavailable = errors.New("durable: the database is not available")

	// ErrBadData: the database refused a value, so the same call will fail again. A caller that committed a batch finds the item with the
	// refused value by committing halves of the batch.
	ErrBadData = errors.New("the database refused a value")

	// ErrRejected: the database is available, but rejected a statement, and not because of an invalid value (see ErrBadData). For example, a
	// privilege or a table is missing, or a limit of the database was exceeded. A call that returned ErrRejected has written nothing, and
	// succeeds once the cause of the error is removed. Until then, other items of the batch may succeed in a batch of their own.
	ErrRejected = errors.New("durable: the database rejected a statement")

	// ErrLimit: a statement exceeded a limit of the database, such as the size of a row, because of a value or because of the load.
	// ErrLimit wraps ErrRejected.
	ErrLimit = fmt.Errorf("%w: a limit of the database was exceeded", ErrRejected)

	// ErrPermission: the database role lacks a privilege. ErrPermission wraps ErrRejected.
	ErrPermission = fmt.Errorf("%w: a privilege is missing", ErrRejected)

	// ErrLocked: another transaction has locked a row or a name that the call needs, and did not end in time. A call that returned
	// ErrLocked has written nothing. Other items of the batch may succeed in a batch of their own.
	ErrLocked = errors.New("durable: another transaction holds a row or a name that this call needs")

	// ErrInDoubt: the reply to the COMMIT of a transactional step was lost, and the store could not find out in time whether the database
	// has committed the step.
	ErrInDoubt = errors.New("durable: it is not known whether a transaction was committed")

	// ErrRestored: the database was restored to a state that is older than the cursor which the caller has passed.
	ErrRestored = errors.New("the database was restored to an earlier state")

	// ErrClosed: the store was closed.
	ErrClosed = errors.New("durable: the store is closed")

	// ErrMoved: the database file is no longer at the path where it was opened. The store has stopped, and the caller must open
	// a new store.
	ErrMoved = errors.New("durable: the database was deleted, moved or replaced while it was open")

	// ErrSchema: the database's schema does not have the version that this code needs.
	ErrSchema = errors.New("durable: the database's schema does not fit this version of durable")
)

// ContextError returns the error of a call that ended with its context ctx. The error wraps ctx.Err, for callers that check for
// context.Canceled or context.DeadlineExceeded, and context.Cause(ctx), which signal.NotifyContext, for example, sets.
func ContextError(ctx context.Context) error {
	cause := context.Cause(ctx)
	if errors.Is(cause, ctx.Err()) {
		return cause
	}
	return fmt.Errorf("%w: %w", ctx.Err(), cause)
}
