package store

import (
	"time"

	"github.com/google/uuid"
)

// SetWorkerQuietRequest makes a worker quiet, or resumes it. A quiet worker claims no runs.
type SetWorkerQuietRequest struct {
	Worker uuid.UUID
	Resume bool
	Now    time.Time
	Actor  string
	Reason string
}

// OperatorChange returns the OperatorChange that is recorded for the request.
func (c SetWorkerQuietRequest) OperatorChange() OperatorChange {
	verb := OperatorQuiet
	if c.Resume {
		verb = OperatorResume
	}
	return OperatorChange{Verb: verb, At: c.Now, By: c.Actor, Reason: c.Reason}
}
