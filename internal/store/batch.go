package store

import (
	"fmt"
	"time"

	"github.com/google/uuid"
)

// Batch holds the writes of one flush of the journal. A store writes a batch in one transaction and in this order: Starts, Steps, Receives,
// Signals, OwnershipEnds. A batch never holds two writes of the same step, nor two ends of the same run.
//
// Before it writes a batch, a store locks, in the order of (shard, id), the parents of children that start or end, the runs that receive a
// signal, and the runs to which a signal is sent. So a signal and a receive of the same run, or the start of a child and the cancel of its
// parent, happen one after the other.
type Batch struct {
	Starts        []*StartWrite
	Steps         []*StepWrite
	Receives      []*ReceiveWrite
	Signals       []*SignalWrite
	OwnershipEnds []*OwnershipEnd

	// ShortLockWait makes the store wait only a short time for rows that other transactions have locked. A caller that sets ShortLockWait
	// retries the batch if a row stays locked.
	ShortLockWait bool
}

// Len returns the number of items in the batch.
func (b *Batch) Len() int {
	return len(b.Starts) + len(b.Steps) + len(b.Receives) + len(b.Signals) + len(b.OwnershipEnds)
}

// StartWrite creates a run that its creator owns or that any worker may claim. A run that its creator owns has a valid Owner, the status
// Running, an epoch of count 1 with a random nonce, and the expiry of its lease as WakeAt. A run that any worker may claim has the status
// Pending, the zero epoch, and the time at which it may start as WakeAt.
type StartWrite struct {
	Run Run // UUID, Parent, Name, Workflow, Version, Queue, Priority, Status, Epoch, Owner, Input, Trace, Detached, CreatedAt, StartedAt, WakeAt, Deadline
	// ParentEpoch is, for the start of a child, the epoch at which the writer owns the parent. A store creates the child only if the parent
	// is still Running at ParentEpoch and the parent's Control is zero.
	ParentEpoch Epoch
	Tags        []Tag         // set if the run is created; keys differ
	Timeout     time.Duration // from the time at which the run may begin to Run.Deadline, in microseconds; zero: no deadline
	// Place is the run's place in a queue that has a row. For a queue without a row, Place only records the StartBy of the run. A store
	// writes Place only if it creates the run. A caller that sets Place also sets Run.Admission and, if Place.StartBy is set, Run.Control.
	// Place is nil if the run has no place in a queue.
	Place *QueuePlace

	// Outcome is Written, or AlreadyRecorded if a run with the same Name and Parent exists. For the start of a child, Outcome can also be
	// Fenced (then RunState is the parent's state) or Locked (the parent's row is locked). If a caller retries a start because the reply to
	// its commit was lost, the store finds a run with Run.UUID, and the Outcome is Written.
	Outcome WriteOutcome
	// ExistingRun is the complete row of the existing run if Outcome is AlreadyRecorded. The engine decides whether the existing run counts
	// as the result of the same start.
	ExistingRun *Run
	RunState    RunState
}

// StepWrite records the state of a step, if the step's run is still Running at the epoch Step.Epoch. A requested pause or cancel does not
// prevent the write of a step, but RunState shows the request. Only the row that records the start of a child is Fenced by the request,
// like the start itself. The first step write after a pause or cancel request takes a second statement.
type StepWrite struct {
	Step Step // Epoch is the writer's

	// RowExists tells the store whether, as far as the writer knows, the step already has a row without a final outcome (a started marker
	// or a backoff). If RowExists is true, the store updates the step's row, with SKIP LOCKED. If RowExists is false, the store inserts a
	// row for the step, and an existing row is a conflict.
	RowExists bool

	Encoded *EncodedPayloads // see EncodedPayloads

	// Outcome is Written, AlreadyRecorded, Fenced or Locked. If the step already had a terminal row, Outcome is AlreadyRecorded and
	// RecordedStep holds that row. If Outcome is Fenced, RunState holds the state of the run. If RowExists turns out to be wrong, the
	// store inserts the row that it could not update, or updates the row that it could not insert. A started marker or a backoff that is
	// older than the step's row of the same epoch changes nothing, and its Outcome is Written.
	Outcome      WriteOutcome
	RecordedStep *Step
	RunState     RunState
}

