package store

import (
	"time"

	"github.com/google/uuid"
)

// SetWorkerQuietRequest makes a worker quiet, or resumes a quiet worker. A quiet worker claims no runs.
type SetWorkerQuietRequest struct {
	Worker uuid.UUID
	Resume bool
	Now    time.Time
	Actor  string
	Reason string
}

// OperatorChange returns the OperatorChange that the store records when the worker is made quiet or is resumed.
func (c SetWorkerQuietRequest) OperatorChange() OperatorChange {
	verb := OperatorQuiet
	if c.Resume {
		verb = OperatorResume
	}
	return OperatorChange{Verb: verb, At: c.Now, By: c.Actor, Reason: c.Reason}
}
