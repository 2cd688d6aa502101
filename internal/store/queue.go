package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// A queue with a row bounds the runs in it. A run in such a queue needs a place before it is claimed.
//
// Nobody but an admission locks the row of a queue or of a key. A start, a wake or an end changes the row of
// its run only:
//   - A start writes AdmissionPending, and the row of the place with PlaceOutside.
//   - An admission gives places to arrived runs (AdmissionGranted), or puts them in line (AdmissionInLine).
//   - A claim takes runs of AdmissionGranted. A wait, a pause and an end leave the admission state as it is: the next
//     admission finds the run and takes its place back. Until then the run counts, so that a bound is
//     never exceeded.
//
// All counts of a queue and of its keys change in the transaction that changes the places they count.

// QueueSettings are the settings of a queue. Zero means no bound.
type QueueSettings struct {
	MaxExecuting          int  `json:"executing,omitzero"`     // runs that execute at once over all workers
	MaxExecutingPerWorker int  `json:"per_worker,omitzero"`    // runs that execute at once on one worker
	MaxInProgress         int  `json:"open,omitzero"`          // root runs that have begun and not ended
	MaxExecutingPerKey    int  `json:"key_executing,omitzero"` // as MaxExecuting, for each group key
	MaxInProgressPerKey   int  `json:"key_open,omitzero"`      // as MaxInProgress, for each group key
	Rate                  Rate `json:"rate,omitzero"`          // of beginnings
	RatePerKey            Rate `json:"key_rate,omitzero"`      // as Rate, for each group key
	Depth                 int  `json:"depth,omitzero"`         // runs that wait to begin; above it a start is refused
	Closed                bool `json:"closed,omitzero"`        // new starts are refused
}

// QueueRow is the row of a queue in the database, without its counts. Engines keep all of them in memory.
type QueueRow struct {
	Name     string
	Settings QueueSettings // that apply: those of Set, else those of Declared, else none
	PausedAt time.Time     // zero: not paused
	// Deleted reports that the queue is being deleted: its runs may begin at once, and new runs need no place. The admission that
	// finds nothing left deletes the row.
	Deleted bool
}

// Queue is one queue as it is recorded.
type Queue struct {
	QueueRow

	// Code declares settings. The settings of the newest version apply, unless an operator has set others.
	Declared        *QueueSettings // nil: no code has declared any
	DeclaredVersion string
	DeclaredAt      time.Time
	Set             *QueueSettings // nil: no operator has set any
	SetBy           string
	SetReason       string
	SetAt           time.Time
	PausedBy        string
	PauseReason     string
	LastChange      *OperatorChange // nil: no operator has changed the queue

	QueueUse
	OldestDue     time.Time     // since when the longest waiting run has been due; zero: none waits
	RateUsedUntil time.Time     // up to this time the rate is used up
	Keys          []QueueKeyUse // the keys with the most waiting runs, at most MaxQueueKeys
}

// MaxQueueKeys is the largest length of Queue.Keys.
const MaxQueueKeys = 10

// QueueUse is how many runs of a queue or a key are in which state.
type QueueUse struct {
	Executing int // runs that have a place to execute; a run that has just ended counts until the next admission
	Open      int // root runs that have begun and not ended, as far as admissions have seen
	Waiting   int // runs that are due and have no place
	Behind    int // of the waiting runs, those behind others of their key
}

// QueueKeyUse is QueueUse for one group key.
type QueueKeyUse struct {
	Key string
	QueueUse
}

// QueueChangeRequest declares a queue or sets its settings.
type QueueChangeRequest struct {
	Name     string
	Settings QueueSettings
	Now      time.Time
	// Declare reports that the code of the version Version makes this change, and not an operator. Such a change applies only if
	// no operator has set anything, and if no newer version has declared the queue since.
	Declare bool
	Version string
	Actor   string // who sets the settings, and why
	Reason  string
}

// OperatorChange returns the OperatorChange that is recorded for the request.
func (c *QueueChangeRequest) OperatorChange() OperatorChange {
	return OperatorChange{Verb: OperatorSet, At: c.Now, By: c.Actor, Reason: c.Reason}
}

// QueuePauseRequest pauses or resumes a queue. Nothing of a paused queue begins, and what executes goes on.
type QueuePauseRequest struct {
	Name   string
	Now    time.Time
	Resume bool
	Actor  string // who pauses or resumes it, and why
	Reason string
}

// OperatorChange returns the OperatorChange that is recorded for the pause or the resume.
func (p *QueuePauseRequest) OperatorChange() OperatorChange {
	c := OperatorChange{Verb: OperatorPause, At: p.Now, By: p.Actor, Reason: p.Reason}
	if p.Resume {
		c.Verb = OperatorResume
	}
	return c
}

// PlaceState is the state of a run in its queue. The numbers are stored.
type PlaceState int16

// The states of a place.
const (
	PlaceGone       PlaceState = 0 // the run has ended, or has left the queue
	PlaceNotArrived PlaceState = 1 // the run arrives when it is due
	PlaceInLine     PlaceState = 2 // the run is in the line of the queue
	PlaceBehindKey  PlaceState = 3 // the run waits behind others of its key, and enters the line after them
	PlaceExecuting  PlaceState = 4 // the run counts as executing
	PlaceBypassed   PlaceState = 5 // the run is let through and counts for nothing, because it only ends
)

