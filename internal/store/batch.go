package store

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Batch holds the writes of one flush of the journal. A store writes a batch in one transaction and in this order: Starts,
// Steps, Receives, Signals, OwnershipEnds. A batch never holds two writes of one step, nor two ends of one run.
//
// A store first locks the runs of all items that concern two runs or a signal, in the order of (shard, id). Such items are
// starts and ends of children, receives and signals. So a signal and a receive of one run, or a child's start and its parent's
// cancel, happen one after the other.
type Batch struct {
	Starts        []*StartWrite
	Steps         []*StepWrite
	Receives      []*ReceiveWrite
	Signals       []*SignalWrite
	OwnershipEnds []*OwnershipEnd

	// ShortLockWait shortens the wait for rows that other transactions have locked. The caller retries the batch.
	ShortLockWait bool
}

// Len returns the number of items.
func (b *Batch) Len() int {
	return len(b.Starts) + len(b.Steps) + len(b.Receives) + len(b.Signals) + len(b.OwnershipEnds)
}

// StartWrite creates a run that its creator owns or that any worker may claim. An owned run has a valid Owner, the status
// Running, an epoch of count 1 with its own nonce, and WakeAt at the lease's expiry. A claimable run has the status Pending,
// the zero epoch, and WakeAt at the time when the run may start.
type StartWrite struct {
	Run Run // UUID, Parent, Name, Workflow, Version, Queue, Priority, Status, Epoch, Owner, Input, Trace, Detached, CreatedAt, StartedAt, WakeAt, Deadline
	// ParentEpoch is the epoch at which the writer owns the parent of a child. A store creates the child only if the parent is
	// still Running at ParentEpoch and the parent's Control is zero.
	ParentEpoch Epoch
	Tags        []Tag         // set if the run is created; keys differ
	Timeout     time.Duration // from which Run.Deadline follows, in microseconds; zero: none. It does not count the delay before
	// Place is the run's place in a queue that has a row. For a queue without a row, Place only records the StartBy of the run.
	// A store writes Place if it creates the run. A caller that sets Place also sets Run.Admission and, if StartBy is set,
	// Run.Control. Place is nil if the run has no place.
	Place *QueuePlace

	// Outcome is Written, or Adopted if a run with the same Name and Parent exists. The Outcome of a child can also be Fenced
	// (then RunState is the parent's state) or Locked (the parent's row is locked). If a caller retries the start after an
	// ambiguous commit, the store finds Run.UUID, and the Outcome is Written.
	Outcome WriteOutcome
	// Existing is the complete row of the existing run if Outcome is Adopted. The engine decides whether the existing run comes
	// from the same start.
	Existing *Run
	RunState RunState
}

// StepWrite records the state of a step, if the run is still Running at the epoch Step.Epoch. A pause or cancel request does
// not prevent the write, except for the Started row of a child: that write is Fenced, like the child's start. RunState shows
// the request. The first step write after a request needs a second statement.
type StepWrite struct {
	Step Step // Epoch is the writer's

	// RowExists reports whether, as far as the writer knows, the step has a row without a final outcome (a started marker or a
	// backoff). If RowExists is true, the store updates the row, with SKIP LOCKED. If RowExists is false, the store inserts a
	// row, and an existing row is a conflict.
	RowExists bool

	Encoded *EncodedPayloads // see there

	// Outcome is Written, Adopted, Fenced or Locked. If the step already had a terminal row, Outcome is Adopted and Recorded
	// holds the row. If Outcome is Fenced, RunState holds the state of the run. If RowExists was wrong, the store tries an
	// insert instead of the update, or an update instead of the insert. A started marker or backoff that is older than a row of
	// the same epoch changes nothing, and the Outcome is Written.
	Outcome  WriteOutcome
	Recorded *Step
	RunState RunState
}

// ReceiveWrite takes the oldest waiting signal named Signal for a step of the run, if the run is still
// Running at Step.Epoch. If a signal waits, the store records the step as Completed with the signal's payload as Output, and
// marks the signal as taken, in one transaction. If no signal waits, the store writes the caller's Step: as Started, which
// waits until NextAt, or with a terminal status once the timeout has passed. An existing row of the same attempt keeps its
// StartedAt and NextAt. If the existing row is terminal, the receive is Adopted and takes no signal.
//
// If a row of the same or a later attempt has a NextAt, the receive takes only a signal that arrived by NextAt (see
// SignalWrite.ArrivedAt). A signal that arrives after the NextAt of a receive remains for other receives.
//
// A pause or cancel request does not prevent a receive.
type ReceiveWrite struct {
	Step   Step
	Signal string
	// Receiver is the name of the receiver that the store records in the row of the signal. If Receiver is empty, the store
	// records the name of the step. An empty Receiver is right only for a run that has never continued as new, because an
	// earlier generation may have a receive with the same name.
	Receiver string

	// Outcome is Written, Adopted, Fenced or Locked. If another write has recorded the step, Outcome is Adopted and Recorded
	// holds the step's row. Outcome is Locked if another transaction has locked the run's row.
	Outcome  WriteOutcome
	Recorded *Step
	RunState RunState
}

