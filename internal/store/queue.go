package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// A queue with a row, which holds its settings, bounds the runs in it. A run in such a queue needs a place before it is claimed.
//
// Only an admission, or a move of a run to another queue, changes the counts in the rows of a queue and of its keys. A start, a wake
// or an end of a run changes only the row of that run:
//   - A start writes AdmissionPending, and the row of the place with PlaceNotArrived.
//   - An admission gives places to arrived runs (AdmissionGranted), or puts them in line (AdmissionInLine).
//   - A claim takes runs of AdmissionGranted. A wait, a pause and an end leave the admission state as it is: the next
//     admission finds the run and takes its place back. Until then the run counts, so that a bound is
//     never exceeded.
//
// All counts of a queue and of its keys change in the transaction that changes the places they count.

// QueueSettings are the settings of a queue. A field that is zero sets no bound.
type QueueSettings struct {
	MaxExecuting          int  `json:"executing,omitzero"`     // runs that execute at once over all workers
	MaxExecutingPerWorker int  `json:"per_worker,omitzero"`    // runs that execute at once on one worker
	MaxInProgress         int  `json:"open,omitzero"`          // root runs that have begun and not ended
	MaxExecutingPerKey    int  `json:"key_executing,omitzero"` // as MaxExecuting, for each group key
	MaxInProgressPerKey   int  `json:"key_open,omitzero"`      // as MaxInProgress, for each group key
	Rate                  Rate `json:"rate,omitzero"`          // of beginnings
	RatePerKey            Rate `json:"key_rate,omitzero"`      // as Rate, for each group key
	Depth                 int  `json:"depth,omitzero"`         // how many runs may wait to begin; further starts are refused
	Closed                bool `json:"closed,omitzero"`        // new starts are refused
}

// QueueRow is the row of a queue in the database, without its counts. Each engine keeps the rows of all queues in memory.
type QueueRow struct {
	Name     string
	Settings QueueSettings // the settings that apply: those of the operator, else those that code declares, else none
	PausedAt time.Time     // zero: not paused
	// Deleted reports that the queue is being deleted: its runs may begin at once, and new runs need no place. The admission that finds no
	// run left in the deleted queue deletes the row.
	Deleted bool
}

// Queue is one queue as the database holds it.
type Queue struct {
	QueueRow

	// Code declares settings. The settings of the newest version apply, unless an operator has set others.
	DeclaredSettings *QueueSettings // nil: no code has declared any
	DeclaredVersion  string
	DeclaredAt       time.Time
	OperatorSettings *QueueSettings // nil: no operator has set any
	SetBy            string
	SetReason        string
	SetAt            time.Time
	PausedBy         string
	PauseReason      string
	LastChange       *OperatorChange // nil: no operator has changed the queue

	QueueUse
	OldestDue     time.Time     // since when the longest waiting run has been due; zero: none waits
	RateUsedUntil time.Time     // up to this time the rate is used up
	Keys          []QueueKeyUse // the keys with the most waiting runs, at most MaxListedQueueKeys
}

// MaxListedQueueKeys is the maximal length of Queue.Keys.
const MaxListedQueueKeys = 10

// QueueUse tells how many runs of a queue, or of a key, are executing, in progress, waiting for a place, or waiting behind others of
// their key.
type QueueUse struct {
	Executing     int // runs that have a place to execute; a run that has just ended counts until the next admission
	InProgress    int // root runs that have begun and not ended, as far as admissions have seen
	Waiting       int // runs that are due and have no place
	WaitingForKey int // of the waiting runs, those behind others of their key
}

// QueueKeyUse is the QueueUse of one group key.
type QueueKeyUse struct {
	Key string
	QueueUse
}

// QueueChangeRequest declares a queue in code, or sets the queue's settings for an operator.
type QueueChangeRequest struct {
	Name     string
	Settings QueueSettings
	Now      time.Time
	// Declare says that the code of the version Version declares the queue, and that no operator makes the change. Declared settings apply
	// only if no operator has set settings, and if no newer version of the code has declared the queue since.
	Declare bool
	Version string
	Actor   string // who sets the settings, and why
	Reason  string
}

// OperatorChange returns the OperatorChange that the store records for the change of the queue.
func (c *QueueChangeRequest) OperatorChange() OperatorChange {
	return OperatorChange{Verb: OperatorSet, At: c.Now, By: c.Actor, Reason: c.Reason}
}

// QueuePauseRequest pauses or resumes a queue. While a queue is paused, none of its runs begins; runs that execute continue.
type QueuePauseRequest struct {
	Name   string
	Now    time.Time
	Resume bool
	Actor  string // who pauses or resumes it, and why
	Reason string
}

// OperatorChange returns the OperatorChange that the store records for the pause or the resume of the queue.
func (p *QueuePauseRequest) OperatorChange() OperatorChange {
	c := OperatorChange{Verb: OperatorPause, At: p.Now, By: p.Actor, Reason: p.Reason}
	if p.Resume {
		c.Verb = OperatorResume
	}
	return c
}

// PlaceState is the state of a run in its queue. The database stores the numbers of PlaceState constants.
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

