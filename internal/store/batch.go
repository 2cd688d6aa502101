package store

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Batch is what one flush of the journal writes, in one transaction and in this order: Starts, Steps, Receives, Signals,
// OwnershipEnds. A batch never holds two writes of one step, nor two of one run.
//
// If an item concerns two runs, or a signal (starts and ends of children, receives, signals), the rows of all these runs are
// locked first, in the order of (shard, id). So a signal and a receive, or a child's start and its parent's cancel, happen one
// after the other.
type Batch struct {
	Starts        []*StartWrite
	Steps         []*StepWrite
	Receives      []*ReceiveWrite
	Signals       []*SignalWrite
	OwnershipEnds []*OwnershipEnd

	// ShortLockWait shortens the wait for rows that other transactions have locked. The caller retries.
	ShortLockWait bool
}

// Len returns the number of items.
func (b *Batch) Len() int {
	return len(b.Starts) + len(b.Steps) + len(b.Receives) + len(b.Signals) + len(b.OwnershipEnds)
}

// StartWrite creates a run: owned by its creator (Owner valid, status Running, an epoch of count 1
// with a nonce of its own, WakeAt the lease's expiry) or claimable (status Pending, the zero
// epoch, WakeAt when it may start).
type StartWrite struct {
	Run Run // UUID, Parent, Name, Workflow, Version, Queue, Priority, Status, Epoch, Owner, Input, Trace, Detached, CreatedAt, StartedAt, WakeAt, Deadline
	// ParentEpoch is the epoch at which the writer owns the parent of a child. The child is
	// created only if the parent is still Running at this epoch and its Control is zero.
	ParentEpoch Epoch
	Tags        []Tag         // set if the run is created; keys differ
	Timeout     time.Duration // from which Run.Deadline follows, in microseconds; zero: none. It does not count the delay before
	// Place is the run's place in a queue with a row, or records StartBy of a run in a queue without one. It is written if the
	// run is created. With a Place, the caller also sets Run.Admission and, if StartBy is set, Run.Control. Nil means none.
	Place *QueuePlace

	// Outcome is Written; Adopted if a run with this Name and Parent exists; or, for a child,
	// Fenced (see RunState, which is the parent's) or Locked (the parent's row is locked). If the
	// call is retried after an ambiguous commit, the store finds Run.UUID itself, and the outcome
	// is Written.
	Outcome Outcome
	// Existing is the complete row of the existing run if Outcome is Adopted. The engine decides
	// whether it counts as the same start.
	Existing *Run
	RunState RunState
}

// StepWrite records the state of a step, if the run is still Running at the epoch Step.Epoch. A pause or cancel request (Control)
// does not prevent the write, with one exception: the Started row of a child is Fenced, like the child's start. RunState shows the
// request. The first write after a request needs a second statement.
type StepWrite struct {
	Step Step // Epoch is the writer's

	// RowExists tells that a row which is not terminal (a started marker or a backoff) exists, as far as the writer knows. The
	// store updates that row, with SKIP LOCKED. If RowExists is false, the store inserts a row, and an existing row is a
	// conflict.
	RowExists bool

	Encoded *EncodedPayloads // see there

	// Outcome is Written; Adopted, if a terminal row existed (Recorded holds it); Fenced, and then RunState holds the state of the
	// run; or Locked. If RowExists was wrong, the store tries an insert instead of the update, or the reverse. A marker or
	// backoff that is older than a row of the same epoch changes nothing, and its outcome is Written.
	Outcome  Outcome
	Recorded *Step
	RunState RunState
}

// ReceiveWrite takes the oldest waiting signal named Signal for a step of the run, if the run is still
// Running at Step.Epoch. If there is a signal, the step becomes Completed, Output is the signal's
// payload, and the signal is marked as taken by the step in the same transaction. If no signal waits,
// the store writes Step as the caller gave it: as Started, which waits until NextAt, or with a terminal status once the timeout is over.
// An existing row of the same attempt keeps its StartedAt and NextAt. If the existing row is
// terminal, the outcome is Adopted, and no signal is taken.
//
// If a row of the same or a later attempt exists and has a NextAt, only a signal that arrived by
// that time (see Signal.ArrivedAt) is taken. A signal that arrives after NextAt remains for other receives.
//
// A pause or cancel request (Control) does not prevent the write.
type ReceiveWrite struct {
	Step   Step
	Signal string
	// Receiver is what the row of the signal shows as its receiver. Empty means the name of the step, which is right for a run that
	// has never continued as new, because no earlier generation has a receive with this name.
	Receiver string

	// Outcome is Written; Adopted, if another write has recorded the step (Recorded holds its row); Fenced; or Locked, if another
	// transaction has locked the run's row.
	Outcome  Outcome
	Recorded *Step
	RunState RunState
}

