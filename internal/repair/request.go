package repair

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// RunToRepair is a run that is repaired. A plan does not change a RunToRepair.
type RunToRepair struct {
	Run        *store.Run    // with its error
	History    []store.Step  // in the order in which the calls began
	Children   []*store.Run  // whose parent is the run
	Generation int32         // the number of the present generation
	Timeout    time.Duration // of a run that has ended; zero: none

	// DivergedCalls has the names, as people see them, of the calls for which the run is held for drift.
	DivergedCalls []string

	// DroppedByRetry has the stored names of calls in History that the run does not have any more: the option RetryRun has dropped them, and
	// the run has not made them again. They are in History so that a repair can name them.
	DroppedByRetry map[string]bool
}

// Request tells what a repair does to one run.
type Request struct {
	From              string // the stored name of a call: it and all calls that began later are dropped
	FromEnd           bool   // all calls are kept
	InterruptsSteps   bool   // the repair takes a live run away from its worker
	HasPausedAncestor bool   // an ancestor of the run is paused
	Retries           int32  // of the new generation; see record.Renewal
	Now               time.Time
	Due               time.Time // when the next generation is due; the timeout of a run that had ended begins at this time; zero: now
	Nonce             uint32
}

// due returns when the next generation is due.
func (q *Request) due() time.Time {
	if q.Due.IsZero() {
		return q.Now
	}
	return q.Due
}

// Result is the plan of a repair for one run.
type Result struct {
	Repair           store.RunRepair
	Detail           record.RepairDetail
	ChildrenToCancel []uuid.UUID // live children to cancel
	ChildrenToRetry  []uuid.UUID // the children that have to be retried with the run; their calls wait for them again
}
