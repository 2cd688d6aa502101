package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// StartKeyStore keeps the keys of starts with the options Singleton, Debounce and Throttle. Several starts with the same key fold: they
// lead to one run, or to none. Every Store implements it.
type StartKeyStore interface {
	// ChangeStartKey locks the row of one key, lets c.Plan decide, and writes the result, all in one transaction.
	// It reads everything again if the transaction is retried.
	ChangeStartKey(ctx context.Context, c *StartKeyChangeRequest) error

	// DueStartKeys returns the keys of up to limit rows whose CheckAt is now or earlier, and of up to limit rows whose AfterRun has
	// ended or was removed. next is when the next of the others is due; zero means none is.
	DueStartKeys(ctx context.Context, now time.Time, limit int) (due []StartKey, next time.Time, err error)

	// StartKeyOfWaitingRun returns the row whose WaitingRun is the run, without its Input, or nil if there is none.
	StartKeyOfWaitingRun(ctx context.Context, run uuid.UUID) (*StartKeyRow, error)
}

// StartKeyKind is the option of the starts: Singleton, Debounce or Throttle. The numbers are stored.
type StartKeyKind int16

// The kinds. Starts with keys of different kinds have no effect on each other.
const (
	StartKeySingleton StartKeyKind = 1 // at most one run with the key is live
	StartKeyDebounce  StartKeyKind = 2 // starts in quick succession become one run
	StartKeyThrottle  StartKeyKind = 3 // at most so many starts per period
)

var startKeyKinds = [...]string{"unknown", "singleton", "debounce", "throttle"}

// String returns the word that views, logs and errors use.
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

// Shard returns the shard of the row.
func (k StartKey) Shard() int16 { return ShardOfName(k.Workflow + "\x00" + k.Key) }

// StartKeyRow is one row of the table of start keys.
type StartKeyRow struct {
	StartKey
	CheckAt    time.Time     // when a worker checks the row
	AfterRun   uuid.NullUUID // a worker also checks the row when this run has ended
	WaitingRun uuid.NullUUID // the run that is not released yet
	State      []byte        // what the engine records; in its encoding, which is a JSON object
	Input      []byte        // of a run that waits, if it is another than the run was started with; else nil
}

// StartKeyRun is a run as StartKeyChangeRequest.Plan sees it. It may change at any time, because it is not locked.
type StartKeyRun struct {
	Name     string
	Status   Status
	Control  ControlBits
	Epoch    Epoch
	Queue    string
	Version  string
	Priority int16
}

// StartKeyChangeRequest reads, plans and writes the row of one key in a transaction.
type StartKeyChangeRequest struct {
	Key StartKey
	// SkipLocked makes ChangeStartKey return without a call of Plan if the key has no row, or if another transaction has locked the row.
	// Without SkipLocked, ChangeStartKey waits a short time for the lock, and then returns ErrLocked.
	SkipLocked bool
	// Name is the name of a root run that Plan decides about. Name is empty if there is none.
	Name string
	// RunsToRead returns the runs that Plan decides about. ChangeStartKey calls it with the locked row.
	RunsToRead func(row *StartKeyRow) []uuid.UUID
	// Plan returns the changes to write, or nil if nothing changes. Plan must not block, and may be called several times.
	Plan func(s StartKeySnapshot) *StartKeyWrite

	// AppliedWrite is the StartKeyWrite that was written, with the outcome of its start, or nil if nothing was written.
	AppliedWrite *StartKeyWrite
}

// StartKeySnapshot is the argument of [StartKeyChangeRequest.Plan]: the row of the key and the runs concerned, as the transaction has read them.
type StartKeySnapshot struct {
	Row         *StartKeyRow              // nil: there is none
	Runs        map[uuid.UUID]StartKeyRun // the runs of StartKeyChangeRequest.RunsToRead that exist
	RunWithName *Run                      // the root with StartKeyChangeRequest.Name; nil: there is none
}

// StartKeyWrite is what a StartKeyChangeRequest writes.
type StartKeyWrite struct {
	Row    StartKeyRow
	Delete bool        // the row is deleted
	Start  *StartWrite // a run to create; nil: none
	// Release makes a run claimable that was created with Unreleased. Release is nil if no run becomes claimable. If the run has
	// begun or ended, is to be cancelled, or has another queue or priority than Plan has seen, ChangeStartKey does not release the
	// run and plans again.
	Release *DelayedRunRelease
}

// DelayedRunRelease makes a run claimable. A paused run stays paused, and begins when it is resumed. A run whose timeout SetDeadline
// has set or removed keeps it, and gets neither Deadline nor Timeout.
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

// UnreleasedLane is the lane of runs that are not released. Claims take no run from this lane, and no queue has an empty name.
var UnreleasedLane = ClaimLaneOf("", "", "", 0).WithAdmission(AdmissionPending)