// ReceiveWrite takes the oldest waiting signal with the name Signal for a receive step of the run, if the run is still Running at
// Step.Epoch. If such a signal waits, the store records the receive step as Completed with the signal's payload as Output, and marks the
// signal as taken, in one transaction. If no signal waits, the store writes the caller's Step: with the status Started if the run waits
// until NextAt, or with a terminal status if the timeout has passed. If the receive step already has a row of the same attempt, the row
// keeps its StartedAt and NextAt. If the receive step already has a terminal row, the outcome of the receive is AlreadyRecorded, and the
// receive takes no signal.
//
// If the step's row is of the same or a later attempt and has a NextAt, the receive takes only a signal that arrived by NextAt (see
// SignalWrite.ArrivedAt). A signal that arrives after the NextAt of one receive remains for other receives.
//
// A pause or cancel request does not prevent a receive.
type ReceiveWrite struct {
	Step   Step
	Signal string
	// Receiver names the receive that took the signal; the store records it in the signal's row. If Receiver is empty, the store records
	// the name of the receive step. Receiver may be empty only for a run that has never continued as new, because an earlier generation may
	// have a receive with the same name.
	Receiver string

	// Outcome is Written, AlreadyRecorded, Fenced or Locked. If another write has already recorded the receive step, Outcome is
	// AlreadyRecorded and RecordedStep holds the step's row. Outcome is Locked if another transaction has locked the run's row.
	Outcome      WriteOutcome
	RecordedStep *Step
	RunState     RunState
}

// PayloadEncoder returns the payload of a signal to the given run, encoded as the store writes it.
type PayloadEncoder interface {
	EncodePayloadFor(run uuid.UUID) ([]byte, error)
}

// SetRunAndEncodePayload sets the run that receives the signal, and encodes the signal's payload for that run. If a user sends the signal in a
// transaction of their own, the store calls SetRunAndEncodePayload after it has found the run.
func (w *SignalWrite) SetRunAndEncodePayload(run uuid.UUID) (err error) {
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

	// Encoder encodes Payload if the receiving run is not known before the transaction that writes the signal. Encoder is nil if Payload is
	// already encoded.
	Encoder PayloadEncoder

	// ArrivedAt is the time that a store compares with the timeout of a receive. Only tests with a clock of their own set ArrivedAt. If
	// ArrivedAt is zero, the store locks the run and then reads the database's clock in the transaction that writes the signal. So if a
	// receive times out before a signal is committed, ArrivedAt is after the timeout.
	ArrivedAt time.Time

	// ActorAndReason is the actor and the reason that an event records if the signal is new. A batch holds at most one signal with an
	// ActorAndReason for each run.
	ActorAndReason ActorAndReason

	// Outcome is Written, AlreadyRecorded, Fenced or Locked. If an earlier signal has the same key, Outcome is AlreadyRecorded and
	// ExistingSignal holds the earlier signal. Outcome is Fenced if the run has ended or does not exist. Outcome is Locked if another
	// transaction has locked the run's row. If a signal is written again because the reply to its commit was lost, the store finds a signal
	// with the same ID, and Outcome is Written.
	Outcome        WriteOutcome
	ExistingSignal *SignalWrite // Run, ID, Name, Key, Payload and CreatedAt are set; ArrivedAt is zero
	RunState       RunState
}

