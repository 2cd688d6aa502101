package store

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"
)

// Filter selects runs that match all its fields. A field of Filter with its zero value does not restrict the runs.
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
	OnlyRoots     bool      // selects only runs without a parent
	// Failure selects the Failed and Expired runs whose failure has this key. If Failure.Workflow is empty, Failure does not restrict the
	// runs.
	Failure FailureKey
	UUIDs   []UUID // selects the runs with these UUIDs
	Parents []UUID // selects the children of these runs, including those of superseded generations

	// OnlyHeld selects the runs that are held. If OnlyHeld is set, the fields UUIDs, Parents, GroupKey and Failure of Filter are ignored.
	OnlyHeld bool

	Version     string
	Owner       UUID      // selects the runs that this worker executes
	EndedAfter  time.Time // exclusive
	EndedBefore time.Time // exclusive
}

// UsesIndex reports whether a store finds the runs that the filter selects with an index, or some more runs, of which it leaves out those that do
// not match the other conditions of the filter.
func (f *Filter) UsesIndex() bool {
	return f.SelectsFewRuns() || f.Owner != (UUID{}) || f.Failure.Workflow != "" || f.Tag.Key != "" || f.NamePrefix != "" ||
		f.SelectsOnlyStatuses(Paused, Failed, Expired)
}

// SelectsFewRuns reports whether the filter has a condition that few runs match, and for which there is an index.
func (f *Filter) SelectsFewRuns() bool {
	return f.OnlyHeld || len(f.UUIDs)+len(f.Parents) > 0 || f.GroupKey != ""
}

// IsOrderedIndexRange reports whether an index has the runs that the filter selects, and no others, in the order of their UUIDs.
func (f *Filter) IsOrderedIndexRange() bool {
	g := *f
	switch {
	case g.Failure.Workflow != "" && (g.Workflow == "" || g.Workflow == g.Failure.Workflow):
		g.Workflow, g.Failure = "", FailureKey{}
	case g.Tag.Value != "":
		g.Tag = Tag{}
	case g.SelectsOnlyStatuses(Paused, Failed, Expired):
		g.Statuses = nil
	}
	return !g.hasConditions()
}

// hasConditions reports whether the filter restricts the runs in any way.
func (f *Filter) hasConditions() bool {
	return f.UsesIndex() || f.Workflow != "" || f.Queue != "" || f.Version != "" || len(f.Statuses)+len(f.Priorities) > 0 || f.OnlyRoots ||
		!f.EndedAfter.IsZero() || !f.EndedBefore.IsZero() || !f.CreatedAfter.IsZero() || !f.CreatedBefore.IsZero()
}

// maxUUIDTimeDeviation bounds by how much the time in the UUID of a run differs from the time of its creation, and the clocks of two servers from each
// other. The UUID of a child whose parent's UUID is in the future has the time of its parent.
const maxUUIDTimeDeviation = time.Hour

// UUIDRange returns the range of the UUIDs of the runs that the filter selects and that are lower than before (zero: of all runs): from the first
// UUID up to, and without, the second. A run ends after its creation.
func (f *Filter) UUIDRange(before UUID) (from, below UUID) {
	if below = before; below == (UUID{}) {
		below = UUID(bytes.Repeat([]byte{0xff}, len(below)))
	}
	for _, at := range []time.Time{f.CreatedBefore, f.EndedBefore} {
		if !at.IsZero() {
			if id := FirstUUIDAt(at.Add(maxUUIDTimeDeviation)); bytes.Compare(id[:], below[:]) < 0 {
				below = id
			}
		}
	}
	if !f.CreatedAfter.IsZero() {
		from = FirstUUIDAt(f.CreatedAfter.Add(-maxUUIDTimeDeviation))
	}
	return from, below
}

// SelectsOnlyStatuses reports whether all runs that the filter selects have one of the given statuses.
func (f *Filter) SelectsOnlyStatuses(these ...Status) bool {
	return len(f.Statuses) > 0 && !slices.ContainsFunc(f.Statuses, func(s Status) bool { return !slices.Contains(these, s) })
}

// SortByCallOrder sorts the checkpoints of one run by the order in which their calls began.
func SortByCallOrder(steps []Step) {
	slices.SortFunc(steps, func(a, b Step) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
}

// SizedStep is a checkpoint from which the store may have omitted the Output.
type SizedStep struct {
	Step
	OutputSize int // in bytes, as stored
}

// SortSizedByCallOrder sorts steps as SortByCallOrder sorts checkpoints.
func SortSizedByCallOrder(steps []SizedStep) {
	slices.SortFunc(steps, func(a, b SizedStep) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.Name, b.Name)) })
}

