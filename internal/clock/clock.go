// Package clock tells the time of the database.
//
// The engine gets a [Clock] injected. There are two: an [Estimate] of the database's clock for production,
// and [FromManualClock] for tests that move the time themselves. The package imports no other package of this
// module.
package clock

import (
	"context"
	"time"
)

// Clock tells the time that all processes of one database share. EnsureReading or AddReading must be called before the
// first call of another method. All methods may be called concurrently.
type Clock interface {
	// EnsureReading makes the time known. It reads the database's clock from r if nobody has read it yet, or for a minute.
	EnsureReading(ctx context.Context, r Reader) error
	// AddReading stores a reading of the database's clock. The query was sent at the local time asked.
	AddReading(database, asked time.Time)

	// Now returns the time in UTC, in whole microseconds, which is the resolution of the databases.
	Now() time.Time
	// MaxError returns by how much Now may be wrong.
	MaxError() time.Duration
	// Until returns how long it is until t, or zero if t has certainly passed. It adds the doubt, so that a
	// timer is late rather than early.
	Until(t time.Time) time.Duration

	// CallAt calls f when the time t has come. f must not block.
	CallAt(t time.Time, f func()) Timer
	// AfterFunc calls f after d has passed. f must not block.
	AfterFunc(d time.Duration, f func()) ResettableTimer

	// RowTimeOverride returns the time to write into a row whose time the database otherwise sets. The zero time
	// means that the database sets it.
	RowTimeOverride() time.Time
	// IsManual reports whether a test moves the clock. Then no time passes on its own, only one process uses
	// the database, and the test decides when runs are parked.
	IsManual() bool
}

// Reader is a database whose clock can be read.
type Reader interface {
	Now(ctx context.Context) (time.Time, error)
}

// Timer is a scheduled call of a function, like the [time.Timer] that [time.AfterFunc] returns.
type Timer interface {
	// Stop prevents the call. It reports false if the function was called, or the timer was stopped before.
	Stop() bool
}

// NoTimer is a Timer that calls nothing.
type NoTimer struct{}

// Stop implements Timer. It reports false.
func (NoTimer) Stop() bool { return false }

// ResettableTimer is a Timer that can be used again.
type ResettableTimer interface {
	Timer
	// Reset schedules the function again, after d. It reports whether the timer was active.
	Reset(d time.Duration) bool
}
