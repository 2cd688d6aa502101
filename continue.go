package durable

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/seed8ec063be/durable/internal/engine"
)

// ErrContinueAsNew is wrapped by the error that [Ctx.ContinueAsNew] returns if the run can continue. Code that wraps the workflow
// function, such as a function that logs errors, can test for it to tell a continuation from a failure.
var ErrContinueAsNew = errors.New("durable: the run continues as new")

// ContinueAsNew returns an error that makes the run continue with a new input and an empty history, if the workflow function
// returns it:
//
//	return zero, c.ContinueAsNew(next)
//
// The execution that ends here is kept as a generation of the run: see [Engine.Generations]. A run that loops forever, or that
// handles one signal after the other, continues as new from time to time, because each execution reads the whole history of its
// generation. in must be of the workflow's input type.
//
// The run keeps its ID, its UUID, its tags, its place in its queue, its priority and the signals that it has not received. A
// [SignalKey] counts once for all generations. [Timeout] is for all generations together: the run's deadline does not move. Steps
// of the next generation have idempotency keys of their own, also if their names are the same. Detached children continue.
// Callers that wait for the run get the result of the last generation, and [Workflow.Start] with the run's ID compares the input
// with that of the first one.
//
// The run continues only if the function returns this error, either as it is or wrapped. If the function returns an error that
// wraps several errors, as errors.Join returns, the run fails with that error, so that no failure is lost. A cancel, a pause or a
// timeout before the next generation has begun takes effect as at any other end: the run then does not continue, or continues
// when it is resumed.
//
// ContinueAsNew returns a [*StateError] if the run has registered compensations, or has started children that are not [Detached]
// and whose ends it has not awaited. It returns [ErrInvalidConfig] for a value of another type, and [ErrNotEncodable] or
// [ErrPayloadTooLarge] for one that cannot be recorded; [ErrNestedStep] inside of a step or a branch; and the errors of every
// durable call if the run must end or leave the process.
func (c *Ctx) ContinueAsNew(in any) error {
	s := c.callScope()
	if err := s.CheckContinueAsNew(); err != nil {
		return convertStateError(err)
	}
	input, err := s.EncodeInput(in)
	if err != nil {
		return fmt.Errorf("continue run %q of workflow %q as new: %w", s.Address(), s.Workflow(), err)
	}
	return &continueError{scope: s, input: input}
}

// continueError makes a run continue as new.
type continueError struct {
	scope *engine.Scope
	input []byte
}

func (e *continueError) Error() string {
	return fmt.Sprintf("%v: run %q; the workflow function has to return this error", ErrContinueAsNew, e.scope.Address())
}

// Unwrap returns ErrContinueAsNew.
func (e *continueError) Unwrap() error { return ErrContinueAsNew }

// continueInput returns the input with which the run of the scope continues, because its function has returned err. It returns nil if
// the run does not continue.
func continueInput(err error, s *engine.Scope) []byte {
	for ; err != nil; err = errors.Unwrap(err) {
		if next, is := err.(*continueError); is { //nolint:errorlint // an error that wraps several does not count
			if !next.scope.IsSameExecution(s) {
				return nil
			}
			return next.input
		}
	}
	return nil
}

// encodeNextInput encodes the input with which a run of the workflow continues as new.
func (w *Workflow[I, O]) encodeNextInput(next any, maxPayload int) ([]byte, error) {
	in, is := next.(I)
	if !is && (next != nil || reflect.TypeFor[I]().Kind() != reflect.Interface) {
		return nil, fmt.Errorf("%w: the input is of type %v, and that of the workflow of type %v: pass a value of that type",
			ErrInvalidConfig, reflect.TypeOf(next), reflect.TypeFor[I]())
	}
	return encodeDecodable(in, maxPayload)
}
