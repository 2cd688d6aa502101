package store

import "errors"

// Kinds of error a store answers with; it wraps the driver's error beneath.
var (
	// ErrUnavailable: the database could not be reached, was busy, or undid the
	// transaction. The same call may succeed later; the effect of a lost answer is
	// found by calling again.
	ErrUnavailable = errors.New("durable: the database is not available")

	// ErrBadData: the database refused a value. The same call will fail again; a
	// smaller batch tells which item it was.
	ErrBadData = errors.New("the database refused a value")

	// ErrClosed: the store was closed.
	ErrClosed = errors.New("durable: the store is closed")

	// ErrSchema: the schema in the database is not the one this code needs.
	ErrSchema = errors.New("durable: the database's schema does not fit this version of durable")
)
