package store

import (
	"bytes"
	"time"

	"github.com/google/uuid"
)

// Batch is what one flush of the journal writes, in one transaction and in this
// order: Starts, Steps, Runs. A batch never holds two writes of one step, nor two
// of one run.
type Batch struct {
	Starts []*Start
	Steps  []*StepWrite
	Runs   []*RunWrite
}

// Len is the number of items.
func (b *Batch) Len() int { return len(b.Starts) + len(b.Steps) + len(b.Runs) }

// Outcome is the answer to one item.
type Outcome uint8

// The outcomes. The zero value is never an answer.
const (
	Written Outcome = 1 // the row is as this write wanted it
	Adopted Outcome = 2 // another wrote first; its row is attached
	Fenced  Outcome = 3 // this epoch no longer owns the run, or the run no longer runs
	Locked  Outcome = 4 // the row is locked by another transaction; try again
)

// Start creates a run: owned by its creator (Owner valid, status Running, epoch 1,
// WakeAt the lease's expiry) or claimable (status Pending, epoch 0, WakeAt when it
// may start).
type Start struct {
	Run Run // ID, Parent, Name, Workflow, Version, Queue, Status, Epoch, Owner, Input, Trace, CreatedAt, StartedAt, WakeAt, Deadline

	// Outcome is Written, or Adopted if (Name, Parent) exists. A replay of an
	// ambiguous commit finds Run.ID itself, and is Written.
	Outcome Outcome
	// Existing is the row found, whole, when Outcome is Adopted. Whether it means
	// the same start is the engine's to say.
	Existing *Run
}

// StepWrite records a state of a step, if the run is still Running at Epoch.
type StepWrite struct {
	Step Step // Epoch is the writer's

	// Exists says that the writer knows of a row that is not terminal (a started
	// marker or a backoff): that row is updated, under SKIP LOCKED. Otherwise a row
	// is inserted, and one that exists already is a conflict.
	Exists bool

	// Outcome is Written, Adopted (a terminal row was there: see Recorded), Fenced
	// (see State) or Locked. A write that knew less than the database, of whether there
	// is a row, is made the other way; a marker or backoff behind what its own epoch has
	// written already is Written, and changes nothing.
	Outcome  Outcome
	Recorded *Step
	State    RunState
}

// RunWrite ends one ownership of a run, if it is still Running at Epoch: it
// finishes (Completed, Failed, Cancelled), parks (Waiting), goes back (Pending) or is
// set aside (Paused). Owner becomes NULL and WakeAt is stored as given: zero, so
// NULL, for all but Waiting with a timer and Pending.
type RunWrite struct {
	ID      uuid.UUID
	Epoch   int32
	Status  Status
	Output  []byte
	Error   []byte
	Reason  string
	Trace   string // replaces the row's, unless empty
	WakeAt  time.Time
	EndedAt time.Time

	// Outcome is Written or Fenced (see State).
	Outcome Outcome
	State   RunState
}

// RunState says what a run was found to be when a write did not take.
type RunState struct {
	Found  bool
	Status Status
	Epoch  int32
}

// ClaimQuery asks for due runs.
type ClaimQuery struct {
	Worker uuid.UUID
	Pairs  []Pair // what this worker may execute; a claim walks over nothing else
	Limit  int    // of runs that are no suspects
	// Suspects is how many runs it may take, beside Limit, that would have SuspectAfter or
	// more crashes then: 0 or 1. So they are executed one at a time, and a run that kills
	// its process does not drag others along.
	Suspects   int
	Now        time.Time
	LeaseUntil time.Time
	// MaxCrashes is how many claims in a row may follow a lost lease without a new
	// checkpoint. The claim that reaches it pauses the run instead, with a reason. Zero:
	// no bound.
	MaxCrashes int
}

// SuspectAfter is how many crashes in a row without a new checkpoint make a run a
// suspect. The number also stands in claim.sql and claim_suspect.sql.
const SuspectAfter = 2

// Pair is one place a run may wait in.
type Pair struct{ Queue, Workflow string }

// Claims is the answer to a ClaimQuery.
type Claims struct {
	Runs []Claimed
	// Next is the earliest wake_at ahead among the pairs, zero if there is none.
	Next time.Time
}

// Claimed is a run that is now owned by the worker, or, if its Status is Paused,
// one that this claim has set aside for its crashes; that has no history.
type Claimed struct {
	Run     Run
	History []Step // ordered by name
}

// Heartbeat is what a worker tells the database a few times a lease.
type Heartbeat struct {
	Worker     Worker // HeartbeatAt is set by the store from the database's clock
	Leases     []Lease
	LeaseUntil time.Time
}

// Lease names a run held, and the epoch it is held with.
type Lease struct {
	Run   uuid.UUID
	Epoch int32
}

// Pulse is the answer to a Heartbeat.
type Pulse struct {
	Now  time.Time   // the database's clock
	Lost []uuid.UUID // leases not extended: another owns the run, or it no longer runs
}

// Made reports whether the row is what this write wanted, by the same hand: the write
// was committed before, and its answer was lost.
func (w *StepWrite) Made(row *Step) bool {
	want := &w.Step
	return row.Epoch == want.Epoch && row.Attempt == want.Attempt && row.Status == want.Status &&
		samePayload(row.Output, want.Output) && samePayload(row.Error, want.Error)
}

// Made reports whether the row is what this write wanted; see StepWrite.Made.
func (w *RunWrite) Made(row *Run) bool {
	return row.Epoch == w.Epoch && row.Status == w.Status &&
		samePayload(row.Output, w.Output) && samePayload(row.Error, w.Error)
}

// samePayload tells no payload from an empty one.
func samePayload(l, r []byte) bool { return (l == nil) == (r == nil) && bytes.Equal(l, r) }
