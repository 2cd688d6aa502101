package store

import (
	"bytes"
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Batch is what one flush of the journal writes, in one transaction and in this
// order: Starts, Steps, Receives, Signals, Runs. A batch never holds two writes of one
// step, nor two of one run.
//
// Where it touches more than one run's own rows (starts of children, receives, signals,
// ends of children), the rows of all runs concerned are locked first, in the order of
// (shard, id); so a signal and a receive, or a child's start and its parent's cancel,
// happen one after the other.
type Batch struct {
	Starts   []*Start
	Steps    []*StepWrite
	Receives []*Receive
	Signals  []*Signal
	Runs     []*RunWrite

	// Brief waits for rows that others hold for a much shorter time than usual: the caller
	// will try again.
	Brief bool
}

// Len is the number of items.
func (b *Batch) Len() int {
	return len(b.Starts) + len(b.Steps) + len(b.Receives) + len(b.Signals) + len(b.Runs)
}

// Outcome is the answer to one item.
type Outcome uint8

// The outcomes. The zero value is never an answer.
const (
	Written Outcome = 1 // the row is as this write wanted it
	Adopted Outcome = 2 // another wrote first; its row is attached
	Fenced  Outcome = 3 // this epoch no longer owns the run, or the run no longer runs
	Locked  Outcome = 4 // a row is locked by another transaction, perhaps of a user's; try again
)

// Start creates a run: owned by its creator (Owner valid, status Running, an epoch of count 1
// with a nonce of its own, WakeAt the lease's expiry) or claimable (status Pending, the zero
// epoch, WakeAt when it may start).
type Start struct {
	Run Run // ID, Parent, Name, Workflow, Version, Queue, Status, Epoch, Owner, Input, Trace, Detached, CreatedAt, StartedAt, WakeAt, Deadline
	// ParentEpoch is the writer's epoch of a child's parent: the child is created only if
	// the parent is still Running at it, and nothing was asked of it (Control).
	ParentEpoch Epoch
	Tags        []Tag // set if the run is created; keys differ

	// Outcome is Written, Adopted if (Name, Parent) exists, or, for a child, Fenced
	// (see State, of the parent) or Locked (the parent's row is). A replay of an ambiguous commit finds Run.ID itself,
	// and is Written.
	Outcome Outcome
	// Existing is the row found, whole, when Outcome is Adopted. Whether it means
	// the same start is the engine's to say.
	Existing *Run
	State    RunState
}

// StepWrite records a state of a step, if the run is still Running at Epoch. That
// something was asked of the run (Control) does not keep the write out, but is told in
// State: the first write that meets it costs a second statement. But the Started row of a
// child is kept out, as the child's start is.
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

// Receive takes the oldest waiting signal called Signal for a step of the run, if the
// run is still Running at Step.Epoch. With a signal the step is Completed, and Output is
// the signal's payload; the signal is marked as taken by the step in the same
// transaction. Without one, Step is recorded as given: Started, to go on waiting until
// NextAt, or its end when the time is over. A row of the same attempt keeps its
// StartedAt and NextAt; a terminal row is Adopted, and takes no signal.
//
// A row of the same attempt, or a later one, takes only a signal that arrived by its NextAt
// (see Signal.ArrivedAt); the others stay there for other receives. Where there is no such row,
// or it has no NextAt, any signal is taken.
//
// That something was asked of the run (Control) does not keep the write out.
type Receive struct {
	Step   Step
	Signal string

	// Outcome is Written or Adopted (see Recorded: the row as it is now), Fenced, or
	// Locked (the run's row is).
	Outcome  Outcome
	Recorded *Step
	State    RunState
}

// Signal is a named message to a run that has not ended. It wakes the run.
type Signal struct {
	Run       uuid.UUID
	ID        uuid.UUID
	Name      string
	Key       string // not empty: one signal with it is kept for the run
	Payload   []byte
	CreatedAt time.Time // signals of one name are received in the order of (CreatedAt, ID)
	// ArrivedAt is what the end of a wait is compared with. Zero, which it is but in tests with a
	// clock of their own: the store reads the database's clock in the transaction that writes the
	// signal, with the run locked, so that a receive which found the time over was before.
	ArrivedAt time.Time

	// Outcome is Written, Adopted (the key was used: see Existing), or Fenced (the run
	// has ended, or there is none: see State), or Locked (the run's row is). A replay
	// finds ID itself, and is Written.
	Outcome  Outcome
	Existing *Signal // Run, ID, Name, Key, Payload, CreatedAt; no ArrivedAt
	State    RunState
}

// RunWrite ends one ownership of a run, if it is still Running at Epoch: it
// finishes (Completed, Failed, Cancelled, Expired), parks (Waiting), goes back (Pending) or is
// set aside (Paused). Owner becomes NULL and WakeAt is stored as given: zero, so
// NULL, for all but Waiting with a timer and Pending.
//
// What was asked of the run meanwhile (Control) goes first. A run to be cancelled
// cannot end but as Cancelled: any other end is Fenced, with State telling so, and the run stays as it
// was. Parked or given back, it becomes Pending at Now, so that its compensations are
// run; a paused one becomes Paused, without WakeAt; and one that was woken parks with WakeAt = Now.
//
// The end of a child wakes its parent: if that is Waiting it becomes claimable at Now,
// if it is Running it is marked as woken.
//
// With Held the run leaves because the database does not take what it has to write. Status
// is Pending. That counts as a crash: as the first one, if the run has more terminal
// checkpoints than at its last crash. The run becomes claimable at HeldUntil, also
// if it is to be cancelled. If that was crash number MaxCrashes, and MaxCrashes is not zero,
// it becomes Paused, as a claim does it. A run that is to be paused becomes Paused without
// a crash. Reason is kept until the run parks or ends, is resumed, or is claimed after a
// further lost lease with new checkpoints. State tells what the run became.
type RunWrite struct {
	ID      uuid.UUID
	Parent  uuid.NullUUID // of a child that ends: whom to wake
	Now     time.Time
	Epoch   Epoch
	Status  Status
	Output  []byte
	Error   []byte
	Reason  string
	Trace   string // replaces the row's, unless empty
	WakeAt  time.Time
	EndedAt time.Time

	Held       bool
	MaxCrashes int // with Held; see ClaimQuery

	// Outcome is Written, Fenced (see State), or Locked (the run's row is, or its parent's).
	Outcome Outcome
	State   RunState
}

// HeldFor is how long a run that leaves with RunWrite.Held stays away: one second after its
// first crash, four times as long after each further one, and five minutes at most.
func HeldFor(crashes int16) time.Duration {
	const most = 5 * time.Minute
	if crashes > 5 {
		return most
	}
	return min(time.Second<<(2*max(crashes-1, 0)), most)
}

// HeldUntil is when such a run comes back: after HeldFor, or at its deadline, if that comes before and is
// ahead. The same rule is in run_hold.sql.
func HeldUntil(now time.Time, crashes int16, deadline time.Time) time.Time {
	back := now.Add(HeldFor(crashes))
	if deadline.After(now) && deadline.Before(back) {
		return deadline
	}
	return back
}

// HeldTooOften is the reason of a run that RunWrite.Held has paused. The text also stands in
// run_hold.sql.
func HeldTooOften(reason string, crashes int16) string {
	return fmt.Sprintf("%s; the run was held, or its process died or lost its lease, %d times in a row without a new checkpoint: resume it when the cause is mended", reason, crashes)
}

// CrashedTooOften is the reason of a run that a claim has paused; see ClaimQuery.MaxCrashes. The text
// also stands in claim.sql.
func CrashedTooOften(crashes int16) string {
	return fmt.Sprintf("its process died or lost its lease %d times in a row without a new checkpoint: find the cause, then resume the run", crashes)
}

// RunState says what a run was found to be when a write did not take, or took only the
// second time.
type RunState struct {
	Found   bool
	Status  Status
	Epoch   Epoch
	Control Bits
}

// ClaimQuery asks for due runs.
type ClaimQuery struct {
	Worker uuid.UUID
	Nonce  uint32 // of the epochs of the runs that it takes; drawn for this claim alone
	Pairs  []Pair // what this worker may execute; a claim walks over nothing else
	Limit  int    // of runs
	// Suspects is how many of them may have SuspectAfter or more crashes then: 0 or 1, which
	// goes before the others. So they are executed one at a time, and a run that kills its process
	// does not drag others along.
	Suspects   int
	Now        time.Time
	LeaseUntil time.Time
	// MaxCrashes is how many claims in a row may follow a lost lease without a new
	// checkpoint. The claim that reaches it pauses the run instead, with a reason. Zero:
	// no bound.
	MaxCrashes int
	// OutageFrom and OutageUntil bound a time in which the worker that claims could not renew its
	// own leases. A lease that ended after the one and not after the other counts no crash: whoever
	// held it had perhaps no database either. Zero: there was no such time.
	OutageFrom, OutageUntil time.Time
}

// Excuses reports whether a lease that ended then counts no crash.
func (q *ClaimQuery) Excuses(leaseEnd time.Time) bool {
	return leaseEnd.After(q.OutageFrom) && !leaseEnd.After(q.OutageUntil)
}

// SuspectAfter is how many crashes in a row without a new checkpoint make a run a
// suspect. The number also stands in claim.sql and claim_crashed_twice.sql.
const SuspectAfter = 2

// Pair is one place a run may wait in.
type Pair struct{ Queue, Workflow string }

// Overdue is a place that has a run which was due.
type Overdue struct {
	Pair
	Run   uuid.UUID // that has been due for longest
	Since time.Time // when it was due
}

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
	Rest    Rest   // of the history, which is to be read by HistoryFrom
	// Progress is how many terminal checkpoints the run had when its crashes were last counted: with more
	// than that now, they were followed by a new checkpoint.
	Progress int
}

