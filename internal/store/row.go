package store

import (
	"time"

	"github.com/google/uuid"
)

// Status is the state of a run. The numbers are stored.
type Status int16

// The states of a run: pending, running, waiting and pending again, until it ends.
const (
	Pending   Status = 1 // claimable at wake_at
	Running   Status = 2 // owned; wake_at is the lease's expiry
	Waiting   Status = 3 // in no memory; wake_at is the next timer, if any
	Paused    Status = 4 // not claimable until resumed
	Completed Status = 5
	Failed    Status = 6
	Cancelled Status = 7
	// 8 is no state. It stays free, as it was an event's number once.
	Expired Status = 9 // its time was over
)

// Terminal reports whether the state absorbs: nothing ever leaves it.
func (s Status) Terminal() bool { return s >= Completed }

var statusWords = [...]string{"unknown", "pending", "running", "waiting", "paused", "completed", "failed", "cancelled", 8: "", 9: "expired"}

// String is the word that views, logs and errors use.
func (s Status) String() string {
	if s < 0 || int(s) >= len(statusWords) || statusWords[s] == "" {
		return statusWords[0]
	}
	return statusWords[s]
}

// ParseStatus is the state with that word.
func ParseStatus(word string) (Status, bool) {
	for i, w := range statusWords {
		if w == word && w != "" && i > 0 {
			return Status(i), true
		}
	}
	return 0, false
}

// Kind is what a checkpoint records. The numbers are stored.
type Kind int16

// The kinds of checkpoint.
const (
	KindStep   Kind = 1
	KindTx     Kind = 2
	KindSleep  Kind = 3 // completed as soon as NextAt, when it is over, is durable
	KindChoice Kind = 4 // which of several branches a run went on with

	KindReceive Kind = 5 // started while it waits; NextAt is its deadline
	KindChild   Kind = 6 // started while the child runs; Output is the child's UUID until then
	KindMap     Kind = 7 // how many items a Map has, as a number in Output
	KindUndo    Kind = 8 // a compensation

	KindSignal Kind = 9  // a signal was sent to a run
	KindStart  Kind = 10 // a root run was started; Output is its ID
	KindTags   Kind = 11 // tags of the run were set
	KindCancel Kind = 12 // a child was cancelled
	KindNow    Kind = 13 // the database's time
	KindUUID   Kind = 14 // a UUID that was made

	KindFailure Kind = 15 // how a run ends, recorded before its first compensation
)

var kindWords = [...]string{
	"unknown", "step", "tx", "sleep", "choice", "receive", "child", "map", "compensation",
	"signal", "start", "tags", "cancel", "now", "uuid", "failure",
}

// String is the word that views, logs and errors use.
func (k Kind) String() string {
	if k < 0 || int(k) >= len(kindWords) {
		return kindWords[0]
	}
	return kindWords[k]
}

// StepStatus is the state of a step. The numbers are stored.
type StepStatus int16

// The states of a step.
const (
	StepStarted   StepStatus = 1 // an attempt began, its end is unknown
	StepBackoff   StepStatus = 2 // an attempt failed, the next one is due at NextAt
	StepCompleted StepStatus = 3
	StepFailed    StepStatus = 4 // finally: it replays its failure
)

// Terminal reports whether the step has its one immutable outcome.
func (s StepStatus) Terminal() bool { return s >= StepCompleted }

var stepWords = [...]string{"unknown", "started", "backoff", "completed", "failed"}

// String is the word that views, logs and errors use.
func (s StepStatus) String() string {
	if s < 0 || int(s) >= len(stepWords) {
		return stepWords[0]
	}
	return stepWords[s]
}

// Run is one row of the run table. A zero time is NULL.
type Run struct {
	ID       uuid.UUID
	Parent   uuid.NullUUID // not valid for a root
	Name     string        // a root's: the caller's ID; a child's: its step name, with the scope; see Address
	Workflow string
	Version  string // of the code that started it; informative
	Queue    string
	Status   Status
	Epoch    Epoch // its count is 1 for a run started where it runs
	Owner    uuid.NullUUID
	Crashes  int16 // claims after a lost lease since the last new checkpoint
	Input    []byte
	Output   []byte // nil unless Completed
	Error    []byte // nil unless Failed, Cancelled or Expired; engine's encoding
	Reason   string // why it is paused
	Trace    string // W3C traceparent of the span that started it, or of its last segment
	Detached bool   // a child that goes on when its parent ends

	Control      Bits
	PausedBy     string // the actor; why is in Reason
	CancelledBy  string
	CancelReason string

	CreatedAt   time.Time
	StartedAt   time.Time // first execution
	EndedAt     time.Time
	WakeAt      time.Time
	Deadline    time.Time
	PausedAt    time.Time
	CancelledAt time.Time // when it was first asked for
}

// Payloads says which of a run's payloads are read with it. Those that are not are nil.
type Payloads uint8

// The payloads. An error is read with the output.
const (
	NoPayloads  Payloads = 0
	WithInput   Payloads = 1
	WithOutcome Payloads = 2
	AllPayloads          = WithInput | WithOutcome
)

// Bits is what was asked of a run and goes on to hold. The numbers are stored.
type Bits int16

// What can be asked of a run. A paused run that nobody executes has the status Paused
// as well; one that is executed leaves when its running steps have ended.
const (
	PausedItself Bits = 1
	PausedAbove  Bits = 2 // with an ancestor
	CancelAsked  Bits = 4
	PausedAnyhow      = PausedItself | PausedAbove
)

// Tag is a namespaced label of a run, such as team.owner.
type Tag struct{ Key, Value string }

// Step is one row of the step table. A zero time is NULL.
type Step struct {
	RunID     uuid.UUID
	Name      string
	Kind      Kind
	Status    StepStatus
	Attempt   int32 // the number of the latest attempt that began, from 1
	Epoch     Epoch // who wrote it
	Seq       int32 // the order in which a run's calls began; a row that is there keeps its own
	Output    []byte
	Error     []byte
	Failures  []byte    // of attempts that failed or were interrupted, in the engine's encoding, or a child's workflow; nil: neither
	StartedAt time.Time // of the first attempt
	EndedAt   time.Time // of the latest attempt; zero while it runs
	NextAt    time.Time // when the next attempt is due (StepBackoff), or a sleep is over; else zero
}

// WorkerState is what a worker is doing. The numbers are stored.
type WorkerState int16

// The states of a worker.
const (
	WorkerRunning  WorkerState = 1
	WorkerDraining WorkerState = 2 // it takes no new runs, and lets those that it has come to a stop
)

// Worker is one row of the registry.
type Worker struct {
	ID          uuid.UUID
	Name        string // host and process by default
	Version     string
	Capacity    int32 // runs that it executes at once
	Active      int32 // runs that it executed at its last heartbeat
	State       WorkerState
	StartedAt   time.Time
	HeartbeatAt time.Time
	Executes    []Pair // nil: the list is not kept, and it may execute any
}