// OwnershipEnd ends a worker's ownership of a run, if the run is still Running at Epoch. The status of an OwnershipEnd tells whether the
// run ends (Completed, Failed, Cancelled, Expired), parks (Waiting), becomes claimable again (Pending) or is paused (Paused). The store
// sets the run's Owner to NULL. OwnershipEnd.WakeAt is zero except for a Pending run, and for a Waiting run with a timer.
//
// A pause or a cancel that was requested while the worker owned the run takes precedence over the status of the OwnershipEnd:
//   - A run whose cancel was requested can end only as Cancelled. If the OwnershipEnd has another final status, it is Fenced, RunState
//     shows the cancel request, and the run does not change. If the OwnershipEnd parks or releases a run whose cancel was requested, the
//     run becomes Pending at Now, so that a worker executes the run's compensations. With CancelBegun, a Waiting run stays Waiting.
//   - A run whose pause was requested becomes Paused, without WakeAt.
//
// The end of a child wakes its parent: a Waiting parent becomes claimable at Now, and a Running parent is marked as woken. If an
// OwnershipEnd parks a run that was marked as woken while it was Running, the run's WakeAt becomes Now. If CountingCall is set, the end of
// a child may only increase the count of ended children, and not wake the parent; see SetAwaitedChildEndsRequest.
//
// An OwnershipEnd with HoldsRun releases a run because the database rejects the run's writes, or because locks prevent them. The Status of
// a held run is Pending. A hold counts as a crash of the run. If a held run has made progress since its last crash (Step.Progress), its count
// of crashes begins again at one. A held run becomes claimable at HoldUntilAfterCrash, even if its cancel was requested. If MaxCrashes is
// not zero and a held run has reached MaxCrashes, the run becomes Paused, as a claim would pause it. A held run whose pause was requested
// becomes Paused, and its count of crashes does not change. After a hold, the row of the run keeps the reason of the hold until the run is
// parked, ends or is resumed. The store then clears the reason. A claim of the run after a lost lease also clears the reason if the run has
// new checkpoints since its last crash. After the write of a hold, RunState holds the new state of the run.
//
// An OwnershipEnd with HoldsRun and NotCountedAsCrash, for a cause outside the run, does not change the run's count of crashes and never
// pauses the run.
//
// An OwnershipEnd with HoldsRun and a Divergence pauses the run with the control bit HeldForDrift, even if the run's cancel was requested,
// and counts no crash. The store records the divergence on the run and replaces an earlier divergence of the same version. A run that is
// held for drift gets the HoldReason of the OwnershipEnd, unless a requested pause has a reason of its own.
type OwnershipEnd struct {
	UUID         uuid.UUID
	ParentToWake uuid.NullUUID // the run to wake, if a child ends
	// CountingCall is the name of the parent's call that counts the ends of its children; see SetAwaitedChildEndsRequest. The name of the
	// child contains the name of CountingCall. CountingCall is empty if no call counts the end of the child.
	CountingCall string
	Now          time.Time
	Epoch        Epoch
	Status       Status
	Output       []byte
	Error        []byte
	HoldReason   string
	Trace        string // replaces the row's trace, unless empty
	WakeAt       time.Time
	EndedAt      time.Time

	// FailedStep and FailedType are the failed step and the type of the error of a run that ends as Failed or Expired. A store writes
	// FailedStep and FailedType without an encoding, and only with the status Failed or Expired. See FailureKey.
	FailedStep, FailedType string

	CancelBegun       bool // with Waiting: the worker executes the compensations of a cancelled run, and parks it until the next attempt
	HoldsRun          bool
	MaxCrashes        int         // with HoldsRun; see ClaimQuery
	NotCountedAsCrash bool        // with HoldsRun: it is no crash, and the run becomes claimable after UncountedHoldDelay
	Divergence        *Divergence // with HoldsRun: the run is held for drift

	Encoded *EncodedPayloads // see EncodedPayloads

	// Outcome is Written, Fenced or Locked. If Outcome is Fenced, RunState holds the state of the run. Outcome is Locked if another
	// transaction has locked the run's row or the parent's row.
	Outcome  WriteOutcome
	RunState RunState
}

// EncodedPayloads are the encoded payloads of a write, which package coded keeps with the write. A repeated write must have the same bytes
// as the first, so that the store recognizes a write that was committed before. Because encryption produces different bytes each time, the
// payloads of a write are encoded only once.
type EncodedPayloads struct{ Output, Error, Failures EncodedPayload }

// EncodedPayload is a payload together with its encoded form.
type EncodedPayload struct{ Plain, Encoded []byte }

// HasFailed reports whether the run ends as Failed or Expired.
func (w *OwnershipEnd) HasFailed() bool { return w.Status == Failed || w.Status == Expired }

// HoldDelayAfterCrash returns how long no worker can claim a run that was released with OwnershipEnd.HoldsRun. HoldDelayAfterCrash is one
// second after the first crash, four times as long after each further crash, and at most five minutes.
func HoldDelayAfterCrash(crashes int16) time.Duration {
	const most = 5 * time.Minute
	if crashes > 5 {
		return most
	}
	return min(time.Second<<(2*max(crashes-1, 0)), most)
}

