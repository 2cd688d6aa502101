package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// StartKeyStore keeps the keys of starts with the options Singleton, Debounce and Throttle. A start key decides whether a start creates a
// run, joins or replaces an existing run, or is refused. Every Store is also a StartKeyStore.
type StartKeyStore interface {
	// UpdateStartKeyRow locks the row of one start key, calls c.Plan, and writes what Plan returns, all in one transaction. UpdateStartKeyRow
	// reads all rows again if the transaction is retried.
	UpdateStartKeyRow(ctx context.Context, c *StartKeyChangeRequest) error

	// DueStartKeys returns the start keys of up to limit rows whose CheckAt is now or earlier, and of up to limit rows whose CheckAfterRun has
	// ended or was removed. The result next is the earliest CheckAt of the other rows, or zero if there is none.
	DueStartKeys(ctx context.Context, now time.Time, limit int) (due []StartKey, next time.Time, err error)

	// StartKeyOfWaitingRun returns the row of the start key whose WaitingRun is the given run, or nil if there is no such row.
	StartKeyOfWaitingRun(ctx context.Context, run uuid.UUID) (*StartKeyRow, error)
}

// StartKeyKind is the option with which runs are started: Singleton, Debounce or Throttle. The database stores the numbers of StartKeyKind
// constants.
type StartKeyKind int16

// The kinds. Starts with keys of different kinds have no effect on each other.
const (
	StartKeySingleton StartKeyKind = 1 // at most one run with the key is live
	StartKeyDebounce  StartKeyKind = 2 // starts in quick succession become one run
	StartKeyThrottle  StartKeyKind = 3 // at most a given number of starts per period
)

var startKeyKinds = [...]string{"unknown", "singleton", "debounce", "throttle"}

// String returns the word for the kind that views, logs and errors use.
func (k StartKeyKind) String() string {
	if k < 0 || int(k) >= len(startKeyKinds) {
		return startKeyKinds[0]
	}
	return startKeyKinds[k]
}

// StartKey identifies one row of the table of start keys.
type StartKey struct {
	Workflow string
	Key      string
	Kind     StartKeyKind
}

// Shard returns the shard that holds the row of the start key.
func (k StartKey) Shard() int16 { return ShardOfName(k.Workflow + "\x00" + k.Key) }

// StartKeyRow is one row of the table of start keys.
type StartKeyRow struct {
	StartKey
	CheckAt       time.Time     // when a worker checks the row
	CheckAfterRun uuid.NullUUID // a worker also checks the row when this run has ended
	WaitingRun    uuid.NullUUID // the run that is not released yet
	State         []byte        // what the engine records; in its encoding, which is a JSON object
	WaitingInput  []byte        // the input of WaitingRun, if it differs from the input with which that run was started; else nil
}

// StartKeyRun is a run as the transaction has read it for StartKeyChangeRequest.Plan. The run may change at any time, because the
// transaction has not locked it.
type StartKeyRun struct {
	Name     string
	Status   Status
	Control  ControlBits
	Epoch    Epoch
	Queue    string
	Version  string
	Priority int16
}

// StartKeyChangeRequest reads, plans and writes the row of one start key in a transaction.
type StartKeyChangeRequest struct {
	Key StartKey
	// SkipLocked makes UpdateStartKeyRow return without a call of Plan if the start key has no row, or if another transaction has locked the
	// row. Without SkipLocked, UpdateStartKeyRow waits a short time for the lock, and then returns ErrLocked.
	SkipLocked bool
	// Name is the name of a root run about which Plan decides. Name is empty if Plan decides about no root run by its name.
	Name string
	// RunsToRead returns the runs that UpdateStartKeyRow reads for Plan. UpdateStartKeyRow calls RunsToRead with the locked row of the
	// start key.
	RunsToRead func(row *StartKeyRow) []uuid.UUID
	// Plan returns the changes to write, or nil if nothing changes. Plan must not block, and may be called several times.
	Plan func(s StartKeySnapshot) *StartKeyWrite

	// AppliedWrite is the StartKeyWrite that UpdateStartKeyRow has written, with the outcome of its start, or nil if UpdateStartKeyRow has
	// written nothing.
	AppliedWrite *StartKeyWrite
}

// StartKeySnapshot is the argument of [StartKeyChangeRequest.Plan]: the row of the start key and the runs of RunsToRead, as the transaction
// has read them.
type StartKeySnapshot struct {
	Row         *StartKeyRow              // nil: there is none
	Runs        map[uuid.UUID]StartKeyRun // the runs of StartKeyChangeRequest.RunsToRead that exist
	RunWithName *Run                      // the root with StartKeyChangeRequest.Name; nil: there is none
}

// StartKeyWrite holds what a StartKeyChangeRequest writes.
type StartKeyWrite struct {
	Row         StartKeyRow
	Delete      bool        // the row is deleted
	RunToCreate *StartWrite // a run to create; nil: none
	// Release makes a run claimable that was created with Unreleased. Release is nil if no run becomes claimable. If the run to release has
	// begun, has ended, is to be cancelled, or has another queue or priority than Plan has seen, UpdateStartKeyRow does not release it and
	// calls Plan again.
	Release *DelayedRunRelease
}

// DelayedRunRelease makes a run claimable that was created with Unreleased. A paused run that is released stays paused, and begins when it
// is resumed. If SetDeadline has set or removed the run's deadline, the run keeps that change, and the Deadline and the Timeout of the
// DelayedRunRelease are ignored.
type DelayedRunRelease struct {
	RunUUID  uuid.UUID
	Queue    string // of the run
	Priority int16
	Lane     ClaimLane
	WakeAt   time.Time
	Deadline time.Time     // zero: none
	Timeout  time.Duration // zero: none
	StartBy  time.Time     // for the run's place; zero: none
	Input    []byte        // nil: it keeps its own
}

// UnreleasedLane is the lane of runs that are not released yet. Claims take no run from UnreleasedLane. No queue has an empty name, so
// UnreleasedLane is not the lane of any queue.
var UnreleasedLane = ClaimLaneOf("", "", "", 0).WithAdmission(AdmissionPending)
