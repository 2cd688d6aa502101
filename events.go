package durable

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
)

// EventType is the type of an event.
type EventType string

// The types of events.
const (
	EventPaused          EventType = "paused"
	EventCompleted       EventType = "completed"
	EventFailed          EventType = "failed"
	EventCancelled       EventType = "cancelled"
	EventExpired         EventType = "expired"
	EventLeaseLost       EventType = "lease_lost" // another worker took the run over
	EventMovedToQueue    EventType = "moved"      // Engine.MoveToQueue gave the run another queue
	EventPriorityChanged EventType = "priority"   // Engine.SetPriority gave the run another priority
	EventRepaired        EventType = "repaired"   // a repair made the next generation of the run, or Engine.Fork made the run
	EventContinued       EventType = "continued"  // the next generation of the run began, with a new input; see Ctx.ContinueAsNew
	// EventVersionChanged is written when the version of the code ([Config.Version]) that executes the run changes. The
	// EventVersionChanged events of a run, and [RunInfo.Version], show which version executed which part of the run.
	EventVersionChanged EventType = "version_changed"

	EventDeleted EventType = "deleted" // Engine.Delete deleted the run; ID and RunID are both its UUID

	// EventResumed and the types up to EventBackfilled show what people have done to a run. An event of one of these types is
	// only written for a call with an [Actor] or a [Reason].
	EventResumed    EventType = "resumed"
	EventSignalled  EventType = "signalled"  // Engine.Signal or Engine.Complete; New is the name of the signal or of the wait
	EventTagged     EventType = "tagged"     // Engine.SetTags; New has the tags, as in "team.owner=ann, team.late=", where a removed tag has no value
	EventTimeoutSet EventType = "timeout"    // Engine.SetTimeout; Old and New are the deadlines before and after, in UTC, or empty for none
	EventTriggered  EventType = "triggered"  // Engine.TriggerSchedule started the run; New is the schedule
	EventBackfilled EventType = "backfilled" // Engine.Backfill started the run; New is the schedule

	// EventQueueDeleted, EventLimitDeleted and EventScheduleDeleted are written for a deletion with an Actor or a Reason. The
	// ID of an EventQueueDeleted, EventLimitDeleted or EventScheduleDeleted is the name of the queue, limit or schedule, and
	// its RunID is empty.
	EventQueueDeleted    EventType = "queue_deleted"
	EventLimitDeleted    EventType = "limit_deleted"
	EventScheduleDeleted EventType = "schedule_deleted" // not written for a schedule that code declares; see ScheduleInfo.LastChange instead
)

var eventTypes = map[store.EventType]EventType{
	store.EventPaused: EventPaused, store.EventCompleted: EventCompleted, store.EventFailed: EventFailed,
	store.EventCancelled: EventCancelled, store.EventExpired: EventExpired, store.EventLeaseLost: EventLeaseLost,
	store.EventMovedToQueue: EventMovedToQueue, store.EventPriorityChanged: EventPriorityChanged,
	store.EventRepaired: EventRepaired, store.EventDeleted: EventDeleted, store.EventContinued: EventContinued, store.EventVersionChanged: EventVersionChanged,
	store.EventResumed: EventResumed, store.EventSignalled: EventSignalled, store.EventTagged: EventTagged, store.EventTimeoutSet: EventTimeoutSet,
	store.EventTriggered: EventTriggered, store.EventBackfilled: EventBackfilled,
	store.EventQueueDeleted: EventQueueDeleted, store.EventLimitDeleted: EventLimitDeleted, store.EventScheduleDeleted: EventScheduleDeleted,
}

// Event is the record of a change of a run, or of the deletion of a queue, a limit or a schedule. An Event is written in the
// transaction that makes the change.
type Event struct {
	Cursor   string // the position of the event: pass Cursor to Events or WatchEvents to continue after this event
	Type     EventType
	At       time.Time
	ID       string // the ID that addresses the run: the caller's ID of a root run, or the UUID of a child
	RunID    string // the run's UUID
	Name     string // the name of the call that started a child, with its scope
	Workflow string

	// Actor and Reason are the [Actor] and the [Reason] of the call that has requested the change, if the call had any. For an
	// EventPaused and an EventCancelled, Actor and Reason come from the call that requested the pause or the cancel. The time
	// of a requested pause is in [RunInfo.PausedAt], and the time of a requested cancel in [RunInfo.Cancellation].
	//
	// The meaning of Old and New depends on the type of the event. The comments of some types describe it. For these types, it
	// is:
	//
	//   - EventPaused: if the run was paused because it was held or because its processes died, New is the reason, as in
	//     [RunInfo.Reason]. If somebody requested the pause, New is empty, and Reason is the reason of the request.
	//   - EventMovedToQueue: Old and New are the queue before and after the change.
	//   - EventPriorityChanged: Old and New are the priority before and after the change.
	//   - EventVersionChanged: Old and New are the version before and after the change.
	//   - EventRepaired and EventContinued: Old and New are the number of the generation before and after the change. If
	//     Engine.Fork created the run, Old is the UUID of the forked run.
	//   - EventDeleted: Old is the ID of the deleted run, and New is the number of deleted runs, descendants included.
	Actor, Reason, Old, New string
}

