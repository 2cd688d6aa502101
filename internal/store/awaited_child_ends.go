package store

import (
	"time"

	"github.com/google/uuid"
)

// SetAwaitedChildEndsRequest sets how many ends of the children of one call a store must count before an end wakes the run that made
// the call. Before the first SetAwaitedChildEndsRequest of a call, no end wakes the run.
//
// The step of the call counts the ends of children that have an OwnershipEnd.CountingCall, in the transaction of each end. The
// end that makes the count reach EndsToAwait wakes the run, and so does each further end. An end before the count reaches
// EndsToAwait does not mark a Running parent as woken. The same end makes a Waiting parent claimable only after
// MaxParentWakeDelay, so that the parent reads its children even if the count is wrong. If the step of the call has no row,
// each end wakes the run.
//
// The count only decides when the run reads the rows of its children. The count may be too high, because a retried child ends
// twice, and a repeated batch counts its ends again. The count does not contain the ends of children that a process other than
// the child's owner writes: such ends wake the run at once. The run first calls SetAwaitedChildEnds with zero, and then reads which
// children have not ended. Then the run calls SetAwaitedChildEnds with CountedEnds plus the number of these children. If CountedEnds
// has already reached the requested number, the run repeats the procedure.
type SetAwaitedChildEndsRequest struct {
	Run   uuid.UUID
	Epoch Epoch  // the run must be Running at this epoch
	Name  string // the name of the call; its step must have a row
	// EndsToAwait is how many ends of children must be counted before an end wakes the run. Zero means that no end of a child
	// wakes the run.
	EndsToAwait int

	// Outcome is Written; or Fenced, if the run is not Running at Epoch, or the step has no row.
	Outcome     WriteOutcome
	CountedEnds int // how many ends have been counted since the step's row was written
}

// MaxParentWakeDelay is the longest time from the end of a child until its Waiting parent becomes claimable. The statement
// child_ends_count_and_wake_parents.sql has the same value.
const MaxParentWakeDelay = time.Minute
