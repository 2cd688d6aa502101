package store

import (
	"time"

	"github.com/google/uuid"
)

// QuietWorkerRequest makes a worker quiet, or resumes it. A quiet worker claims no runs.
type QuietWorkerRequest struct {
	Worker uuid.UUID
	Resume bool
	Now    time.Time
	Actor  string
	Reason string
}

// LastChange returns the OperatorChange that is recorded for the request.
func (c QuietWorkerRequest) LastChange() OperatorChange {
	verb := OperatorQuiet
	if c.Resume {
		verb = OperatorResume
	}
	return OperatorChange{Verb: verb, At: c.Now, By: c.Actor, Reason: c.Reason}
}