// QueuePlace is the row of a run in the table of queue places. Only runs in queues with settings have a QueuePlace.
type QueuePlace struct {
	Run       uuid.UUID
	Queue     string
	Key       string // the group key; may be empty
	Weight    int32  // how many turns the key gets for each turn of a key of weight 1; from 1 to MaxWeight
	Priority  int16
	State     PlaceState
	Root      bool      // it has no parent, so it counts as in progress from its beginning to its end
	HasBegun  bool      // it has been admitted once, so no rate applies
	Turn      int64     // its position in the line: runs of one priority are admitted in the order of their turns
	ArrivedAt time.Time // when it was due first
	StartBy   time.Time // when it expires if it has not begun; zero: never
}

// MaxWeight is the largest allowed QueuePlace.Weight.
const MaxWeight = 1000

// MaxRunsAhead is the largest QueuedRun.RunsAhead.
const MaxRunsAhead = 10_000

// QueuedRun is the queue place of a run, with the details that [Engine.Get] shows.
type QueuedRun struct {
	QueuePlace
	Admission AdmissionState // of the run
	RunsAhead int            // runs in line before it, at most MaxRunsAhead; zero unless it is in line or behind its key
}

// QueueStore keeps the queues that have settings. QueueAdmitter, which is part of QueueStore, gives places in these queues to runs.
type QueueStore interface {
	// QueueRows returns the rows of all queues, ordered by name. QueueRows also returns a queue without a row, as deleted, if runs in the
	// queue wait for an admission. Engines call QueueRows once a second.
	QueueRows(ctx context.Context) ([]QueueRow, error)

	// ChangeQueue declares a queue, or sets the queue's settings. ChangeQueue removes the mark of a queue that was marked as deleted.
	ChangeQueue(ctx context.Context, c QueueChangeRequest) error

	// PauseQueue pauses a queue, or resumes it if p.Resume is set. PauseQueue reports whether the queue exists. If a paused queue is paused
	// again, the time, the actor and the reason of the first pause remain. PauseQueue does not set LastChange if the queue is already in
	// the requested state.
	PauseQueue(ctx context.Context, p QueuePauseRequest) (bool, error)

	// DeleteQueue marks a queue as deleted; see QueueRow.Deleted. DeleteQueue returns false if the queue does not exist or was marked
	// before.
	DeleteQueue(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// ResetQueueSettings removes the settings that an operator has given a queue, so that the settings declared in code apply.
	// ResetQueueSettings returns false if the queue does not exist, is marked as deleted, or is not declared by code.
	ResetQueueSettings(ctx context.Context, c DeleteOrResetRequest) (bool, error)

	// Queues returns all queues that are not marked as deleted, with their use at the time now, ordered by name.
	Queues(ctx context.Context, now time.Time) ([]Queue, error)

	// QueueDepth returns how many runs of a queue wait to begin or wait for a place, and stops counting at the given number. QueueDepth
	// counts only committed runs.
	QueueDepth(ctx context.Context, queue string, most int) (int, error)

	// QueuePlaceOfRun returns the place of a run in its queue, or nil if the run has no place.
	QueuePlaceOfRun(ctx context.Context, run uuid.UUID) (*QueuedRun, error)

	// ClearStartByDeadline removes the control bit HasStartBy of a run that is running at the epoch. If the run's queue has no row, the
	// run's place then only keeps the group key, because the queue may get settings again; ClearStartByDeadline deletes a place without a
	// group key. ClearStartByDeadline reports whether the run is still running at that epoch.
	ClearStartByDeadline(ctx context.Context, run uuid.UUID, epoch Epoch) (bool, error)
}

// EncodeJSON returns the settings as JSON, the form in which the database stores them.
func (s QueueSettings) EncodeJSON() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic("store: numbers do not encode: " + err.Error())
	}
	return string(b)
}

// DecodeQueueSettings decodes the stored JSON of a queue's settings. DecodeQueueSettings returns nil for an empty text.
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

// DecodeSettings parses the JSON of the declared settings and of the settings that an operator has set. An empty text stands for no
// settings. The field Settings becomes the settings that an operator has set, or the declared settings if no operator has set any.
func (q *Queue) DecodeSettings(declared, set string) (err error) {
	if q.DeclaredSettings, err = DecodeQueueSettings(declared); err == nil {
		q.OperatorSettings, err = DecodeQueueSettings(set)
	}
	switch {
	case err != nil:
		return fmt.Errorf("queue %q: %w", q.Name, err)
	case q.OperatorSettings != nil:
		q.Settings = *q.OperatorSettings
	case q.DeclaredSettings != nil:
		q.Settings = *q.DeclaredSettings
	}
	return nil
}

// BlockedBy returns a word that tells why the first run in the queue's line cannot begin at the time now. If all waiting runs are behind
// their group keys, the word is "key": an admission leaves a run behind its key only if a bound of the key holds the run back, or if runs of
// the key are in line. BlockedBy returns an empty text if no run waits, or if the first run can begin now.
func (q *Queue) BlockedBy(now time.Time) string {
	s := &q.Settings
	switch {
	case q.Waiting == 0:
		return ""
	case !q.PausedAt.IsZero():
		return "pause"
	case q.Waiting == q.WaitingForKey:
		return "key"
	case s.MaxExecuting > 0 && q.Executing >= s.MaxExecuting:
		return "max_executing"
	case s.MaxInProgress > 0 && q.InProgress >= s.MaxInProgress:
		return "max_in_progress"
	case s.Rate.Count > 0 && q.RateUsedUntil.Sub(now) > s.Rate.Period/time.Duration(s.Rate.Count)*time.Duration(s.Rate.Burst-1):
		return "rate"
	}
	return ""
}
