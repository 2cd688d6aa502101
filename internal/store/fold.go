package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// FoldStore keeps the keys of starts with the options Singleton, Debounce and Throttle. Several starts with the same key fold: they
// lead to one run, or to none. Every Store implements it.
type FoldStore interface {
	// ChangeFold locks the row of one key, lets c.Plan decide, and writes the result, all in one transaction.
	// It reads everything again if the transaction is retried.
	ChangeFold(ctx context.Context, c *FoldChangeRequest) error

	// DueFolds returns the keys of up to limit rows whose CheckAt is now or earlier, and of up to limit rows whose AfterRun has
	// ended or was removed. next is when the next of the others is due; zero means none is.
	DueFolds(ctx context.Context, now time.Time, limit int) (due []FoldKey, next time.Time, err error)

	// FoldOfWaitingRun returns the row whose WaitingRun is the run, without its Input, or nil if there is none.
	FoldOfWaitingRun(ctx context.Context, run uuid.UUID) (*Fold, error)
}

// FoldKind is the option of the starts: Singleton, Debounce or Throttle. The numbers are stored.
type FoldKind int16

// The kinds. Starts of different kinds do not fold together.
const (
	FoldSingleton FoldKind = 1 // at most one run with the key is live
	FoldDebounce  FoldKind = 2 // starts in quick succession become one run
	FoldThrottle  FoldKind = 3 // at most so many starts per period
)

var foldKinds = [...]string{"unknown", "singleton", "debounce", "throttle"}

// String returns the word that views, logs and errors use.
func (k FoldKind) String() string {
	if k < 0 || int(k) >= len(foldKinds) {
		return foldKinds[0]
	}
	return foldKinds[k]
}

// FoldKey identifies one row of the fold table.
type FoldKey struct {
	Workflow string
	Key      string
	Kind     FoldKind
}

// Shard returns the shard of the row.
func (k FoldKey) Shard() int16 { return ShardOfName(k.Workflow + "\x00" + k.Key) }

// Fold is one row of the fold table.
type Fold struct {
	FoldKey
	CheckAt    time.Time     // when a worker checks the row
	AfterRun   uuid.NullUUID // a worker also checks the row when this run has ended
	WaitingRun uuid.NullUUID // the run that is not released yet
	State      []byte        // what the engine records; in its encoding, which is a JSON object
	Input      []byte        // of a run that waits, if it is another than the run was started with; else nil
}

// FoldRun is a run as FoldChangeRequest.Plan sees it. It may change at any time, because it is not locked.
type FoldRun struct {
	Name     string
	Status   Status
	Control  ControlBits
	Epoch    Epoch
	Queue    string
	Version  string
	Priority int16
}

// FoldChangeRequest reads, plans and writes the row of one key in a transaction.
type FoldChangeRequest struct {
	Key FoldKey
	// SkipLocked makes ChangeFold return without a call of Plan if the key has no row, or if another transaction has locked the row.
	// Without SkipLocked, ChangeFold waits a short time for the lock, and then returns ErrLocked.
	SkipLocked bool
	// Name is the name of a root run that Plan decides about. Name is empty if there is none.
	Name string
	// RunsToRead returns the runs that Plan decides about. ChangeFold calls it with the locked row.
	RunsToRead func(row *Fold) []uuid.UUID
	// Plan returns the changes to write, or nil if nothing changes. Plan must not block, and may be called several times.
	Plan func(s FoldSnapshot) *FoldWrite

	// AppliedWrite is the FoldWrite that was written, with the outcome of its start, or nil if nothing was written.
	AppliedWrite *FoldWrite
}

// FoldSnapshot is the argument of [FoldChangeRequest.Plan]: the row of the key and the runs concerned, as the transaction has read them.
type FoldSnapshot struct {
	Row         *Fold                 // nil: there is none
	Runs        map[uuid.UUID]FoldRun // the runs of FoldChangeRequest.RunsToRead that exist
	RunWithName *Run                  // the root with FoldChangeRequest.Name; nil: there is none
}

// FoldWrite is what a FoldChangeRequest writes.
type FoldWrite struct {
	Row    Fold
	Delete bool        // the row is deleted
	Start  *StartWrite // a run to create; nil: none
	// Release makes a run claimable that was created with Unreleased. Release is nil if no run becomes claimable. If the run has
	// begun or ended, is to be cancelled, or has another queue or priority than Plan has seen, ChangeFold does not release the
	// run and plans again.
	Release *FoldRelease
}

// FoldRelease makes a run claimable. A paused run stays paused, and begins when it is resumed. A run whose timeout SetDeadline
// has set or removed keeps it, and gets neither Deadline nor Timeout.
type FoldRelease struct {
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
