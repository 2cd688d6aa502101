package store

import (
	"errors"
	"fmt"
)

// The errors of a store. A returned error wraps one of them and the driver's error.
var (
	// ErrUnavailable: the database could not be reached, was busy, or rolled the transaction back.
	// The same call may succeed later. If the result of a commit was lost, repeating the call shows
	// whether it had an effect.
	ErrUnavailable = errors.New("durable: the database is not available")

	// ErrBadData: the database refused a value. The same call will fail again. A caller finds the item with that value
	// by committing halves of the batch.
	ErrBadData = errors.New("the database refused a value")

	// ErrRejected: the database is available, but rejected a statement for another reason than a
	// value; for example, a privilege or a table is missing. Nothing was written. The same call
	// succeeds when the cause is removed. Until then, other items may succeed in a batch of their
	// own.
	ErrRejected = errors.New("durable: the database rejected a statement")

	// ErrLimit: a statement exceeded a limit of the database. The cause may be a value, or the load
	// at that time. It wraps ErrRejected.
	ErrLimit = fmt.Errorf("%w: a limit of the database was exceeded", ErrRejected)

	// ErrPermission: a privilege is missing. It wraps ErrRejected.
	ErrPermission = fmt.Errorf("%w: a privilege is missing", ErrRejected)

	// ErrLocked: another transaction has locked a row or a name that the call needs, and did not end
	// in time. Nothing was written. Other items may succeed in a batch of their own.
	ErrLocked = errors.New("durable: another transaction holds a row or a name that this call needs")

	// ErrInDoubt: the reply to the COMMIT of a transactional step was lost, and whether it took effect could not
	// be found out in time.
	ErrInDoubt = errors.New("durable: it is not known whether a transaction was committed")

	// ErrRestored: the database was restored to a state before a cursor was returned.
	ErrRestored = errors.New("the database was restored to an earlier state")

	// ErrClosed: the store was closed.
	ErrClosed = errors.New("durable: the store is closed")

	// ErrMoved: the database file is no longer at the path where it was opened. The store has
	// stopped, and a new one has to be opened.
	ErrMoved = errors.New("durable: the database was deleted, moved or replaced while it was open")

	// ErrSchema: the database's schema does not have the version that this code needs.
	ErrSchema = errors.New("durable: the database's schema does not fit this version of durable")
)