// UncountedHoldDelay is how long no worker can claim a run that was released with OwnershipEnd.NotCountedAsCrash. The statement
// run_hold_after_rejected_write.sql contains the value of UncountedHoldDelay too.
const UncountedHoldDelay = 30 * time.Second

// HoldUntilAfterCrash returns when a run that was released with OwnershipEnd.HoldsRun becomes claimable: after HoldDelayAfterCrash, or at the
// run's deadline if the deadline is in the future and comes first. The statement run_hold_after_rejected_write.sql contains the rule of
// HoldUntilAfterCrash too.
func HoldUntilAfterCrash(w *OwnershipEnd, now time.Time, crashes int16, deadline time.Time) time.Time {
	wakeAt := now.Add(HoldDelayAfterCrash(crashes))
	if w.NotCountedAsCrash {
		wakeAt = now.Add(UncountedHoldDelay)
	}
	if deadline.After(now) && deadline.Before(wakeAt) {
		return deadline
	}
	return wakeAt
}

// HeldTooOftenReason returns the PauseOrHoldReason of a run that was released with OwnershipEnd.HoldsRun and was paused then, because
// it had too many crashes. The statement run_hold_after_rejected_write.sql contains the text of HeldTooOftenReason too.
func HeldTooOftenReason(reason string, crashes int16) string {
	return fmt.Sprintf("%s; the run was held, or its process died or lost its lease, %d times in a row without a new checkpoint: resume it when the cause is mended", reason, crashes)
}

// CrashedTooOftenReason returns the PauseOrHoldReason of a run that a claim has paused after too many crashes; see
// ClaimQuery.MaxCrashes. The statement claim_runs.sql contains the text of CrashedTooOftenReason too.
func CrashedTooOftenReason(crashes int16) string {
	return fmt.Sprintf("its process died or lost its lease %d times in a row without a new checkpoint: find the cause, then resume the run", crashes)
}

// ClaimQuery describes which due runs a worker claims. A claim takes a suspect first. A claim takes other runs by priority, the highest
// first, then by lane, then by WakeAt, the oldest first. Each claim begins at a random lane of a priority, so that a lane with many due
// runs delays the other lanes of its priority by one claim only. A priority that always has due runs delays the runs of lower priorities
// forever.
type ClaimQuery struct {
	Worker uuid.UUID // the owner of the claimed runs
	// Owners is set if several workers of one process claim together. If Owners is set, each claimed run is owned by a worker in Owners,
	// and the field Worker is not used. A worker gets at most as many runs as it has entries in Owners. The length of Owners is Limit.
	Owners     []uuid.UUID
	EpochNonce uint32             // the nonce of the claimed runs' epochs; each claim draws a new one
	Filter     *ClaimFilter       // what the worker claims; a claim reads no other runs
	QueueRules *QueueClaimRules   // the queues with settings; nil: none
	Versions   *VersionClaimRules // which runs belong to other versions; nil: none, and claimed runs keep their versions
	Limit      int                // the maximal number of runs
	// MaxSuspects is how many suspects a claim may take: 0 or 1. A suspect is a run with SuspectAfterCrashes or more crashes; claims take suspects
	// before other runs. Because of MaxSuspects a worker executes suspects one at a time, so a suspect that kills its process adds no crash
	// to another suspect.
	MaxSuspects int
	Now         time.Time
	LeaseUntil  time.Time
	// MaxCrashes limits how often in a row a run may be claimed after a lost lease without a new checkpoint. The claim that reaches
	// MaxCrashes pauses the run, with a reason, so that no worker executes it. If MaxCrashes is zero, there is no limit.
	MaxCrashes int
	// OutageFrom and OutageUntil are the beginning and the end of a time in which the claiming worker could not renew its own leases. If
	// another worker's lease ended after OutageFrom and not after OutageUntil, its loss does not count as a crash, because that worker may
	// not have reached the database either. OutageFrom and OutageUntil are zero if there was no outage.
	OutageFrom, OutageUntil time.Time
}

// OwnersOfClaimedRuns returns Owners, or a list with only Worker if Owners is not set. A store may give the claimed run with index i the
// owner with index i, modulo the number of owners.
func (q *ClaimQuery) OwnersOfClaimedRuns() []uuid.UUID {
	if len(q.Owners) > 0 {
		return q.Owners
	}
	return []uuid.UUID{q.Worker}
}

