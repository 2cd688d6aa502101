package store

import (
	"slices"
	"time"

	"github.com/google/uuid"
)

// Status is the state of a run. The database stores the numbers of Status constants.
type Status int16

// The states of a run. A run alternates between Pending, Running and Waiting until it ends.
const (
	Pending   Status = 1 // claimable at wake_at
	Running   Status = 2 // owned; wake_at is the lease's expiry
	Waiting   Status = 3 // suspended, and unloaded from memory; wake_at is the next timer, if any
	Paused    Status = 4 // not claimable until resumed
	Completed Status = 5
	Failed    Status = 6
	Cancelled Status = 7
	// Expired means that the run's deadline has passed. The number 8 is not used, because an event had this number in an earlier version.
	Expired Status = 9 // its deadline passed
	// Superseded is the status of a SupersededGeneration that had not ended when it was superseded. No row of a run has the status
	// Superseded.
	Superseded Status = 10
)

// IsTerminal reports whether the status is final: the run has ended, and its status never changes again.
func (s Status) IsTerminal() bool { return s >= Completed }

var statusWords = [...]string{"unknown", "pending", "running", "waiting", "paused", "completed", "failed", "cancelled", 8: "", 9: "expired", 10: "superseded"}

// String returns the word for the status that views, logs and errors use.
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusWords) || statusWords[s] == "" {
		return statusWords[0]
	}
	return statusWords[s]
}

// ParseStatus returns the status for a word that Status.String returns, and reports whether there is such a status.
func ParseStatus(word string) (Status, bool) {
	for i, w := range statusWords {
		if w == word && w != "" && i > 0 {
			return Status(i), true
		}
	}
	return 0, false
}

// StepKind tells what a checkpoint records, such as a step or a sleep. The database stores the numbers of StepKind constants.
type StepKind int16

// The kinds of checkpoint.
const (
	KindStep   StepKind = 1
	KindTx     StepKind = 2
	KindSleep  StepKind = 3 // a sleep until NextAt; its status is completed from the beginning
	KindChoice StepKind = 4 // the branch of several with which the run continued

	KindReceive      StepKind = 5 // started while it waits; NextAt is its timeout
	KindChild        StepKind = 6 // started while the child runs; until its end, Output is the child's UUID
	KindMap          StepKind = 7 // a Map; Output is the number of its items
	KindCompensation StepKind = 8 // a compensation

	KindSendSignal  StepKind = 9  // a signal was sent to a run
	KindStartRoot   StepKind = 10 // a root run was started; Output is its ID
	KindTags        StepKind = 11 // tags of the run were set
	KindCancelChild StepKind = 12 // a child was cancelled
	KindNow         StepKind = 13 // the database's time
	KindUUID        StepKind = 14 // a generated UUID

	KindRunEnd     StepKind = 15 // how a run ends, recorded before its first compensation
	KindKeyRenewal StepKind = 16 // the steps that a repair lets the run execute with new idempotency keys
	KindGraph      StepKind = 17 // the shape of a graph, or why a node of it was skipped
	KindPatch      StepKind = 18 // whether the run takes the new path at a place; Output is true or false
)

// EndRecordName is the name of the checkpoint of kind KindRunEnd. The name of a user's call cannot begin with U+001F, so it cannot be
// EndRecordName.
const EndRecordName = "\x1ffailure"

var kindWords = [...]string{
	"unknown", "step", "tx", "sleep", "choice", "receive", "child", "map", "compensation",
	"signal", "start", "tags", "cancel", "now", "uuid", "failure", "renewal",
	"graph", "patch",
}

// String returns the word for the kind that views, logs and errors use.
func (k StepKind) String() string {
	if k < 0 || int(k) >= len(kindWords) {
		return kindWords[0]
	}
	return kindWords[k]
}

// StepStatus is the state of a step. The database stores the numbers of StepStatus constants.
type StepStatus int16

// The states of a step.
const (
	StepStarted   StepStatus = 1 // an attempt has begun, and its outcome is not recorded
	StepBackoff   StepStatus = 2 // an attempt failed, the next one is due at NextAt
	StepCompleted StepStatus = 3
	StepFailed    StepStatus = 4 // without further attempts; a replay returns the recorded error
)

