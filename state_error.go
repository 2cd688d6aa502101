package durable

import (
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/engine"
)

// StateError is returned when a run's state does not allow the operation. A StateError wraps [ErrState].
type StateError struct {
	ID     string // the run's ID, as the caller gave it
	Verb   Verb   // the operation that the state does not allow
	Status Status
	Detail string // the state of the run in words, including a pause or cancel that was already requested
}

// Error returns a text with the operation, the run and its state.
func (e *StateError) Error() string {
	return fmt.Sprintf("cannot %s run %q: it is %s", e.Verb, e.ID, e.Detail)
}

// Unwrap returns [ErrState].
func (e *StateError) Unwrap() error { return ErrState }

// convertStateError converts the engine's StateError to the public one, and returns other errors unchanged.
func convertStateError(err error) error {
	var inner *engine.StateError
	if errors.As(err, &inner) {
		return &StateError{ID: inner.Ref, Verb: Verb(inner.Verb), Status: Status(inner.Status.String()), Detail: inner.State()}
	}
	return err
}
