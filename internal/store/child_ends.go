package store

import (
	"time"

	"github.com/google/uuid"
)

// AwaitChildEndsRequest sets how many ends of the children of one call must be counted before an end wakes the run that made the call.
// Before the first AwaitChildEndsRequest of a call, no end wakes the run.
//
// The step of the call counts the ends of children with OwnershipEnd.CountingCall, in the transaction of each end. The end that makes
// the count reach EndsToAwait wakes the run, and so does each later end. An earlier end does not: a Running parent is not marked as
// woken, and a Waiting parent becomes claimable only after MaxParentWakeDelay, so that it reads its children even if the count is
// wrong. If the step of the call has no row, each end wakes the run.
//
// The count decides only when the run reads the rows of its children. It may be too high, because a child that is retried ends
// twice, and a batch that is repeated counts its ends again. It does not contain ends that another process than the owner of the
// child writes: these wake the run at once. So the run first calls AwaitChildEnds with zero, then reads which children have not
// ended, and then calls AwaitChildEnds with CountedEnds plus the number of these children. If CountedEnds has reached that number by then,
// the run starts again.
type AwaitChildEndsRequest struct {
	Run   uuid.UUID
	Epoch Epoch  // the run must be Running at this epoch
	Name  string // the name of the call; its step must have a row
	// EndsToAwait is how many ends must be counted before one of them wakes the run. Zero means that no end of a child wakes
	// the run.
	EndsToAwait int

	// Outcome is Written; or Fenced, if the run is not Running at Epoch, or the step has no row.
	Outcome     Outcome
	CountedEnds int // how many ends have been counted since the step's row was written
}

// MaxParentWakeDelay is how long after the end of a child its parent becomes claimable at the latest.
// run_count_child_ends.sql has the same value.
const MaxParentWakeDelay = time.Minute
