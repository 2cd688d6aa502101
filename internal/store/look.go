package store

import (
	"time"

	"github.com/google/uuid"
)

// Filter chooses runs. Zero fields choose all.
type Filter struct {
	Workflow      string
	Queue         string
	Statuses      []Status
	Tag           Tag // Value empty: any value; Key empty: no such condition
	NamePrefix    string
	CreatedAfter  time.Time // exclusive
	CreatedBefore time.Time // exclusive
	Roots         bool      // no children
}

// Outline is what a run that has not ended waits for, and how far it got.
type Outline struct {
	Open []Step // not terminal, or sleeping beyond now; ordered by name
	Maps []MapProgress
	Tags []Tag // ordered by key
}

// MapProgress is how many of a Map's items have their outcome.
type MapProgress struct {
	Step Step // of KindMap; Output is the number of items
	Done int
}

// EventType says what happened to a run. The numbers are stored; those of a state are
// the state's.
type EventType int16

// The events.
const (
	EventPaused    EventType = EventType(Paused)
	EventCompleted EventType = EventType(Completed)
	EventFailed    EventType = EventType(Failed)
	EventCancelled EventType = EventType(Cancelled)
	EventLeaseLost EventType = 8
)

// Event is one row of the outbox.
type Event struct {
	Cursor   string // of this event: Events answers those after it
	Type     EventType
	At       time.Time
	Run      uuid.UUID
	Name     string // of the run; empty if the run was removed since
	Workflow string
}

// Hint is what Attend may have heard.
type Hint uint8

// The hints.
const (
	HintClaim Hint = 1 // a run may be claimable
	HintNews  Hint = 2 // something was asked of a run of this worker, or woke it: see News
)

// News is what a worker has to know of the runs it executes.
type News struct {
	Asked []Asked     // something is asked of these; told again until they leave
	Woken []uuid.UUID // a signal or a child's end came for these since the last News
}

// Asked is a run of which something is asked, in the ownership that Epoch numbers.
type Asked struct {
	Run     uuid.UUID
	Epoch   Epoch
	Control Bits
}
