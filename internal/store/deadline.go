package store

import (
	"time"

	"github.com/google/uuid"
)

// Deadline sets when a live run expires, or that it does not. A run that is Running is
// marked as woken, so that its owner hears of it and none of its parks misses it; one that is
// Waiting becomes claimable at the deadline at the latest.
//
// It is refused for a run that has ended or is to be cancelled, and for one whose own deadline
// was over at Now: that may have begun to expire. A paused run may not have, if its deadline
// came after the pause.
type Deadline struct {
	Run uuid.UUID
	At  time.Time // zero: none
	Now time.Time

	// Outcome is Written, or Fenced (see State).
	Outcome Outcome
	State   RunState
}
