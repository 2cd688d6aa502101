package store

import (
	"time"

	"github.com/google/uuid"
)

// SetAwaitedChildEndsRequest sets how many children of one call must have ended before the end of a child wakes the run that made the call.
// Before the first SetAwaitedChildEndsRequest of a call, the end of a child does not wake the run.
//
// The checkpoint of the call counts the ended children whose OwnershipEnd has a CountingCall; the transaction that ends a child increases
// the count. The end of a child that makes the count reach EndsToAwait wakes the parent run, and so does each later end. An end of a child
// before the count reaches EndsToAwait does not mark a Running parent as woken. Such an early end makes a Waiting parent claimable only
// after MaxParentWakeDelay, so that the parent reads its children even if the count is wrong. If the call has no checkpoint, the end of
// each child wakes the parent.
//
// The count of ended children only decides when the parent run reads the rows of its children. The count of ended children may be too high,
// because a retried child ends twice, and a repeated batch counts its ends again. If a process other than a child's owner ends the child,
// the end is not counted and wakes the parent at once. To wait for its children, a parent run first calls SetAwaitedChildEnds with zero,
// and then reads which children have not ended. The parent then calls SetAwaitedChildEnds with the sum of CountedEnds and the number of
// children that have not ended. If CountedEnds has already reached the requested number, the parent starts again with zero.
type SetAwaitedChildEndsRequest struct {
	Run   uuid.UUID
	Epoch Epoch  // the run must be Running at this epoch
	Name  string // the name of the call; its step must have a row
	// EndsToAwait is how many children must have ended, by the count of the call, before the end of a child wakes the parent run. Zero
	// means that no end of a child wakes the parent.
	EndsToAwait int

	// Outcome is Written, or Fenced if the run is not Running at Epoch or the call has no checkpoint.
	Outcome     WriteOutcome
	CountedEnds int // how many ends have been counted since the step's row was written
}

// MaxParentWakeDelay is the longest time from the end of a child until its Waiting parent becomes claimable. The statement
// child_ends_count_and_wake_parents.sql contains the value of MaxParentWakeDelay too.
const MaxParentWakeDelay = time.Minute
