package durablecli

import (
	"context"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// The exit codes.
const (
	ExitDone           = 0   // the command succeeded
	ExitError          = 1   // an error that has no code of its own, or some runs of a bulk command were refused
	ExitUsage          = 2   // the arguments are invalid; nothing was done
	ExitNotFound       = 3   // there is no such run, step, graph, queue, limit or schedule
	ExitWorkflowFailed = 4   // the run that the command waited for did not complete
	ExitDatabase       = 5   // the database is not available, refuses the command, or has another schema
	ExitDiverged       = 6   // preflight and replay: the code does not fit some runs
	ExitInterrupted    = 130 // the command was interrupted
)

// commandError is an error of a command that was executed. Other errors come from parsing the arguments.
type commandError struct{ err error }

func (e *commandError) Error() string { return e.err.Error() }
func (e *commandError) Unwrap() error { return e.err }

var (
	errUsage          = errors.New("usage")
	errPartial        = errors.New("some runs were changed") // although an argument was invalid for others
	errWorkflowFailed = errors.New("the workflow failed")
	errDatabase       = errors.New("the database cannot be used")
	errSilent         = errors.New("the command has reported its failure")
)

// markedError is an error that has an exit code of its own, with an unchanged text.
type markedError struct{ mark, err error }

func (e *markedError) Error() string   { return e.err.Error() }
func (e *markedError) Unwrap() []error { return []error{e.mark, e.err} }

// newUsageError returns an error for invalid arguments.
func newUsageError(format string, args ...any) error {
	return &markedError{errUsage, fmt.Errorf(format, args...)}
}

// ExitCode returns the exit code for the error that the Execute of a command returned; 0 for nil.
func ExitCode(err error) int {
	is := func(targets ...error) bool {
		for _, target := range targets {
			if errors.Is(err, target) {
				return true
			}
		}
		return false
	}
	executed, access, owner, open := new(commandError), new(postgres.AccessError), new(postgres.UntrustedOwnerError), new(sqlite.OpenError)
	switch {
	case err == nil:
		return ExitDone
	case is(errPartial):
		return ExitError
	case !errors.As(err, &executed), is(errUsage):
		return ExitUsage
	case is(errWorkflowFailed):
		return ExitWorkflowFailed
	case is(errDiverged):
		return ExitDiverged
	case is(context.Canceled):
		return ExitInterrupted
	case is(errDatabase, durable.ErrUnavailable, durable.ErrRejected, durable.ErrLocked, durable.ErrPermission, durable.ErrSchema, durable.ErrMoved, durable.ErrClosed),
		errors.As(err, &access), errors.As(err, &owner), errors.As(err, &open):
		return ExitDatabase
	case is(durable.ErrNotFound, durable.ErrNoStep, durable.ErrNoGraph):
		return ExitNotFound
	case is(durable.ErrInvalidConfig, durable.ErrInvalidName, durable.ErrInvalidCursor, durable.ErrNotEncodable, durable.ErrValueType, durable.ErrFromRequired, durable.ErrInvalidToken):
		return ExitUsage
	}
	return ExitError
}