// RunProgress describes a run that has not ended: what the run waits for, its progress, its tags, and its last lost lease.
type RunProgress struct {
	OpenCalls     []Step // checkpoints that are not terminal, sleep until after now, or record a retry of the run after now; ordered as by SortByCallOrder
	Choices       []Step // recorded choices, ordered by name; the run no longer waits for the OpenCalls of branches that lost
	LastLeaseLoss LeaseLoss
	Timeout       time.Duration // the last one that a start or SetDeadline gave the run; zero: none
	Maps          []MapProgress
	Tags          []Tag // ordered by key
}

// LeaseLoss describes the last lost lease of a run. LeaseLoss is zero if no worker has lost the lease of the run.
type LeaseLoss struct {
	At     time.Time // when another worker claimed the run
	Worker uuid.UUID // the worker that had the lease
}

// TreeCounts summarizes the runs of a tree and their open calls.
type TreeCounts struct {
	RunsByStatus    map[Status]int   // the number of runs with each status
	DelayedCount    int              // Pending runs that were never executed and start after now
	OpenCallsByKind map[StepKind]int // checkpoints of live runs that are not terminal, or sleep until after now
}

// Add adds n runs with the given status to the counts; the argument delayed is how many of these runs are delayed. If the status is zero,
// Add adds n open calls of the given kind.
func (c *TreeCounts) Add(status Status, kind StepKind, n, delayed int) {
	if status == 0 {
		c.OpenCallsByKind[kind] += n
		return
	}
	c.RunsByStatus[status] += n
	c.DelayedCount += delayed
}

// MapProgress tells how many items of a Map have completed or failed.
type MapProgress struct {
	Step      Step // of KindMap; Output is the number of items
	DoneCount int
}

// SignalCount tells how many signals with one name wait for a run to receive them.
type SignalCount struct {
	Run   uuid.UUID
	Name  string
	Count int
}

// EventType tells what happened to a run. The database stores the numbers of EventType constants. The EventType of a run that reached a
// status is the number of the status plus 100, so that no EventType has the number of a status.
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
	EventQueueDeleted    EventType = 14 // this event and the next two concern no run
	EventLimitDeleted    EventType = 15
	EventScheduleDeleted EventType = 16
	EventPaused          EventType = 104
	EventCompleted       EventType = 105
	EventFailed          EventType = 106
	EventCancelled       EventType = 107
	EventExpired         EventType = 109
)

// EventTypeOfStatus returns the type of the event of a run that reached the status, which is Paused or terminal. SQL statements compute the
// same EventType, as the number of the status plus 100.
func EventTypeOfStatus(s Status) EventType { return EventType(s) + 100 }

// Event is one row of the outbox, the table of events.
type Event struct {
	Cursor   string // the argument with which Store.Events returns the events after this one
	Type     EventType
	At       time.Time
	Run      uuid.UUID
	Name     string // of the run; empty if the run was deleted since
	IsChild  bool   // the run has a parent
	Workflow string

	// Actor and Reason are those of the person's request that caused the event. Actor and Reason are empty if no request has caused the
	// event.
	//
	// OldValue and NewValue are the values before and after the change: of the queue, the priority, the version, the number of the
	// generation, or the deadline (see TimeText). For EventDeleted, OldValue is the name of the run, and NewValue is the number of deleted
	// runs. EventSignalled, EventTagged, EventTriggered and EventBackfilled have only a NewValue: the name of the signal, the tags (see
	// TagsText), or the name of the schedule. EventQueueDeleted, EventLimitDeleted and EventScheduleDeleted have only an OldValue: the name
	// of what was deleted. In all other events, OldValue and NewValue are empty.
	Actor, Reason, OldValue, NewValue string
}

// WakeHint tells why Store.Listen calls its callback. A WakeHint may be wrong.
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
	ControlRequests []PendingControl // runs whose pause or cancel is requested; repeated until they are released
	Woken           []uuid.UUID      // runs that a signal or the end of a child has woken since the last call
	// ChangedDeadlines has one lease for each run whose deadline differs from the RunDeadline that the caller passed; the lease has the current
	// deadline as its RunDeadline. Each call of OwnedRunChanges returns a changed deadline again, until the caller passes the current
	// deadline.
	ChangedDeadlines []Lease
	// EndedLeases holds the caller's leases whose runs are now Cancelled at the epoch of the lease. A run with an ended lease was
	// terminated, or the caller itself has recorded its cancel. Each call of OwnedRunChanges that passes an ended lease returns the lease
	// again.
	EndedLeases []Lease
}

// IsEmpty reports whether nothing has changed.
func (c *OwnedRunChanges) IsEmpty() bool {
	return len(c.ControlRequests)+len(c.Woken)+len(c.ChangedDeadlines)+len(c.EndedLeases) == 0
}

// PendingControl is a run whose pause or cancel is requested, with the current epoch of the run.
type PendingControl struct {
	Run     uuid.UUID
	Epoch   Epoch
	Control ControlBits
}
