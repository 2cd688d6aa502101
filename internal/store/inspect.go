package store

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Filter selects runs. A field with its zero value does not restrict them.
type Filter struct {
	Workflow      string
	Queue         string
	Priorities    []int16
	GroupKey      string // with a Queue: selects runs whose place has this key
	Statuses      []Status
	Tag           Tag // an empty Value matches any value; an empty Key does not restrict the runs
	NamePrefix    string
	CreatedAfter  time.Time // exclusive
	CreatedBefore time.Time // exclusive
	Roots         bool      // selects only runs without a parent
	// Failure selects the Failed and Expired runs with this key. Without a Workflow it does not restrict the runs.
	Failure FailureKey
	UUIDs   []UUID // selects the runs with these UUIDs
	Parents []UUID // selects the children of these runs

	// OnlyHeld selects the runs that are held. The fields UUIDs, Parents, GroupKey and Failure are not considered together with it.
	OnlyHeld bool

	Version     string
	Owner       UUID      // selects the runs that this worker executes
	EndedAfter  time.Time // exclusive
	EndedBefore time.Time // exclusive
}

// UsesIndex reports whether an index leads to the runs that the filter selects, however many other runs there are.
func (f *Filter) UsesIndex() bool {
	return f.OnlyHeld || len(f.UUIDs)+len(f.Parents) > 0 || f.Failure.Workflow != "" || f.GroupKey != "" || f.Tag.Key != "" || f.NamePrefix != "" ||
		f.SelectsOnlyStatuses(Failed, Expired) || f.SelectsOnlyStatuses(Paused)
}

// SelectsOnlyStatuses reports whether the filter selects no runs with other statuses than these.
func (f *Filter) SelectsOnlyStatuses(these ...Status) bool {
	return len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, func(s Status) bool { return !slices.Contains(these, s) })
}

// SortByCallOrder sorts the checkpoints of one run by the order in which their calls began.
func SortByCallOrder(steps []Step) {
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
}

// SizedStep is a checkpoint whose Output may have been left out.
type SizedStep struct {
	Step
	OutputSize int // in bytes, as stored
}