// Events returns a page of the events after p.Cursor, which is the [Event.Cursor] of an earlier event, the oldest first. With
// an empty cursor, Events starts at the first event. Once Events has returned an event, no other event is added before it. On
// PostgreSQL, an open transaction that writes therefore delays all later events until the transaction ends.
//
// A cursor stays valid when the oldest events are deleted. Events returns [ErrInvalidCursor] for a cursor whose event is gone
// while older events exist. ErrInvalidCursor means that the database was restored, or that a standby that lagged behind was
// promoted, so that events may have been lost. Events returns [ErrInvalidConfig] for a limit that is not from 0 to 1000.
func (e *Engine) Events(ctx context.Context, p Page) ([]Event, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	limit, err := p.entryLimit()
	if err != nil {
		return nil, err
	}
	after := p.Cursor
	rows, err := e.inner.Store().Events(ctx, after, limit)
	switch {
	case errors.Is(err, store.ErrRestored):
		return nil, fmt.Errorf("%w: %.60q: its event is missing, and older events exist: a standby that was behind was promoted, or the database was restored to an earlier state; continue from an earlier cursor, or from an empty one", ErrInvalidCursor, after)
	case errors.Is(err, store.ErrBadData):
		return nil, fmt.Errorf("%w: %.40q: pass the Cursor of an Event of this database", ErrInvalidCursor, after)
	case err != nil:
		return nil, fmt.Errorf("read events: %w", err)
	}
	return toPublicEvents(rows), nil
}

// LatestEvents returns a page of the events before p.Cursor, which is the [Event.Cursor] of an event, the newest first. With an
// empty cursor, LatestEvents starts at the newest event that [Engine.Events] can return. LatestEvents returns
// [ErrInvalidCursor] for a text that is no cursor, and [ErrInvalidConfig] for a limit that is not from 0 to 1000.
func (e *Engine) LatestEvents(ctx context.Context, p Page) ([]Event, error) {
	if err := e.checkUsable(ctx); err != nil {
		return nil, fmt.Errorf("read events: %w", err)
	}
	limit, err := p.entryLimit()
	if err != nil {
		return nil, err
	}
	rows, err := e.inner.Store().EventsBefore(ctx, p.Cursor, limit)
	switch {
	case errors.Is(err, store.ErrBadData):
		return nil, fmt.Errorf("%w: %.40q: pass the Cursor of an Event of this database", ErrInvalidCursor, p.Cursor)
	case err != nil:
		return nil, fmt.Errorf("read events: %w", err)
	}
	return toPublicEvents(rows), nil
}

func toPublicEvents(rows []store.Event) []Event {
	events := make([]Event, len(rows))
	for i, r := range rows {
		events[i] = Event{
			Cursor: r.Cursor, Type: eventTypes[r.Type], At: r.At, ID: r.RunNameOrUUID(), RunID: r.Run.String(), Workflow: r.Workflow,
			Actor: r.Actor, Reason: r.Reason, Old: r.OldValue, New: r.NewValue,
		}
		switch {
		case r.IsChild:
			events[i].Name = naming.Display(r.Name)
		case r.Run == store.NoRun:
			events[i].ID, events[i].RunID, events[i].Old = r.OldValue, "", ""
		}
		if r.Type == store.EventSignalled {
			events[i].New = naming.DisplaySignal(r.NewValue)
		}
	}
	return events
}

const (
	firstWatchDelay = 10 * time.Millisecond
	maxWatchDelay   = 500 * time.Millisecond
)

// WatchEvents returns the events after the cursor, and waits for further events until ctx ends. When ctx has ended, WatchEvents
// yields an error that wraps ctx.Err() and the cause of the context's end as its last error. WatchEvents retries while the
// database is not available.
//
//	for event, err := range engine.WatchEvents(ctx, cursor) {
//		if err != nil { return err }
//		handle(event)
//		cursor = event.Cursor // keep it where handle keeps its results
//	}
func (e *Engine) WatchEvents(ctx context.Context, after string) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		wait := firstWatchDelay
		for {
			events, err := e.Events(ctx, Page{Cursor: after, Limit: maxPageLimit})
			if err != nil && (isNil(ctx) || ctx.Err() == nil) && !errors.Is(err, ErrUnavailable) {
				yield(Event{}, err)
				return
			}
			for _, event := range events {
				if !yield(event, nil) {
					return
				}
				after = event.Cursor
			}
			if len(events) > 0 {
				wait = firstWatchDelay
			}
			t := time.NewTimer(wait/2 + rand.N(wait))
			wait = min(2*wait, maxWatchDelay)
			select {
			case <-t.C:
			case <-ctx.Done():
				t.Stop()
				yield(Event{}, store.ContextError(ctx))
				return
			}
		}
	}
}