// QueuePlace is the row of a run in the table of queue places. Only runs in queues with settings have one.
type QueuePlace struct {
	Run       uuid.UUID
	Queue     string
	Key       string // the group key; may be empty
	Weight    int32  // how many turns the key gets, against 1 of others; from 1 to MaxWeight
	Priority  int16
	State     PlaceState
	Root      bool      // it is no child: from when it has begun until it ends it counts as open
	HasBegun  bool      // it has been admitted once, so no rate applies
	Turn      int64     // its place in the line; those of one priority are admitted in the order of their turns
	ArrivedAt time.Time // when it was due first
	StartBy   time.Time // when it expires if it has not begun; zero: never
}

// MaxWeight is the largest QueuePlace.Weight.
const MaxWeight = 1000

// MaxBefore is the largest QueuePlaceOfRun.Before.
const MaxBefore = 10_000

// QueuedRun is the queue place of a run, with the details that [Engine.Get] shows.
type QueuedRun struct {
	QueuePlace
	Admission AdmissionState // of the run
	Before    int            // runs in line before it, at most MaxBefore; zero unless it is in line or behind its key
}

// QueueStore keeps queues with settings. QueueAdmitter is the part that gives places to runs.
type QueueStore interface {
	// QueueRows returns the rows of all queues, ordered by name. A queue without a row is returned as deleted
	// if runs in it wait for an admission. Engines call it once a second.
	QueueRows(ctx context.Context) ([]QueueRow, error)

	// ChangeQueue declares a queue or sets its settings. A queue that was marked as deleted is no longer
	// marked.
	ChangeQueue(ctx context.Context, c QueueChangeRequest) error

	// PauseQueue pauses a queue, or resumes it if p.Resume is set. It reports whether the queue exists. The first pause keeps its
	// time, actor and reason until the queue is resumed. LastChange does not
	// change if the queue is paused or resumed already.
	PauseQueue(ctx context.Context, p QueuePauseRequest) (bool, error)

	// DeleteQueue marks a queue as deleted; see QueueRow.Deleted. It reports whether there was one that was
	// not marked.
	DeleteQueue(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// ResetQueueSettings removes the settings of an operator, so that those that code declares apply. It reports
	// whether there is such a queue that is not marked as deleted and that code declares.
	ResetQueueSettings(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// Queues returns all queues that are not marked as deleted, with their use at the time now, ordered by name.
	Queues(ctx context.Context, now time.Time) ([]Queue, error)

	// QueueDepth returns how many runs of a queue wait to begin, or wait for a place, but at most the given number. It counts only
	// committed runs.
	QueueDepth(ctx context.Context, queue string, most int) (int, error)

	// QueuePlaceOfRun returns the place of a run, or nil if it has none.
	QueuePlaceOfRun(ctx context.Context, run uuid.UUID) (*QueuedRun, error)

	// ClearStartByDeadline removes the mark HasStartBy of a run that the epoch owns, with its place if the queue has
	// no row. It reports whether the run is still running at that epoch.
	ClearStartByDeadline(ctx context.Context, run uuid.UUID, epoch Epoch) (bool, error)
}

// EncodeJSON returns the recorded form of the settings.
func (s QueueSettings) EncodeJSON() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("store: numbers do not encode: " + err.Error())
	}
	return string(b)
}

// DecodeQueueSettings decodes recorded settings. It returns nil for an empty text.
func DecodeQueueSettings(text string) (*QueueSettings, error) {
	if text == "" {
		return nil, nil
	}
	s := new(QueueSettings)
	if err := json.Unmarshal([]byte(text), s); err != nil {
		return nil, fmt.Errorf("the recorded settings of a queue do not decode: %w", err)
	}
	return s, nil
}

// DecodeSettings parses the JSON of the declared settings and of the settings that an operator has set. An empty text stands for no settings.
// Settings becomes the set ones if there are any, and the declared ones otherwise.
func (q *Queue) DecodeSettings(declared, set string) (err error) {
	if q.Declared, err = DecodeQueueSettings(declared); err == nil {
		q.Set, err = DecodeQueueSettings(set)
	}
	switch {
	case err != nil:
		return fmt.Errorf("queue %q: %w", q.Name, err)
	case q.Set != nil:
		q.Settings = *q.Set
	case q.Declared != nil:
		q.Settings = *q.Declared
	}
	return nil
}

// BlockedBy returns a word for why the first run in line cannot begin at the time now. It returns an empty text if no run is in
// line, or if the first run can begin now.
func (q *Queue) BlockedBy(now time.Time) string {
	s := &q.Settings
	switch {
	case q.Waiting == 0:
		return ""
	case !q.PausedAt.IsZero():
		return "pause"
	case q.Waiting == q.Behind:
		return ""
	case s.MaxExecuting > 0 && q.Executing >= s.MaxExecuting:
		return "max_executing"
	case s.MaxInProgress > 0 && q.Open >= s.MaxInProgress:
		return "max_in_progress"
	case s.Rate.Count > 0 && q.RateUsedUntil.Sub(now) > s.Rate.Period/time.Duration(s.Rate.Count)*time.Duration(s.Rate.Burst-1):
		return "rate"
	}
	return ""
}
