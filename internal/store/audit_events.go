package store

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// ActorAndReason holds the actor, the reason and the time of a change that a person requests. A change with neither an actor nor a reason,
// such as a signal that an application sends, writes no event.
//
// A store writes the event of a person's change in the transaction of the change, and only if the change has an effect. A repeated request
// therefore writes no second event.
type ActorAndReason struct {
	Actor  string
	Reason string
	At     time.Time // of the event
}

// HasActorOrReason reports whether a store records an event for the change, because the change has an actor or a reason.
func (a *ActorAndReason) HasActorOrReason() bool { return a.Actor != "" || a.Reason != "" }

// NoRun is the run ID of events that concern no run: EventQueueDeleted, EventLimitDeleted and EventScheduleDeleted.
var NoRun uuid.UUID

// ActorAndReason returns the actor, the reason and the time of the request, which events record.
func (o *ControlRequest) ActorAndReason() ActorAndReason {
	return ActorAndReason{Actor: o.Actor, Reason: o.Reason, At: o.Now}
}

// ActorEvents returns the events of the request that do not accompany a change of a run's status. It returns nil for a request with neither
// an actor nor a reason, and for a request of a repair.
//
// For a resume, ActorEvents returns one event for each run that the request has resumed, and for each run in Runs that a paused ancestor
// still keeps paused. For a pause, it returns one event for each run that was paused already, such as a run that is held, and that now has
// the actor and the reason of the request.
func (o *ControlRequest) ActorEvents(changes []ControlChange) (events []Event) {
	if act := o.ActorAndReason(); o.ForRepair || !act.HasActorOrReason() {
		return nil
	}
	for i := range changes {
		c := &changes[i]
		switch {
		case o.Verb == VerbResume && (c.AuditColumns == AuditColumnsClearPause || slices.Contains(o.Runs, c.Before.UUID)):
			events = append(events, Event{Type: EventResumed, Run: c.Before.UUID})
		case o.Verb == VerbPause && c.AuditColumns == AuditColumnsSetPause && c.Before.Status == Paused:
			events = append(events, Event{Type: EventPaused, Run: c.Before.UUID})
		}
	}
	return events
}

// PauseActorAndReason returns who requested the pause of a run, and the reason of the pause. A pause that is requested while a worker owns
// the run takes effect when the worker releases the run. PauseActorAndReason returns an empty value if no request pauses the run. The
// argument before has the control bits of the run. The arguments by and reason are the actor and the reason of the pause, as the run's row
// holds them.
func (w *OwnershipEnd) PauseActorAndReason(before ControlBits, by, reason string) ActorAndReason {
	if before&PausedMask == 0 || w.Status == Paused && !w.HoldsRun && by == "" {
		return ActorAndReason{}
	}
	return ActorAndReason{Actor: by, Reason: cmp.Or(reason, w.HoldReason)}
}

// TagsText returns the changed tags, ordered by key, as the text that an event shows. In the text of TagsText, a removed tag has an empty
// value.
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

// TimeText returns a time in the text form that events show, or "" for the zero time. The SQL statements of the stores format times in the
// same way as TimeText.
func TimeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format("2006-01-02T15:04:05.000000Z")
}
