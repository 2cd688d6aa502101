package durable

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// OperatorChange is the last change that an operator made to a queue, a limit, a schedule or a worker with a method of
// [Engine]. OperatorChange records sets, resets, pauses, resumes, quiets and deletions. OperatorChange does not record
// declarations of code. Triggers and backfills are not recorded in an OperatorChange, but in the events of the runs that they
// start. A call that changes nothing, such as the pause of a paused queue, is not recorded.
//
// A deleted queue, limit or schedule has no LastChange. If the deletion of a queue, limit or schedule has a [Reason] or an
// [Actor], an [Event] records both, and the process that deletes it logs both at Info. If code still declares a deleted queue
// or schedule, [Engine.Queues] and [Engine.Schedules] may still return it, with the deletion as its LastChange.
type OperatorChange struct {
	Verb   Verb      // VerbSet, VerbReset, VerbPause, VerbResume, VerbQuiet or VerbDelete
	At     time.Time // by the database's clock
	By     string    // the [Actor] of the call
	Reason string    // the [Reason] of the call
}

func newOperatorChange(c *store.OperatorChange) *OperatorChange {
	if c == nil {
		return nil
	}
	return &OperatorChange{Verb: Verb(c.Verb), At: c.At, By: c.By, Reason: c.Reason}
}
