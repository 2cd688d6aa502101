package store

import (
	"time"

	"github.com/google/uuid"
)

// AwaitedChildEnds sets when the ends of the children of one call wake the run that made the call. Before, none of them does.
//
// The end of a child with OwnershipEnd.CountedBy is added up in the step of that call, in the transaction of the end. An end after
// which at least Awaited ends are counted wakes the run. Another one does not: a Running parent is not marked as woken, and a Waiting
// parent becomes claimable only after MaxChildEndAge, so that it looks at its children even if the count is wrong. If the step of
// the call has no row, each end wakes the run.
//
// The count only says when to read the rows of the children. It may be too high, because a child that is retried ends twice, and a
// batch that is repeated counts its ends again. It may be too low by the ends that others than the owner of a child write: these wake
// the run at once. So the run first calls AwaitChildEnds with zero, then reads which children have not ended, and then calls
// AwaitChildEnds with Counted plus the number of those. If Counted has reached that by then, it starts again.
type AwaitedChildEnds struct {
	Run   uuid.UUID
	Epoch Epoch  // the run must be Running at this epoch
	Name  string // the name of the call; its step must have a row
	// Awaited is how many ends must be counted before one of them wakes the run. Zero: none wakes it.
	Awaited int

	// Outcome is Written; or Fenced, if the run is not Running at Epoch, or the step has no row.
	Outcome Outcome
	Counted int // how many ends have been counted since the step's row was written
}

// MaxChildEndAge is how long after the end of a child its parent becomes claimable at the latest.
// run_count_child_ends.sql has the same value.
const MaxChildEndAge = time.Minute