// PayloadEncoder returns the encoded payload of a signal to the run, in the form that the store writes.
type PayloadEncoder interface {
	EncodePayloadFor(run uuid.UUID) ([]byte, error)
}

// EncodePayloadFor sets the run of the signal and encodes the signal's payload for the run. If a user sends the signal in a
// transaction of their own, the store calls EncodePayloadFor after it has found the run.
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

	// Encoder encodes Payload if only the transaction that writes the signal finds the run. Encoder is nil if Payload is
	// already encoded.
	Encoder PayloadEncoder

	// ArrivedAt is compared with the timeout of a receive. Only tests with a clock of their own set ArrivedAt. If ArrivedAt is
	// zero, the store locks the run and then reads the database's clock in the transaction that writes the signal. So a signal
	// that is committed after a timed-out receive also has a later ArrivedAt than the receive.
	ArrivedAt time.Time

	// Act is the act that an event records if the signal is new. A batch holds at most one signal with an Act for each run.
	Act ActorAndReason

	// Outcome is Written, Adopted, Fenced or Locked. If an earlier signal has the same key, Outcome is Adopted and Existing
	// holds the earlier signal. Outcome is Fenced if the run has ended or does not exist. Outcome is Locked if another
	// transaction has locked the run's row. A retry after an ambiguous commit finds the signal with the same ID, and its
	// Outcome is Written.
	Outcome  WriteOutcome
	Existing *SignalWrite // Run, ID, Name, Key, Payload and CreatedAt are set; ArrivedAt is zero
	RunState RunState
}

// OwnershipEnd ends one ownership of a run, if the run is still Running at Epoch. The run finishes (Completed, Failed, Cancelled,
// Expired), parks (Waiting), becomes claimable again (Pending) or is paused (Paused). The store sets the run's Owner to NULL.
// WakeAt is zero except for a Pending run, and for a Waiting run with a timer.
//
// A pause or cancel request that arrived during the ownership takes precedence:
//   - A run whose cancel was requested can end only as Cancelled. An end with another status is Fenced, RunState shows the
//     request, and the run does not change. If the write parks or releases the run, the run becomes Pending at Now, so that a
//     worker executes the run's compensations.
//   - A run whose pause was requested becomes Paused, without WakeAt.
//   - If the write parks a run that was marked as woken, its WakeAt becomes Now.
//
// The end of a child wakes its parent: a Waiting parent becomes claimable at Now, and a Running parent is marked as woken. If
// CountingCall is set, the end may only increase a count instead of waking the parent; see SetAwaitedChildEndsRequest.
//
// Held releases a run because the database rejects or locks out its writes. The Status of a held run is Pending. A hold counts
// as a crash of the run. If the run has more terminal checkpoints than at its last crash, the count of crashes begins anew at
// one. A held run becomes claimable at HoldUntil, even if its cancel was requested. If MaxCrashes is not zero and the run has
// reached MaxCrashes, the run becomes Paused, as by a claim. A held run whose pause was requested becomes Paused, without a
// crash. The store clears the Reason of a hold when the run parks, ends or is resumed. A claim after a lost lease also clears
// the Reason if the run has new checkpoints since its last crash. RunState holds the new state of the run.
//
// Held with Uncounted, for a cause that does not lie in the run, does not change the run's count of crashes and never pauses
// the run.
//
// Held with a Divergence pauses the run with the control bit HeldForDrift, without a crash, even if its cancel was requested.
// The store records the divergence and replaces an earlier divergence of the same version. The run gets the Reason of the
// write, unless a requested pause has a reason of its own.
type OwnershipEnd struct {
	UUID   uuid.UUID
	Parent uuid.NullUUID // the run to wake, if a child ends
	// CountingCall is the name of the parent's call that counts the ends of its children; see SetAwaitedChildEndsRequest. The name
	// of the child contains the name of the call. CountingCall is empty if no call counts the end.
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

	// FailedStep and FailedType are the step and the type of the error of a run that ends as Failed or Expired. A store writes
	// FailedStep and FailedType without an encoding, and only with the status Failed or Expired. See FailureKey.
	FailedStep, FailedType string

	HoldsRun   bool
	MaxCrashes int         // with Held; see ClaimQuery
	Uncounted  bool        // with Held: it is no crash, and the run becomes claimable after UncountedHoldDelay
	Divergence *Divergence // with Held: the run is held for drift

	Encoded *EncodedPayloads // see there

	// Outcome is Written, Fenced or Locked. If Outcome is Fenced, RunState holds the state of the run. Outcome is Locked if
	// another transaction has locked the row of the run or of its parent.
	Outcome  WriteOutcome
	RunState RunState
}