// PayloadEncoder returns the payload of a signal to the run as it is stored.
type PayloadEncoder interface {
	EncodePayloadFor(run uuid.UUID) ([]byte, error)
}

// EncodePayloadFor sets the run of the signal, and its payload as it is stored. When a signal is sent in a user's transaction, the
// store calls it after it has found the run.
func (w *SignalWrite) EncodePayloadFor(run uuid.UUID) (err error) {
	if w.Run = run; w.Encoder != nil {
		w.Payload, err = w.Encoder.EncodePayloadFor(run)
	}
	return err
}

// SignalWrite is a named message to a run that has not ended. If the run waits, the signal wakes it.
type SignalWrite struct {
	Run       uuid.UUID
	ID        uuid.UUID
	Name      string
	Key       string // if not empty, an idempotency key: the run keeps one signal for each key
	Payload   []byte
	CreatedAt time.Time // signals of one name are received in the order of (CreatedAt, ID)

	// Encoder returns Payload as it is stored, if the run is found only in the transaction that writes the signal. Nil means Payload is as
	// it is stored.
	Encoder PayloadEncoder

	// ArrivedAt is compared with the timeout of a receive. Only tests with a clock of their own set
	// it. If it is zero, the store reads the database's clock in the transaction that writes the
	// signal, after it has locked the run. So a receive that timed out committed before the signal.
	ArrivedAt time.Time

	// Act is recorded in an event if the signal is new. A batch holds at most one such signal for each run.
	Act Act

	// Outcome is Written; Adopted, if the key was used before (Existing holds that signal); Fenced, if the run has ended or does
	// not exist; or Locked, if another transaction has locked the run's row. A retry after an ambiguous commit finds ID itself,
	// and its outcome is Written.
	Outcome  Outcome
	Existing *SignalWrite // Run, ID, Name, Key, Payload and CreatedAt are set; ArrivedAt is zero
	RunState RunState
}

// OwnershipEnd ends one ownership of a run, if the run is still Running at Epoch. The run finishes (Completed, Failed, Cancelled,
// Expired), parks (Waiting), becomes claimable again (Pending) or is paused (Paused). Owner becomes NULL. WakeAt is zero except
// for Pending, and for Waiting with a timer.
//
// A pause or cancel request that arrived meanwhile takes precedence:
//   - A run whose cancel was requested can end only as Cancelled. Any other end is Fenced, RunState
//     shows the request, and the run does not change. If the write parks or releases the run, it
//     becomes Pending at Now, so that a worker executes its compensations.
//   - A run whose pause was requested becomes Paused, without WakeAt.
//   - A run that was marked as woken parks with WakeAt = Now.
//
// The end of a child wakes its parent: a Waiting parent becomes claimable at Now, a Running parent
// is marked as woken. With CountingCall it may only be counted: see AwaitChildEndsRequest.
//
// Held releases a run because the database rejects or locks out its writes. Status is Pending. It
// counts as a crash, and as the first one if the run has more terminal checkpoints than at its last
// crash. The run becomes claimable at HoldUntil, even if its cancel was requested. If MaxCrashes is
// not zero and the run has reached it, the run becomes Paused instead, as by a claim. A run whose
// pause was requested becomes Paused, without a crash. Reason is cleared when the run parks, ends
// or is resumed. A claim after a lost lease clears it too, if the run has new checkpoints since its last crash. RunState holds
// the new state.
//
// Held with Uncounted, for a cause that is not the run's, leaves the count of crashes as it is, and never pauses the run.
//
// Held with a Divergence makes the run Paused with the control bit HeldForDrift, without a crash, even if
// its cancel was requested, and records the divergence in place of an earlier one of the same version. The
// Reason is that of the write, unless a pause was requested that has a reason.
type OwnershipEnd struct {
	UUID   uuid.UUID
	Parent uuid.NullUUID // the run to wake, if a child ends
	// CountingCall is the name of the call of the parent that counts the ends of its children, as the name of the child says (see
	// AwaitChildEndsRequest); empty means none.
	CountingCall string
	Now          time.Time
	Epoch        Epoch
	Status       Status
	Output       []byte
	Error        []byte
	Reason       string
	Trace        string // replaces the row's trace, unless empty
	WakeAt       time.Time
	EndedAt      time.Time

	// FailedStep and FailedType are the step and the type of the error of a run that ends as Failed or Expired. They are
	// stored as they are, whatever form Error has. They are not written with another status. See FailureKey.
	FailedStep, FailedType string

	HoldsRun   bool
	MaxCrashes int         // with Held; see ClaimQuery
	Uncounted  bool        // with Held: it is no crash, and the run becomes claimable after UncountedHoldDelay
	Divergence *Divergence // with Held: the run is held for drift

	Encoded *EncodedPayloads // see there

	// Outcome is Written; Fenced, and then RunState holds the state of the run; or Locked, if another transaction has locked the row
	// of the run or of its parent.
	Outcome  Outcome
	RunState RunState
}