// Rest says whether, and with which name, a history goes on beyond what was read.
type Rest struct {
	More bool
	From string
}

// Heartbeat is what a worker tells the database a few times a lease.
type Heartbeat struct {
	Worker     Worker // HeartbeatAt is set by the store from the database's clock
	Leases     []Lease
	LeaseUntil time.Time // when the worker itself counts as gone, too, unless it is heard of before; zero: at once
}

// Lease names a run held, and the epoch it is held with.
type Lease struct {
	Run      uuid.UUID
	Epoch    Epoch
	Deadline time.Time // of the run, as its holder knows it; only News looks at it
}

// Pulse is the answer to a Heartbeat.
type Pulse struct {
	Now  time.Time   // the database's clock
	Lost []uuid.UUID // leases not extended: another owns the run, or it no longer runs
	Busy []uuid.UUID // leases not extended since another transaction holds the run's row
	// Rewinds are what the database lacks of what was acknowledged, each told once.
	Rewinds []Rewind
}

// Made reports whether the row is what this write wanted, by the same hand: the write
// was committed before, and its answer was lost.
func (w *StepWrite) Made(row *Step) bool {
	want := &w.Step
	return row.Epoch == want.Epoch && row.Attempt == want.Attempt && row.Status == want.Status &&
		samePayload(row.Output, want.Output) && samePayload(row.Error, want.Error)
}

// CancelForbids reports whether a run of which these bits are set cannot end as the write
// wants: only Cancelled ends a run that is to be cancelled.
func (w *RunWrite) CancelForbids(asked Bits) bool {
	return asked&CancelAsked != 0 && w.Status.Terminal() && w.Status != Cancelled
}

// Made reports whether the row is what this write wanted; see StepWrite.Made.
func (w *RunWrite) Made(row *Run) bool {
	return row.Epoch == w.Epoch && row.Status == w.Status &&
		samePayload(row.Output, w.Output) && samePayload(row.Error, w.Error)
}

// samePayload tells no payload from an empty one.
func samePayload(l, r []byte) bool { return (l == nil) == (r == nil) && bytes.Equal(l, r) }
