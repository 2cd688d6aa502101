package store

import (
	"time"

	"github.com/google/uuid"
)

// DeadlineChangeRequest sets or removes the deadline of a live run. The store marks a Running run as woken, so that the run's owner reads
// the new deadline before the run parks. A Waiting run becomes claimable when the new deadline comes, or at its present wake time if that
// is earlier.
//
// A DeadlineChangeRequest is Fenced if the run has ended or its cancel was requested. A DeadlineChangeRequest is also Fenced if the run's
// present deadline passed before Now, because the run may have begun to expire. A run whose deadline passed while the run was paused cannot
// have begun to expire, so its deadline can still be changed.
type DeadlineChangeRequest struct {
	Run         uuid.UUID
	NewDeadline time.Time // zero removes the deadline
	Now         time.Time
	// Timeout is the duration that ends at NewDeadline. If the run is repaired after it has ended, the new generation gets the whole
	// Timeout again.
	Timeout        time.Duration
	ActorAndReason ActorAndReason // an event records it, unless the run has the deadline already

	// Outcome is Written or Fenced. If Outcome is Fenced, RunState holds the state of the run.
	Outcome  WriteOutcome
	RunState RunState
}