// EncodedPayloads are the encoded payloads of a write, which package coded keeps in the write. A write that is repeated must have the
// same bytes, so that it is recognized as committed before, and an encryption gives other bytes each time.
type EncodedPayloads struct{ Output, Error, Failures EncodedPayload }

// EncodedPayload is a payload and its encoded form.
type EncodedPayload struct{ Plain, Encoded []byte }

// HasFailed reports whether the run ends as Failed or Expired.
func (w *OwnershipEnd) HasFailed() bool { return w.Status == Failed || w.Status == Expired }

// HoldDelay returns how long a run that was released with OwnershipEnd.Held is not claimable: one second
// after its first crash, four times as long after each further crash, and at most five minutes.
func HoldDelay(crashes int16) time.Duration {
	const most = 5 * time.Minute
	if crashes > 5 {
		return most
	}
	return min(time.Second<<(2*max(crashes-1, 0)), most)
}

// UncountedHoldDelay is how long a run that was released with OwnershipEnd.Uncounted is not claimable.
// run_hold_after_rejected_write.sql has the same value.
const UncountedHoldDelay = 30 * time.Second

// HoldUntil returns when a run that was released with OwnershipEnd.Held becomes claimable: after HoldDelay,
// or at its deadline if that is in the future and comes first. run_hold_after_rejected_write.sql has the same rule.
func HoldUntil(w *OwnershipEnd, now time.Time, crashes int16, deadline time.Time) time.Time {
	wakeAt := now.Add(HoldDelay(crashes))
	if w.Uncounted {
		wakeAt = now.Add(UncountedHoldDelay)
	}
	if deadline.After(now) && deadline.Before(wakeAt) {
		return deadline
	}
	return wakeAt
}

// HeldTooOftenReason returns the reason of a run that OwnershipEnd.Held has paused. run_hold_after_rejected_write.sql has the same
// text.
func HeldTooOftenReason(reason string, crashes int16) string {
	return fmt.Sprintf("%s; the run was held, or its process died or lost its lease, %d times in a row without a new checkpoint: resume it when the cause is mended", reason, crashes)
}

// CrashedTooOftenReason returns the reason of a run that a claim has paused; see ClaimQuery.MaxCrashes.
// claim_runs.sql has the same text.
func CrashedTooOftenReason(crashes int16) string {
	return fmt.Sprintf("its process died or lost its lease %d times in a row without a new checkpoint: find the cause, then resume the run", crashes)
}

// ClaimQuery describes which due runs a worker claims. They are claimed in this order, except that a
// suspect comes first: by priority, the higher first; then by lane, in an order that begins at a random
// lane in each claim; then by WakeAt, the oldest first. So a lane with many due runs delays the other lanes
// of its priority by one claim only. A priority with due runs at all times delays the lower ones forever.
type ClaimQuery struct {
	Worker uuid.UUID // the owner of the claimed runs
	// Owners is set if workers of one process claim together. Each claimed run then has one of them as its owner instead of Worker, and
	// each of them gets at most as many runs as it occurs here. There are Limit owners.
	Owners     []uuid.UUID
	Nonce      uint32             // the nonce of the claimed runs' epochs; each claim draws a new one
	Filter     *ClaimFilter       // what the worker claims; a claim reads no other runs
	QueueRules *QueueClaimRules   // the queues with a row; nil: none
	Versions   *VersionClaimRules // which runs belong to other versions; nil: none, and claimed runs keep their versions
	Limit      int                // the maximal number of runs
	// MaxSuspects is how many of the runs may be suspects, which have SuspectAfter or more crashes: 0 or 1. A suspect is
	// claimed before the other runs. So a worker executes suspects one at a time. If a suspect kills its process, no other
	// suspect counts a crash.
	MaxSuspects int
	Now         time.Time
	LeaseUntil  time.Time
	// MaxCrashes is how many consecutive claims may follow a lost lease without a new checkpoint.
	// The claim that reaches it pauses the run instead, with a reason. Zero means no limit.
	MaxCrashes int
	// OutageFrom and OutageUntil bound a time in which the claiming worker could not renew its own
	// leases. A lease that ended after OutageFrom and not after OutageUntil counts no crash, because
	// its holder perhaps had no database either. Both are zero if there was no outage.
	OutageFrom, OutageUntil time.Time
}

