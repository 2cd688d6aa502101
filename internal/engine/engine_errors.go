package engine

import (
	"errors"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/store"
)

// These errors are exported by the root package under the same names.
var (
	ErrSuspended     = errors.New("durable: the run is suspended in this process")
	ErrDuplicateStep = errors.New("durable: a step name was used twice")
	ErrDiverged      = errors.New("durable: the code diverged from the recorded history")
	ErrIDConflict    = errors.New("durable: the ID belongs to another start")
	ErrNotFound      = errors.New("durable: not found")
	ErrNestedStep    = errors.New("durable: a step was called inside a step")
	ErrCancelled     = errors.New("durable: cancelled")
	ErrTerminated    = errors.New("durable: terminated")
	ErrTimeout       = errors.New("durable: timed out")
	ErrRunning       = errors.New("durable: the engine is already running: call Run once, or make a second engine")
)

// ConflictError is an ErrIDConflict of a call that does not start a run but, for example, sends a signal. The text of a ConflictError says
// what conflicts.
type ConflictError struct{ Text string }

// Error returns the text.
func (e *ConflictError) Error() string { return e.Text }

// Unwrap returns ErrIDConflict.
func (e *ConflictError) Unwrap() error { return ErrIDConflict }

// These errors are the causes of suspensions. context.Cause returns them for the context of a run.
var (
	ErrShutdown         = errors.New("durable: this process is shutting down")
	ErrLeaseLost        = errors.New("durable: the run's lease was lost")
	ErrParked           = errors.New("durable: the run waits and has left memory")
	ErrPaused           = errors.New("durable: the run is paused")
	ErrHeld             = errors.New("durable: the run is held, until the database takes what it records, or the code fits its history")
	errFunctionReturned = errors.New("durable: the workflow function has returned")
)

// isStoreUnusable reports whether a write failed because this process can write nothing, for now or for good.
// The run is then suspended, and its function must not treat the error as a failure of its own.
func isStoreUnusable(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrClosed) || errors.Is(err, journal.ErrClosed)
}