// IsTerminal reports whether the status is a final outcome of the step, which never changes.
func (s StepStatus) IsTerminal() bool { return s >= StepCompleted }

var stepWords = [...]string{"unknown", "started", "backoff", "completed", "failed"}

// String returns the word for the status that views, logs and errors use.
func (s StepStatus) String() string {
	if s < 0 || int(s) >= len(stepWords) {
		return stepWords[0]
	}
	return stepWords[s]
}

// Run is one row of the run table. In a Run, a zero time.Time stands for NULL in the database.
//
// A run has a UUID and a name. The UUID of a run is unique. The name of a run is unique among the children of its parent, or among all
// roots. The name of a root is the ID that its caller chose, and the name of a child is the key of the call that started the child. For
// users, the ID of a run is the name of a root or the UUID of a child; see Run.NameOrUUID. The columns of the UUID and the name are id and
// name.
type Run struct {
	UUID              uuid.UUID
	Parent            uuid.NullUUID // not valid for a root
	Name              string        // of a child: with the scope of the call
	Workflow          string
	Version           string // of the code that started it; for information only
	Queue             string
	Priority          int16          // runs with a higher priority are claimed first
	Admission         AdmissionState // only in StartWrite.Run; stores do not read it, see QueueStore.QueuePlaceOfRun
	Status            Status
	Epoch             Epoch // the count begins at 1 if the worker that starts the run executes it
	Owner             uuid.NullUUID
	Crashes           int16 // claims after a lost lease since the last new checkpoint
	Input             []byte
	Output            []byte // nil unless Completed
	Error             []byte // nil unless Failed, Cancelled or Expired; in the engine's encoding
	PauseOrHoldReason string // why it is paused, or held
	Trace             string // W3C traceparents of the span that started it and of its last segment
	Detached          bool   // a child that continues when its parent ends

	// Unreleased is used only in StartWrite.Run: no claim takes the new run until a DelayedRunRelease has released it.
	Unreleased bool

	Control      ControlBits
	PausedBy     string // the actor of the pause; PauseOrHoldReason has the reason
	CancelledBy  string
	CancelReason string

	CreatedAt   time.Time
	StartedAt   time.Time // first execution
	EndedAt     time.Time
	WakeAt      time.Time
	Deadline    time.Time
	PausedAt    time.Time
	CancelledAt time.Time // when the cancel was first requested
}

// PayloadSelection tells which payloads of a run a store reads. The payloads that a PayloadSelection does not select are nil.
type PayloadSelection uint8

// The payloads. The outcome is the output and the error.
const (
	NoPayloads         PayloadSelection = 0
	WithInput          PayloadSelection = 1
	WithOutputAndError PayloadSelection = 2
	AllPayloads                         = WithInput | WithOutputAndError
)

// ControlBits is the set of pause and cancel requests that apply to a run. The database stores the numbers of ControlBits constants.
type ControlBits int16

// The requests. A run whose pause is requested becomes Paused when its current steps have ended; if
// nobody executes it, it becomes Paused at once.
const (
	PausedItself     ControlBits = 1 // by a pause of the run itself
	PausedByAncestor ControlBits = 2 // by a pause of an ancestor
	CancelRequested  ControlBits = 4
	HasStartBy       ControlBits = 8                               // no request: the run's function was never called, and the worker that calls it first reads QueuePlace.StartBy; see QueueStore.ClearStartByDeadline
	HeldForDrift     ControlBits = 16                              // no request: the run is Paused because the code does not fit its history; see DivergenceStore
	PausedForRepair  ControlBits = 32                              // with PausedItself: a repair has paused it; see RepairStore
	PausedMask                   = PausedItself | PausedByAncestor // a mask
)

// Tag is a namespaced label of a run, such as team.owner.
type Tag struct{ Key, Value string }

// Step is one row of the step table. In a Step, a zero time.Time stands for NULL in the database.
type Step struct {
	Run       uuid.UUID
	Name      string
	Kind      StepKind
	Status    StepStatus
	Attempt   int32 // the number of the latest attempt, from 1
	Epoch     Epoch // of the run when the row was written
	Seq       int32 // see EncodeSeq; an update does not change it
	Output    []byte
	Error     []byte
	Failures  []byte    // the failed and interrupted attempts, in the engine's encoding, or the workflow of a child; else nil
	StartedAt time.Time // of the first attempt
	EndedAt   time.Time // of the latest attempt; zero while it runs
	NextAt    time.Time // when the next attempt is due (StepBackoff), a sleep ends, or a receive times out; else zero
}