// RunOwners returns Owners or, if these are not set, Worker. The claimed run i may get the owner i, modulo their number.
func (q *ClaimQuery) RunOwners() []uuid.UUID {
	if len(q.Owners) > 0 {
		return q.Owners
	}
	return []uuid.UUID{q.Worker}
}

// LeaseEndedInOutage reports whether the loss of a lease with this end counts no crash, because it ended during
// the worker's outage.
func (q *ClaimQuery) LeaseEndedInOutage(leaseEnd time.Time) bool {
	return leaseEnd.After(q.OutageFrom) && !leaseEnd.After(q.OutageUntil)
}

// ExtendOutage extends the outage by the end of a lease whose run was not executed. If that is more than a lease later than the
// outage, it becomes the outage instead.
func (q *ClaimQuery) ExtendOutage(leaseEnd time.Time) {
	lease := q.LeaseUntil.Sub(q.Now)
	switch before := leaseEnd.Add(-time.Microsecond); {
	case leaseEnd.After(q.Now) || leaseEnd.Before(q.OutageFrom.Add(-lease)):
	case leaseEnd.After(q.OutageUntil.Add(lease)):
		q.OutageFrom, q.OutageUntil = before, leaseEnd
	default:
		if before.Before(q.OutageFrom) {
			q.OutageFrom = before
		}
		if leaseEnd.After(q.OutageUntil) {
			q.OutageUntil = leaseEnd
		}
	}
}

// SuspectAfter is how many consecutive crashes without a new checkpoint make a run a suspect.
// claim_runs.sql and claim_due_runs_crashed_twice.sql have the same number.
const SuspectAfter = 2

// QueueWorkflow is a queue together with a workflow.
type QueueWorkflow struct{ Queue, Workflow string }

// OverdueLane is a lane with at least one run that was overdue.
type OverdueLane struct {
	QueueWorkflow
	Lane  ClaimLane
	Run   uuid.UUID // the run that has been due for the longest time
	Since time.Time // when that run was due
}

// ClaimResult is the result of Store.Claim.
type ClaimResult struct {
	Runs []ClaimedRun
	// NextDue is the earliest wake_at that is later than ClaimQuery.Now, of the lanes from which the worker
	// claims, or zero if there is none.
	NextDue time.Time
	// NewVersions says that nothing was claimed, because a version has arrived that ClaimQuery.Versions does not know. The
	// caller reads the versions and claims again.
	NewVersions bool
}

// ClaimedRun is a run that the worker now owns. If its Status is Paused, the claim has instead paused
// the run for its crashes, and History is empty.
type ClaimedRun struct {
	Run           Run
	History       []Step        // ordered by name
	UnreadHistory UnreadHistory // tells whether HistoryFrom has to read more
	// CheckpointsAtLastCrash is how many terminal checkpoints the run had when its crashes were last counted. If the run has more
	// terminal checkpoints now, it has made progress since that crash.
	CheckpointsAtLastCrash int
	BypassesQueue          bool // its admission state is AdmissionBypassed
}

// UnreadHistory tells whether a history has more checkpoints than were read, and the name of the next one.
type UnreadHistory struct {
	Exists        bool
	FirstStepName string
}

// Heartbeat renews a worker's registration and its leases. A worker sends several during a lease.
type Heartbeat struct {
	Worker     Worker // the store sets HeartbeatAt from the database's clock
	Leases     []Lease
	LeaseUntil time.Time // without another heartbeat, the worker counts as gone from this time; zero means at once
}

// Lease is the ownership of a run at an epoch.
type Lease struct {
	Run         uuid.UUID
	Epoch       Epoch
	RunDeadline time.Time // of the run, as its owner knows it; used only by Store.Notifications
}

// RenewResult is the result of Store.Renew.
type RenewResult struct {
	Now    time.Time   // the database's clock
	Lost   []uuid.UUID // not extended: another worker owns the run, or the run is no longer running
	Locked []uuid.UUID // not extended: another transaction has locked the run's row
	// Quiet and LastChange are the worker's values in the database, where operators set them.
	Quiet      bool
	LastChange *OperatorChange
	// DatabaseRewinds lists the acknowledged data that the database has lost. Each Rewind is reported once.
	DatabaseRewinds []Rewind
	// Warning is what the worker logs: what is wrong with the store although calls succeed, and what to do. Each is returned to one
	// worker, and at most one a minute; usually it is empty.
	Warning string
}