// LeaseEndedInOutage reports whether a lease with the given end expired in the outage of the claiming worker, between OutageFrom and
// OutageUntil. Such a loss of a lease does not count as a crash.
func (q *ClaimQuery) LeaseEndedInOutage(leaseEnd time.Time) bool {
	return leaseEnd.After(q.OutageFrom) && !leaseEnd.After(q.OutageUntil)
}

// ExtendOutageToLeaseEnd extends the outage to the end of a lease whose run was not executed. If the lease ended later than one lease duration after
// the outage, the end of the lease becomes a new outage.
func (q *ClaimQuery) ExtendOutageToLeaseEnd(leaseEnd time.Time) {
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

// SuspectAfterCrashes is the number of consecutive crashes without a new checkpoint after which a run counts as a suspect. The statements
// claim_runs.sql and claim_select_due_runs_crashed_twice.sql contain the number SuspectAfterCrashes too.
const SuspectAfterCrashes = 2

// QueueWorkflow is a queue together with a workflow.
type QueueWorkflow struct{ Queue, Workflow string }

// OverdueLane is a lane with at least one run that has been due for too long.
type OverdueLane struct {
	QueueWorkflow
	Lane  ClaimLane
	Run   uuid.UUID // the run that has been due for the longest time
	Since time.Time // when that run was due
}

// ClaimResult holds what Store.Claim returns.
type ClaimResult struct {
	Runs []ClaimedRun
	// NextDue is the earliest wake_at after ClaimQuery.Now in the lanes from which the worker claims. NextDue is zero if no run in these
	// lanes becomes due later.
	NextDue time.Time
	// HasNewVersions reports that the claim took no run because workers of a version that ClaimQuery.Versions does not contain have appeared.
	// If HasNewVersions is true, the caller reads the versions and claims again.
	HasNewVersions bool
}

// ClaimedRun is a run that the worker now owns. If the Status of a ClaimedRun is Paused, the claim has paused the run because of its
// crashes; the worker does not own the run, and History is empty.
type ClaimedRun struct {
	Run           Run
	History       []Step        // ordered by name
	UnreadHistory UnreadHistory // tells whether HistoryFrom has to read more
	// ProgressAtLastCrash is the sum of Step.Progress of the run's checkpoints at its last counted crash. If the sum is greater now, the run
	// has made progress since the crash.
	ProgressAtLastCrash int
	BypassesQueue       bool // its admission state is AdmissionBypassed
}

// UnreadHistory tells whether a history has more checkpoints than a claim has read, and the name of the first unread
// checkpoint.
type UnreadHistory struct {
	Exists        bool
	FirstStepName string
}

// Heartbeat renews a worker's registration and the worker's leases on runs. A worker sends several heartbeats during the time of a lease.
type Heartbeat struct {
	Worker     Worker // the store sets HeartbeatAt from the database's clock
	Leases     []Lease
	LeaseUntil time.Time // without another heartbeat, the worker counts as gone from this time; zero means at once
}

// Lease is a worker's ownership of a run at an epoch.
type Lease struct {
	Run         uuid.UUID
	Epoch       Epoch
	RunDeadline time.Time // of the run, as its owner knows it; used only by Store.OwnedRunChanges
}

// RenewResult holds what Store.RenewLeases returns.
type RenewResult struct {
	Now        time.Time   // the database's clock
	LostRuns   []uuid.UUID // not extended: another worker owns the run, or the run is no longer running
	LockedRuns []uuid.UUID // not extended: another transaction has locked the run's row
	// Quiet and LastChange are read from the worker's row in the database, where operators set them.
	Quiet      bool
	LastChange *OperatorChange
	// DatabaseRewinds lists the occasions on which the database went back to an earlier state and lost acknowledged data. The store reports
	// each DatabaseRewind once.
	DatabaseRewinds []DatabaseRewind
	// Warning is a text that the worker logs, and is usually empty. Warning says what is wrong with the store although calls succeed, and
	// what an operator should do. The store returns each warning to one worker only, and at most one warning a minute.
	Warning string
}
