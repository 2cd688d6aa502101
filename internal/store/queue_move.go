package store

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
)

// MoveRunRequest gives a run that has not begun another queue, another priority, or both.
//
// MoveRun locks the row of the run's queue as an admission does, and removes the run from its line or its place and from all counts. The
// moved run then arrives in its queue like a run that was just started. A moved run keeps its due time, its deadline, its StartBy and its
// group key. Units of a rate that a moved run has used stay used.
type MoveRunRequest struct {
	Run        uuid.UUID
	Queue      string // empty: it keeps its queue
	NeedsPlace bool   // Queue has a row, so the run needs a place there
	Priority   *int16 // nil: it keeps its priority
	Now        time.Time
	Actor      string // who requests it, and why
	Reason     string

	// Outcome is Written if the run was moved. Outcome is also Written if the run, in whatever state, already has the wanted queue and
	// priority, so that a call whose result was lost can be repeated. Outcome is Fenced, and nothing was changed, if the run does not
	// exist, has begun, has ended, or may no longer begin because its deadline or its StartBy has passed.
	Outcome  WriteOutcome
	FoundRun *RunToMove // the run as it was; nil: there is none
}

// RunToMove holds what MoveRunRequest.Plan needs to know about the run.
type RunToMove struct {
	AdmissionRun
	Name        string // of the queue
	Workflow    string
	Epoch       Epoch
	Lane        ClaimLane
	Version     string
	RowPriority int16 // the priority in the row of the run
}

// HasExpired reports whether the run's deadline, or the time by which the run had to begin, has passed. A run that is paused does not
// expire.
func (r *RunToMove) HasExpired(now time.Time) bool {
	return r.Status == Pending && (!r.Deadline.IsZero() && !r.Deadline.After(now) || !r.StartBy.IsZero() && !r.HasBegun && !r.StartBy.After(now))
}

// IsUnneeded reports whether the run already has the wanted queue and priority, so that MoveRun changes nothing.
func (m *MoveRunRequest) IsUnneeded() bool {
	return m.FoundRun != nil && (m.Queue == "" || m.Queue == m.FoundRun.Name) && (m.Priority == nil || *m.Priority == m.FoundRun.RowPriority)
}

// QueueMovePlan holds what a MoveRunRequest writes.
type QueueMovePlan struct {
	Run      RunToMove
	HasPlace bool           // its place is written
	Moved    bool           // its queue changes
	Key      *QueueKeyState // the counts of its key, which are written together with the counts of its previous queue; nil: no count changes
	Events   []Event
}

// QueueMoveStore changes the queues and the priorities of runs.
type QueueMoveStore interface {
	// MoveRun changes the queue, the priority, or both, of a run in one transaction, writes an event for each change, and sets the outcome.
	// MoveRun returns ErrLocked if another transaction has locked the queue or the run.
	MoveRun(ctx context.Context, m *MoveRunRequest) error
}

// Plan decides what the MoveRunRequest writes, and sets the outcome. Plan returns nil if nothing changes. The argument q is the row of the
// run's present queue with the row of the run's group key, or nil if that queue has no row. The argument found is nil if the run does not
// exist.
func (m *MoveRunRequest) Plan(q *QueueState, found *RunToMove) *QueueMovePlan {
	m.Outcome, m.FoundRun = Fenced, found
	if found == nil {
		return nil
	}
	p := &QueueMovePlan{Run: *found}
	r := &p.Run
	if m.Queue != "" && m.Queue != r.Name {
		p.Moved, r.Name = true, m.Queue
		p.Events = append(p.Events, Event{Type: EventMovedToQueue, OldValue: found.Name, NewValue: m.Queue})
	}
	if m.Priority != nil && *m.Priority != r.RowPriority {
		r.RowPriority, r.Priority = *m.Priority, *m.Priority
		p.Events = append(p.Events, Event{Type: EventPriorityChanged, OldValue: strconv.Itoa(int(found.RowPriority)), NewValue: strconv.Itoa(int(r.RowPriority))})
	}
	switch {
	case len(p.Events) == 0:
		m.Outcome = Written
		return nil
	case r.Status != Pending && r.Status != Paused, r.WasExecuted, r.Control&CancelRequested != 0, r.HasExpired(m.Now):
		return nil
	}
	m.Outcome, p.HasPlace = Written, r.HasPlace
	was := r.AdmissionRun
	if p.Moved || r.Admission == AdmissionInLine {
		p.removeFromOldQueue(q, &found.AdmissionRun)
		if r.Status == Pending && was.Admission >= AdmissionGranted {
			r.WakeAt = m.Now
			if !was.ArrivedAt.IsZero() {
				r.WakeAt = was.ArrivedAt // when it was due first
			}
		}
	}
	if p.Moved {
		p.addToNewQueue(m.NeedsPlace)
	}
	r.Queue = r.Name
	if r.Lane != UnreleasedLane { // a worker that releases the run sets the lane
		r.Lane = ClaimLaneOf(r.Name, r.Workflow, r.Version, r.RowPriority).WithAdmission(r.Admission)
	}
	return p
}

// removeFromOldQueue takes the run, as it was found, out of its place or its line, so that it arrives again.
func (p *QueueMovePlan) removeFromOldQueue(q *QueueState, was *AdmissionRun) {
	r := &p.Run
	if q != nil && r.HasPlace {
		a, before := &admissionPlanner{QueueState: q}, q.Use
		a.uncountRun(was)
		if p.Moved {
			a.removePlace(&r.AdmissionRun)
		}
		if q.Use != before {
			p.Key = a.getKeyForUpdate(r.Key)
			p.Key.CheckAt = q.Now // the next admission decides which run of the key follows
		}
	}
	r.State, r.Admission, r.Turn, r.ArrivedAt = PlaceNotArrived, AdmissionPending, 0, time.Time{}
}

// addToNewQueue brings the run into its new queue.
func (p *QueueMovePlan) addToNewQueue(gated bool) {
	r := &p.Run
	r.HasBegun, r.Turn, r.ArrivedAt = false, 0, time.Time{}
	switch {
	case gated:
		r.State, r.Admission, p.HasPlace = PlaceNotArrived, AdmissionPending, true
	case r.StartBy.IsZero():
		r.State, r.Admission = PlaceGone, AdmissionNotNeeded
	default:
		r.State, r.Admission = PlaceNotArrived, AdmissionNotNeeded // its place only keeps StartBy
	}
}
