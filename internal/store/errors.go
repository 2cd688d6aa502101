package store

import (
	"errors"
	"fmt"
)

// Kinds of error a store answers with; it wraps the driver's error beneath.
var (
	// ErrUnavailable: the database could not be reached, was busy, or undid the
	// transaction. The same call may succeed later; the effect of a lost answer is
	// found by calling again.
	ErrUnavailable = errors.New("durable: the database is not available")

	// ErrBadData: the database refused a value, and the value is certainly the cause. The
	// same call will fail again; a smaller batch tells which item it was.
	ErrBadData = errors.New("the database refused a value")

	// ErrRejected: the database rejected a statement, and neither its absence nor a value is
	// the cause: a privilege or a table is missing, say. Nothing was written. The same call
	// succeeds once somebody has mended that; until then a smaller batch may spare others.
	ErrRejected = errors.New("durable: the database rejected a statement")

	// ErrLimit: a statement exceeded a limit of the database. The cause may be one value, or
	// what else happened at that time. It is an ErrRejected.
	ErrLimit = fmt.Errorf("%w: a limit of the database was exceeded", ErrRejected)

	// ErrPermission: a privilege is missing. It is an ErrRejected.
	ErrPermission = fmt.Errorf("%w: a privilege is missing", ErrRejected)

	// ErrLocked: another transaction holds a row or a name that the call needs, and did not
	// end in time. Nothing was written. A smaller batch spares others the wait.
	ErrLocked = errors.New("durable: another transaction holds a row or a name that this call needs")

	// ErrInDoubt: the reply to the COMMIT of a transactional step was lost, and whether it took effect could not
	// be found out in time.
	ErrInDoubt = errors.New("durable: it is not known whether a transaction was committed")

	// ErrRestored: a cursor is of a later state of the database than the one that it is in now.
	ErrRestored = errors.New("the database was restored to an earlier state")

	// ErrClosed: the store was closed.
	ErrClosed = errors.New("durable: the store is closed")

	// ErrMoved: the database is no longer where it was opened. The store has stopped for good.
	ErrMoved = errors.New("durable: the database was deleted, moved or replaced while it was open")

	// ErrSchema: the schema in the database is not the one this code needs.
	ErrSchema = errors.New("durable: the database's schema does not fit this version of durable")
)