// EncodeSeq returns the [Step.Seq] of a call. The argument position is the number of the call in the order in which the calls of the run
// began. The argument own tells whether the goroutine of the call's scope made the call; see [SeqOwnGoroutineBit].
func EncodeSeq(position int32, own bool) int32 {
	if own {
		return position<<1 | SeqOwnGoroutineBit
	}
	return position << 1
}

// Position returns the position of the call in the order in which the calls of its run began.
func (s *Step) Position() int32 { return s.Seq >> 1 }

// Progress returns how much the checkpoint adds to the progress of its run, by which crashes are judged: one for the start of a child, and one
// for an outcome. So a run that crashes again and again makes progress if it starts or records one more child each time.
func (s *Step) Progress() (n int) {
	if s.Kind == KindChild {
		n++
	}
	if s.Status.IsTerminal() {
		n++
	}
	return n
}

// WasMadeByScopeGoroutine reports whether the goroutine of its scope made the call; see [SeqOwnGoroutineBit].
func (s *Step) WasMadeByScopeGoroutine() bool { return s.Seq&SeqOwnGoroutineBit != 0 }

// SeqOwnGoroutineBit is the lowest bit of Step.Seq. SeqOwnGoroutineBit is set if the call was made by the goroutine of the workflow
// function, or of the call's branch; such a goroutine makes its calls one after the other. It is also set for the items of a Map. If a repair
// drops or changes a call, the repair clears SeqOwnGoroutineBit in the calls after that call, because the code need not make these calls any
// more.
const SeqOwnGoroutineBit = 1

// WorkerState tells whether a worker claims runs or is stopping. The database stores the numbers of WorkerState constants.
type WorkerState int16

// The states of a worker.
const (
	WorkerRunning  WorkerState = 1
	WorkerDraining WorkerState = 2 // it claims no new runs, and waits until its runs have stopped
)

// SchemaVersion is the version of the database schema for which this code was written: the number of the schema's migrations.
const SchemaVersion = 6

// FirstSchemaWithQueues is the first version of the schema that has queues, limits and schedules. Workers that were built for an older
// schema ignore queues, limits and schedules.
const FirstSchemaWithQueues = 3

// FirstSchemaWithRepairs is the first version of the schema whose workers know which steps a repair has renewed.
const FirstSchemaWithRepairs = 4

// Worker is one row of the registry of workers.
type Worker struct {
	ID          uuid.UUID
	Name        string // host and process by default
	Version     string
	Capacity    int32 // how many runs it executes at once, at most
	ActiveRuns  int32 // how many runs it executed at its last heartbeat
	State       WorkerState
	StartedAt   time.Time
	HeartbeatAt time.Time
	Workflows   []string // what it executes; nil if there are too many to be recorded
	Queues      []string // from which queues it takes runs; nil if it takes runs from all queues, or if there are too many queues to be recorded
	// SchemaVersion is the version of the database schema for which the worker's code was written; see SchemaVersion. SchemaVersion is
	// zero for code that was written for a version before 3, which does not record its schema version.
	SchemaVersion int16
	// Quiet says that an operator wants the worker to claim no runs. LastChange is what an operator has last done to the worker, or nil.
	// RenewLeases writes Quiet and LastChange only if the worker is not registered yet.
	Quiet      bool
	LastChange *OperatorChange
	// ClockAhead is how many microseconds the clock of the worker's machine was ahead of the database's clock at the worker's last
	// heartbeat.
	ClockAhead time.Duration
	// DeadAt is when the worker counts as dead, unless it sends another heartbeat. Stores set DeadAt from Heartbeat.LeaseUntil.
	DeadAt time.Time
}

// Serves reports whether the worker executes runs of the workflow in the queue. A worker that has not recorded its workflows or queues
// counts as a worker for all workflows or queues.
func (w *Worker) Serves(queue, workflow string) bool {
	return (w.Workflows == nil || slices.Contains(w.Workflows, workflow)) && (w.Queues == nil || slices.Contains(w.Queues, queue))
}
