package store

import (
	"cmp"
	"slices"
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

// InOrder sorts checkpoints of one run in the order in which their calls began.
func InOrder(steps []Step) {
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
}

// Outline is what a run that has not ended waits for, and how far it got.
type Outline struct {
	Open    []Step // not terminal, or sleeping beyond now; ordered as by InOrder
	Choices []Step // recorded choices, ordered by name: they say which of Open nobody waits for any more
	Lost    Loss
	Maps    []MapProgress
	Tags    []Tag // ordered by key
}

// Loss is the last claim of a run whose lease had ended. The zero value: there was none.
type Loss struct {
	At     time.Time // of the claim
	Worker uuid.UUID // who had the lease
}

// Counts is how many runs of a tree are in which state.
type Counts struct {
	Runs    map[Status]int
	Delayed int          // Pending ones that have never been executed and are to begin later than now
	Open    map[Kind]int // checkpoints of live runs that are not terminal, or asleep beyond now
}

// MapProgress is how many of a Map's items have their outcome.
type MapProgress struct {
	Step Step // of KindMap; Output is the number of items
	Done int
}

// SignalCount is how many signals with one name wait for a run.
type SignalCount struct {
	Run  uuid.UUID
	Name string
	N    int
}

// EventType says what happened to a run. The numbers are stored, and no status has one of
// them: an event of a run that reached a status is 100 more than the status.
type EventType int16

// The events.
const (
	EventLeaseLost EventType = 1
	EventPaused    EventType = 104
	EventCompleted EventType = 105
	EventFailed    EventType = 106
	EventCancelled EventType = 107
	EventExpired   EventType = 109
)

// EventOf is the event of a run that reached the status, which is Paused or terminal. The
// statements in SQL add the same 100.
func EventOf(s Status) EventType { return EventType(s) + 100 }

// Event is one row of the outbox.
type Event struct {
	Cursor   string // of this event: Events answers those after it
	Type     EventType
	At       time.Time
	Run      uuid.UUID
	Name     string // of the run; empty if the run was removed since
	Child    bool   // the run has a parent
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
	// Deadlines are those of the runs whose deadline is another than the caller has said that it knows;
	// told again until it does.
	Deadlines []Lease
	// Ended are runs that were ended as Cancelled under their epoch, by a termination or by the
	// caller itself; told again as long as the caller asks for them.
	Ended []Lease
}

// Asked is a run of which something is asked, in the ownership that Epoch numbers.
type Asked struct {
	Run     uuid.UUID
	Epoch   Epoch
	Control Bits
}
