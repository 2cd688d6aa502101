package store

import (
	"time"

	"github.com/google/uuid"
)

// WorkerQuiet makes a worker quiet, or resumes it. A quiet worker claims no runs.
type WorkerQuiet struct {
	Worker uuid.UUID
	Resume bool
	Now    time.Time
	By     string
	Reason string
}

// LastChange returns the OperatorChange that is recorded for the request.
func (c WorkerQuiet) LastChange() OperatorChange {
	verb := OperatorQuiet
	if c.Resume {
		verb = OperatorResume
	}
	return OperatorChange{Verb: verb, At: c.Now, By: c.By, Reason: c.Reason}
}