// EncodedPayloads are the encoded payloads that package coded keeps in a write. A repeated write must have the same bytes, so
// that the store recognizes a write that was committed before. Encryption produces different bytes each time, so a write is
// encoded only once.
type EncodedPayloads struct{ Output, Error, Failures EncodedPayload }

// EncodedPayload is a payload and its encoded form.
type EncodedPayload struct{ Plain, Encoded []byte }

// HasFailed reports whether the run ends as Failed or Expired.
func (w *OwnershipEnd) HasFailed() bool { return w.Status == Failed || w.Status == Expired }

// HoldDelay returns how long no worker can claim a run that was released with OwnershipEnd.Held. The delay is one second after
// the first crash, four times as long after each further crash, and at most five minutes.
func HoldDelay(crashes int16) time.Duration {
	const most = 5 * time.Minute
	if crashes > 5 {
		return most
	}
	return min(time.Second<<(2*max(crashes-1, 0)), most)
}

// UncountedHoldDelay is how long no worker can claim a run that was released with OwnershipEnd.Uncounted. The statement
// run_hold_after_rejected_write.sql has the same value.
const UncountedHoldDelay = 30 * time.Second

// HoldUntil returns when a run that was released with OwnershipEnd.Held becomes claimable: after HoldDelay, or at the run's
// deadline if the deadline is in the future and comes first. The statement run_hold_after_rejected_write.sql has the same rule.
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

// HeldTooOftenReason returns the Reason of a run that OwnershipEnd.Held has paused after too many crashes. The statement
// run_hold_after_rejected_write.sql has the same text.
func HeldTooOftenReason(reason string, crashes int16) string {
	return fmt.Sprintf("%s; the run was held, or its process died or lost its lease, %d times in a row without a new checkpoint: resume it when the cause is mended", reason, crashes)
}

// CrashedTooOftenReason returns the Reason of a run that a claim has paused after too many crashes; see ClaimQuery.MaxCrashes.
// The statement claim_runs.sql has the same text.
func CrashedTooOftenReason(crashes int16) string {
	return fmt.Sprintf("its process died or lost its lease %d times in a row without a new checkpoint: find the cause, then resume the run", crashes)
}

// ClaimQuery describes which due runs a worker claims. A suspect comes first. Other runs are claimed by priority, the highest
// first, then by lane, then by WakeAt, the oldest first. The order of the lanes begins at a random lane in each claim. So a
// lane with many due runs delays the other lanes of its priority by one claim only. A priority that always has due runs delays
// the lower priorities forever.
type ClaimQuery struct {
	Worker uuid.UUID // the owner of the claimed runs
	// Owners is set if workers of one process claim together. Then a worker of Owners owns each claimed run, and Worker is not
	// used. A worker gets at most as many runs as it has entries in Owners. Owners has Limit entries.
	Owners     []uuid.UUID
	Nonce      uint32             // the nonce of the claimed runs' epochs; each claim draws a new one
	Filter     *ClaimFilter       // what the worker claims; a claim reads no other runs
	QueueRules *QueueClaimRules   // the queues with a row; nil: none
	Versions   *VersionClaimRules // which runs belong to other versions; nil: none, and claimed runs keep their versions
	Limit      int                // the maximal number of runs
	// MaxSuspects is how many suspects a claim may take: 0 or 1. A suspect is a run with SuspectAfter or more crashes, and is
	// claimed before other runs. So a worker executes suspects one at a time, and a suspect that kills its process adds no
	// crash to another suspect.
	MaxSuspects int
	Now         time.Time
	LeaseUntil  time.Time
	// MaxCrashes is how many consecutive claims of a run may follow a lost lease without a new checkpoint. The claim that
	// reaches MaxCrashes pauses the run, with a reason, instead of executing the run. Zero means no limit.
	MaxCrashes int
	// OutageFrom and OutageUntil bound a time in which the claiming worker could not renew its own leases. The loss of a lease
	// that ended after OutageFrom and not after OutageUntil counts as no crash, because the holder may have had no database
	// either. OutageFrom and OutageUntil are zero if there was no outage.
	OutageFrom, OutageUntil time.Time
}

