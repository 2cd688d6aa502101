package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Act is a change that a person has requested, as an event records it. Without an actor and a reason, there is no event, so the calls of
// programs, such as the signals of an application, write none.
//
// The event is written in the transaction of the change, and only if that changes anything. So a call whose result was lost can be
// repeated.
type Act struct {
	Actor  string
	Reason string
	At     time.Time // of the event
}

// IsRecorded reports whether an event records the act.
func (a *Act) IsRecorded() bool { return a.Actor != "" || a.Reason != "" }

// NoRun is the run of the events that concern no run: of EventQueueDeleted, EventLimitDeleted and EventScheduleDeleted.
var NoRun uuid.UUID

// Act returns the act that the events record.
func (o *ControlRequest) Act() Act { return Act{Actor: o.Actor, Reason: o.Reason, At: o.Now} }

// Events returns the events of a resume, unless nobody has given an actor or a reason: one for each run that was resumed, and for each of
// Runs that a paused ancestor still keeps paused. Other requests have only the events of their effects.
func (o *ControlRequest) Events(changes []ControlChange) (events []Event) {
	if act := o.Act(); o.Verb != VerbResume || o.ForRepair || !act.IsRecorded() {
		return nil
	}
	for i := range changes {
		if c := &changes[i]; c.Audit == AuditResume || slices.Contains(o.Runs, c.Before.UUID) {
			events = append(events, Event{Type: EventResumed, Run: c.Before.UUID})
		}
	}
	return events
}

// ActOfPause returns the act of the pause that the end of an ownership brings into effect, or an empty one if no request pauses the run.
// before are the control bits of the run, and by and reason what the request has recorded in its row.
func (w *OwnershipEnd) ActOfPause(before ControlBits, by, reason string) Act {
	if before&PausedMask == 0 || w.Status == Paused && !w.HoldsRun && by == "" {
		return Act{}
	}
	return Act{Actor: by, Reason: cmp.Or(reason, w.Reason)}
}

// TagsText returns the tags as the event of a change shows them, ordered by key. A tag that is removed has no value.
func TagsText(tags []Tag) string {
	last := make(map[string]string, len(tags))
	for _, tag := range tags {
		last[tag.Key] = tag.Value
	}
	texts := make([]string, 0, len(last))
	for key, value := range last {
		texts = append(texts, key+"="+value)
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// TimeText returns a time as events show it, or "" for none. The stores have the same text.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