// SortSizedByCallOrder is SortByCallOrder for sized checkpoints.
func SortSizedByCallOrder(steps []SizedStep) {
	slices.SortFunc(steps, func(a, b SizedStep) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
}

// RunProgress is what a run that has not ended waits for, its progress, its tags, and its last loss of a lease.
type RunProgress struct {
	OpenCalls     []Step // checkpoints that are not terminal, or sleep until after now; ordered as by SortByCallOrder
	Choices       []Step // recorded choices, ordered by name; the run no longer waits for Open checkpoints of branches that lost
	LastLeaseLoss LeaseLoss
	Timeout       time.Duration // the last one that a start or SetDeadline gave the run; zero: none
	Maps          []MapProgress
	Tags          []Tag // ordered by key
}

// LeaseLoss describes the last lost lease of a run. It is zero if no lease was lost.
type LeaseLoss struct {
	At     time.Time // when another worker claimed the run
	Worker uuid.UUID // the worker that had the lease
}

// TreeCounts summarizes a tree of runs.
type TreeCounts struct {
	RunsByStatus map[Status]int   // the number of runs with each status
	Delayed      int              // Pending runs that were never executed and start after now
	OpenCalls    map[StepKind]int // checkpoints of live runs that are not terminal, or sleep until after now
}

// Add adds n runs with the status, of which so many are delayed, or, if the status is zero, n open calls of the kind.
func (c *TreeCounts) Add(status Status, kind StepKind, n, delayed int) {
	if status == 0 {
		c.OpenCalls[kind] += n
		return
	}
	c.RunsByStatus[status] += n
	c.Delayed += delayed
}

// MapProgress tells how many items of a Map have completed or failed.
type MapProgress struct {
	Step Step // of KindMap; Output is the number of items
	Done int
}

// SignalCount is the number of signals of one name that wait for a run.
type SignalCount struct {
	Run   uuid.UUID
	Name  string
	Count int
}

// EventType tells what happened to a run. The numbers are stored. The event of a run that reached a
// status has the number of the status plus 100, so that no event has the number of a status.
type EventType int16

// The events.
const (
	EventLeaseLost       EventType = 1
	EventMovedToQueue    EventType = 2 // the run was given another queue
	EventPriorityChanged EventType = 3 // the run was given another priority
	EventRepaired        EventType = 4 // a repair made the next generation of the run
	EventDeleted         EventType = 5 // the run and its tree were deleted on request
	EventContinued       EventType = 6 // the run continued as its next generation, with a new input
	EventVersionChanged  EventType = 7 // a worker of another version of the code claimed the run, which had been executed before
	EventResumed         EventType = 8 // the run was resumed on request
	EventSignalled       EventType = 9 // a signal was sent to the run
	EventTagged          EventType = 10
	EventTimeoutSet      EventType = 11
	EventTriggered       EventType = 12 // the run was started by a trigger of a schedule
	EventBackfilled      EventType = 13 // the run was started by a backfill of a schedule
	EventQueueDeleted    EventType = 14 // it concerns no run; so do the next two
	EventLimitDeleted    EventType = 15
	EventScheduleDeleted EventType = 16
	EventPaused          EventType = 104
	EventCompleted       EventType = 105
	EventFailed          EventType = 106
	EventCancelled       EventType = 107
	EventExpired         EventType = 109
)

// EventTypeOfStatus returns the event for a run that reached the status, which is Paused or terminal. The SQL
// statements add the same 100.
func EventTypeOfStatus(s Status) EventType { return EventType(s) + 100 }

// Event is one row of the outbox.
type Event struct {
	Cursor   string // the argument with which Store.Events returns the events after this one
	Type     EventType
	At       time.Time
	Run      uuid.UUID
	Name     string // of the run; empty if the run was deleted since
	Child    bool   // the run has a parent
	Workflow string

	// Actor and Reason are those of the request. Events that no request has caused have none.
	//
	// Old and New are the queue, the priority, the version, the number of the generation, or the deadline (see TimeText), before and after
	// the change; of EventDeleted, the name of the run and the number of deleted runs. New alone is the name of the signal, the tags
	// (see TagsText), or the name of the schedule that started the run. Old alone is the name of the queue, limit or schedule that was
	// deleted. Other events have none.
	Actor, Reason, Old, New string
}

// WakeHint tells why Store.Listen calls its callback. A hint may be wrong.
type WakeHint uint8

// The hints.
const (
	HintClaim          WakeHint = 1  // a run may be claimable
	HintAdmitted       WakeHint = 4  // a run may be claimable, because an admission gave it a place
	HintQueues         WakeHint = 8  // a row of a queue was changed
	HintListenBegan    WakeHint = 16 // from now on, the hints arrive, unless the connection fails
	HintListenLost     WakeHint = 32 // from now on, hints may not arrive
	HintOwnedRunChange WakeHint = 2  // a run of this worker may have been paused, cancelled or woken: call Store.OwnedRunChanges
)

// OwnedRunChanges is the result of Store.OwnedRunChanges: the changes to the runs that a worker executes.
type OwnedRunChanges struct {
	Requests []PendingControl // runs whose pause or cancel is requested; repeated until they are released
	Woken    []uuid.UUID      // runs that a signal or the end of a child has woken since the last call
	// Deadlines has one lease for each run whose deadline is not the RunDeadline that the caller passed; its RunDeadline is the
	// current deadline. Each call returns it again, until the caller passes the current deadline.
	Deadlines []Lease
	// EndedLeases holds the caller's leases whose runs are now Cancelled at the epoch of the lease. Such a run was terminated, or
	// the caller itself has recorded its cancel. A lease is returned again in each call that passes the lease.
	EndedLeases []Lease
}

// PendingControl is a run with a requested pause or cancel, and the current epoch of the run.
type PendingControl struct {
	Run     uuid.UUID
	Epoch   Epoch
	Control ControlBits
}