// OwnersOfClaimedRuns returns Owners, or only Worker if Owners is not set. The claimed run i may get the owner i, modulo the number of
// owners.
func (q *ClaimQuery) OwnersOfClaimedRuns() []uuid.UUID {
	if len(q.Owners) > 0 {
		return q.Owners
	}
	return []uuid.UUID{q.Worker}
}

// LeaseEndedInOutage reports whether a lease with the given end was lost during the worker's outage, so that the loss counts as
// no crash.
func (q *ClaimQuery) LeaseEndedInOutage(leaseEnd time.Time) bool {
	return leaseEnd.After(q.OutageFrom) && !leaseEnd.After(q.OutageUntil)
}

// ExtendOutage extends the outage to the end of a lease whose run was not executed. If the lease ended more than the length of
// a lease after the outage, its end becomes a new outage instead.
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

// SuspectAfter is how many consecutive crashes without a new checkpoint make a run a suspect. The statements claim_runs.sql and
// claim_select_due_runs_crashed_twice.sql have the same number.
const SuspectAfter = 2

// QueueWorkflow is a queue together with a workflow.
type QueueWorkflow struct{ Queue, Workflow string }

// OverdueLane is a lane with at least one overdue run.
type OverdueLane struct {
	QueueWorkflow
	Lane  ClaimLane
	Run   uuid.UUID // the run that has been due for the longest time
	Since time.Time // when that run was due
}

// ClaimResult is the result of Store.Claim.
type ClaimResult struct {
	Runs []ClaimedRun
	// NextDue is the earliest wake_at after ClaimQuery.Now in the lanes from which the worker claims. NextDue is zero if no run
	// becomes due later.
	NextDue time.Time
	// NewVersions reports that the claim took no run because ClaimQuery.Versions does not know a version that has arrived. The
	// caller reads the versions and claims again.
	NewVersions bool
}

// ClaimedRun is a run that the worker now owns. If the Status of a ClaimedRun is Paused, the claim has paused the run for its
// crashes, the worker does not own the run, and History is empty.
type ClaimedRun struct {
	Run           Run
	History       []Step        // ordered by name
	UnreadHistory UnreadHistory // tells whether HistoryFrom has to read more
	// CheckpointsAtLastCrash is how many terminal checkpoints the run had at its last counted crash. If the run now has more
	// terminal checkpoints, the run has made progress since the crash.
	CheckpointsAtLastCrash int
	BypassesQueue          bool // its admission state is AdmissionBypassed
}

// UnreadHistory tells whether a history has more checkpoints than a claim has read, and the name of the first unread
// checkpoint.
type UnreadHistory struct {
	Exists        bool
	FirstStepName string
}

// Heartbeat renews a worker's registration and its leases. A worker sends several heartbeats during a lease.
type Heartbeat struct {
	Worker     Worker // the store sets HeartbeatAt from the database's clock
	Leases     []Lease
	LeaseUntil time.Time // without another heartbeat, the worker counts as gone from this time; zero means at once
}

// Lease is the ownership of a run at an epoch.
type Lease struct {
	Run         uuid.UUID
	Epoch       Epoch
	RunDeadline time.Time // of the run, as its owner knows it; used only by Store.OwnedRunChanges
}

// RenewResult is the result of Store.Renew.
type RenewResult struct {
	Now    time.Time   // the database's clock
	Lost   []uuid.UUID // not extended: another worker owns the run, or the run is no longer running
	Locked []uuid.UUID // not extended: another transaction has locked the run's row
	// Quiet and LastChange are the worker's values in the database, where operators set them.
	Quiet      bool
	LastChange *OperatorChange
	// DatabaseRewinds lists the acknowledged data that the database has lost. The store reports each Rewind once.
	DatabaseRewinds []DatabaseRewind
	// Warning is a text that the worker logs. Warning says what is wrong with the store although calls succeed, and what an
	// operator should do. The store returns each warning to one worker only, and at most one warning a minute. Warning is
	// usually empty.
	Warning string
}
