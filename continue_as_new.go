package durable

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/seed8ec063be/durable/internal/engine"
)

// ErrContinueAsNew is wrapped by the error that [Ctx.ContinueAsNew] returns if the run can continue with the new input. Code
// that wraps the workflow function, such as a function that logs errors, can use ErrContinueAsNew to tell a continuation from a
// failure.
var ErrContinueAsNew = errors.New("durable: the run continues as new")

// ContinueAsNew returns an error that makes the run continue with a new input and an empty history, if the workflow function
// returns it:
//
//	return zero, c.ContinueAsNew(next)
//
// When a run continues as new, the execution that ends is kept as a generation of the run: see [Engine.Generations]. A run that
// loops forever should continue as new from time to time, because each execution reads the whole history of its generation. The
// argument in must be of the workflow's input type.
//
// A run that continues as new keeps its ID, its UUID, its tags, its place in its queue, its priority and the signals that it
// has not received. A [SignalKey] counts once for all generations. The [Timeout] of a run applies to all its generations
// together: ContinueAsNew does not move the run's deadline. The steps of the next generation get new idempotency keys, even if
// they have the same names as before. Detached children of the run continue. Callers that wait for the run get the result of
// its last generation only. A [Workflow.Start] with the ID of the run compares its input with the input of the run's first
// generation.
//
// The run continues as new only if the workflow function returns the error of ContinueAsNew, either as it is or wrapped. If the
// function returns an error of errors.Join, or another error that wraps several errors, the run fails with that error, so that
// no failure is lost. If the run is cancelled, or its Timeout is over, before the next generation has begun, the run ends and
// does not continue. A run that is paused before the next generation has begun continues when it is resumed.
//
// ContinueAsNew returns a [*StateError] if the run has registered compensations, or has not awaited the end of a child that is
// not [Detached]. ContinueAsNew returns [ErrInvalidConfig] for an input of another type, and [ErrNotEncodable] or
// [ErrPayloadTooLarge] for an input that cannot be recorded. Inside of a step or a branch, ContinueAsNew returns
// [ErrNestedStep]. If the run must end or leave the process, ContinueAsNew returns the same errors as every other durable call.
func (c *Ctx) ContinueAsNew(in any) error {
	s := c.callScope()
	if err := s.CheckContinueAsNew(); err != nil {
		return convertStateError(err)
	}
	input, err := s.EncodeContinueAsNewInput(in)
	if err != nil {
		return fmt.Errorf("continue run %q of workflow %q as new: %w", s.RunNameOrUUID(), s.Workflow(), err)
	}
	return &continueAsNewError{scope: s, input: input}
}

// continueAsNewError makes a run continue as new.
type continueAsNewError struct {
	scope *engine.Scope
	input []byte
}

func (e *continueAsNewError) Error() string {
	return fmt.Sprintf("%v: run %q; the workflow function has to return this error", ErrContinueAsNew, e.scope.RunNameOrUUID())
}

// Unwrap returns ErrContinueAsNew.
func (e *continueAsNewError) Unwrap() error { return ErrContinueAsNew }

// continueAsNewInput returns the input with which the run of the scope continues, because its function has returned err. It returns nil if
// the run does not continue.
func continueAsNewInput(err error, s *engine.Scope) []byte {
	for ; err != nil; err = errors.Unwrap(err) {
		if next, is := err.(*continueAsNewError); is { //nolint:errorlint // an error that wraps several does not count
			if !next.scope.IsSameExecution(s) {
				return nil
			}
			return next.input
		}
	}
	return nil
}

// encodeContinueAsNewInput encodes the input with which a run of the workflow continues as new.
func (w *Workflow[I, O]) encodeContinueAsNewInput(next any, maxPayload int) ([]byte, error) {
	in, is := next.(I)
	if !is && (next != nil || reflect.TypeFor[I]().Kind() != reflect.Interface) {
		return nil, fmt.Errorf("%w: the input is of type %v, and that of the workflow of type %v: pass a value of that type",
			ErrInvalidConfig, reflect.TypeOf(next), reflect.TypeFor[I]())
	}
	return encodeAndCheckDecodes(in, maxPayload)
}
