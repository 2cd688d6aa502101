package store

import (
	"time"

	"github.com/google/uuid"
)

// DeadlineChangeRequest sets or removes the deadline of a live run. A Running run is marked as woken, so that its
// owner reads the deadline before the run parks. A Waiting run becomes claimable at the deadline at
// the latest.
//
// It is Fenced for a run that has ended or whose cancel was requested. It is also Fenced if the run's present deadline passed
// before Now, because the run may have begun to expire. A paused run whose deadline passed after the pause cannot have begun to
// expire, so its deadline can be changed.
type DeadlineChangeRequest struct {
	Run uuid.UUID
	At  time.Time // zero removes the deadline
	Now time.Time
	// Timeout is the duration that ends at At. A repair of the run after its end begins it anew.
	Timeout time.Duration
	Act     Act // an event records it, unless the run has the deadline already

	// Outcome is Written or Fenced. If it is Fenced, RunState holds the state of the run.
	Outcome  Outcome
	RunState RunState
}
