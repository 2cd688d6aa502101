// Package store is the interface between the engine and a database.
//
// The methods take many items and return a result for each of them. A store executes statements and
// reads rows. It knows nothing of workflow functions, retries, encodings or the goroutines of runs.
// The packages postgres and sqlite implement the interface, and both pass the test suite in
// storetest.
//
// # Rules every store keeps
//
//   - One call of Commit is one transaction: either everything is durable when Commit returns nil, or
//     nothing was written.
//   - Each transition is one guarded statement whose row count is checked. If a statement changes too
//     few rows, the store reads the rows and sets an Outcome for each item.
//   - A write carries the epoch of its claim, which is a count and a nonce. If the run has another
//     epoch, the write changes nothing, and its outcome is Fenced.
//   - The first writer of a step wins. A later write gets the outcome Adopted and the recorded row.
//   - A call may be repeated if its result was lost. If the row already has the state that the write
//     wanted, by the same epoch and attempt, the outcome is Written.
//   - Times are parameters that were measured on the database's clock (see Now), rounded to
//     microseconds.
//   - The items of a batch have any order. The store locks rows in the order of (shard, UUID, name), so
//     that two batches cannot deadlock.
//
// This package imports the standard library and the UUID type only.
package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// Store is one database. All methods are safe for concurrent use.
//
// Methods return these errors, which wrap the driver's error:
//   - ErrUnavailable: the same call may succeed when it is repeated (lost connection, serialization
//     failure, deadlock, busy file, ambiguous commit).
//   - ErrBadData: the database refused a value, and will refuse it again.
//   - ErrLocked, ErrRejected: nothing was written, and the call may succeed later. Other items
//     should be written without the items that cause the error.
//   - ErrSchema and ErrClosed.
type Store interface {
	ScheduleStore

	// Commit writes a batch in one transaction and sets the outcome of each item. The caller must
	// not access the batch until Commit has returned. After an error the outcomes are undefined, and
	// the caller may commit the same batch again. Only internal/journal calls Commit.
	Commit(ctx context.Context, b *Batch) error

	// Claim claims up to q.Limit due runs for q.Worker and loads their histories in the same round trip. It may load a long
	// history only in part; see ClaimedRun.UnreadHistory. A history contains everything that former owners have written: if an
	// owner lost its lease during a write, Claim waits until that write has ended or can no longer be committed.
	Claim(ctx context.Context, q ClaimQuery) (ClaimResult, error)

	// LeasesOfClaim returns the leases of the claim q that have not changed since: those with its worker,
	// nonce and LeaseUntil. A worker whose claim
	// failed calls it to release those runs, because the claim may have been committed nevertheless.
	// If the claim has not been committed yet, LeasesOfClaim returns nothing.
	LeasesOfClaim(ctx context.Context, q ClaimQuery) ([]Lease, error)

	// RenewLeases records the worker's heartbeat, extends its leases, and reads the
	// database's clock.
	RenewLeases(ctx context.Context, h Heartbeat) (RenewResult, error)

	// EndLeases makes the runs that the given workers own claimable at q.Now, if their leases end before q.LeaseUntil,
	// and returns how many. A store may also release runs whose leases end later. A worker that ends its own leases is
	// removed from the registry at once. A dead worker may stay in the registry until its heartbeat is a minute old.
	// Engines call EndLeases for workers that DeadWorkers has returned twice. A worker that stops calls EndLeases for its
	// own leases.
	EndLeases(ctx context.Context, workers []uuid.UUID, q ClaimQuery) (int, error)

	// ControlRuns pauses, resumes, cancels or terminates runs in one transaction. It locks the runs, their ancestors and their
	// descendants in the order of (shard, id), until no further child has been started. It then applies the changes that
	// ControlRequest.Plan returns, writes the events, wakes parents, and sets the results. If the database rolls the
	// transaction back (40001, 40P01), Control retries it. A repeated call changes nothing.
	ControlRuns(ctx context.Context, o *ControlRequest) error

	// SetDeadline sets or removes the deadline of one run; see DeadlineChangeRequest.
	SetDeadline(ctx context.Context, d *DeadlineChangeRequest) error

	// SetAwaitedChildEnds sets how many ends of the children of a call wake the run; see SetAwaitedChildEndsRequest.
	SetAwaitedChildEnds(ctx context.Context, w *SetAwaitedChildEndsRequest) error

	// OwnedRunChanges returns the changes to the runs that the worker owns: requests, wake-ups, deadlines and
	// terminations. It reports a wake-up once, and the caller then checks everything that the run
	// waits for. If the result of a call was lost, a wake-up may be lost with it; then the caller must
	// check all its runs.
	OwnedRunChanges(ctx context.Context, worker uuid.UUID, held []Lease) (OwnedRunChanges, error)

	// GetRuns returns one row for each reference, or nil if there is no such run. It reads all payloads,
	// so use Statuses for polling, and Find to resolve a reference.
	GetRuns(ctx context.Context, refs []RunRef) ([]*Run, error)

	// GetRunsSelectingPayloads returns the same as Get, but reads only the selected payloads.
	GetRunsSelectingPayloads(ctx context.Context, refs []RunRef, with PayloadSelection) ([]*Run, error)

	// Statuses returns the status of each run, or zero if there is no such run. It reads nothing
	// else, so it is suitable for polling.
	Statuses(ctx context.Context, runs []uuid.UUID) ([]Status, error)

	// RunFingerprints returns a text for each run, which changes when the run or one of its checkpoints changes, or the empty text if there is no such
	// run. Of each run it considers up to limit checkpoints. The renewal of a lease is no change.
	RunFingerprints(ctx context.Context, runs []uuid.UUID, limit int) ([]string, error)

	// History returns the checkpoints of one run, ordered as by SortByCallOrder.
	History(ctx context.Context, run uuid.UUID) ([]Step, error)

	// HistoryFrom returns the checkpoints of one run whose names are from or later, ordered by name.
	// It returns about the given number of bytes, and at least one checkpoint if there is one.
	HistoryFrom(ctx context.Context, run uuid.UUID, from string, bytes int) ([]Step, UnreadHistory, error)

	// HistoryOutline returns the checkpoints of one run, ordered as by SortByCallOrder, without their payloads: only choices, Maps, renewals
	// and graphs have their Output, and none has its Error and its Failures.
	HistoryOutline(ctx context.Context, run uuid.UUID) ([]Step, error)

	// Checkpoints returns the checkpoints of one run with the given names, ordered as by SortByCallOrder. It leaves out an Output of more
	// than maxOutput bytes.
	Checkpoints(ctx context.Context, run uuid.UUID, names []string, maxOutput int) ([]SizedStep, error)

	// RunProgress returns what the run waits for at the time now, the progress of its Maps, and its tags.
	RunProgress(ctx context.Context, run uuid.UUID, now time.Time) (RunProgress, error)

	// ListRuns returns up to limit runs that match the filter, ordered by descending UUID, so the newest come first. Unless before is
	// zero, it returns only runs with lower UUIDs than before. The fields Input and Output of the runs are not filled in.
	ListRuns(ctx context.Context, f Filter, before uuid.UUID, limit int) ([]*Run, error)

	// RunTree returns the run and all its descendants, level by level, each level ordered by UUID. The fields Input and Output of
	// the runs are not filled in. If there is no such run, the result is empty.
	RunTree(ctx context.Context, run uuid.UUID) ([]*Run, error)

	// RunTreeCounts returns how many runs of the tree have each status, and how many checkpoints of each kind
	// they wait for, at the time now.
	RunTreeCounts(ctx context.Context, run uuid.UUID, now time.Time) (TreeCounts, error)

	// SetTags sets tags of a run; an empty value removes a tag. It returns false if there is no such run.
	// If the epoch is not zero, it also returns false unless the run is running at this epoch.
	// The act is recorded in an event if any tag changes.
	SetTags(ctx context.Context, run uuid.UUID, tags []Tag, epoch Epoch, by ActorAndReason) (bool, error)

	// CountUnreceivedSignals returns, for each of the runs and each name of a signal, how many signals the run has not
	// received. The result has no entry for a run that has received all its signals. It is ordered by the position in runs, then by name.
	CountUnreceivedSignals(ctx context.Context, runs []uuid.UUID) ([]SignalCount, error)

	// Events returns up to limit events after the cursor, in the order in which they were committed.
	// An empty cursor starts at the first event. No event is ever added before an event that was
	// returned. Events returns ErrBadData if the text is no cursor of this store. It returns
	// ErrBadData together with ErrRestored if the event of the cursor no longer exists although older
	// events do, so that the position of the cursor is unknown.
	Events(ctx context.Context, after string, limit int) ([]Event, error)

	// Workers returns the registered workers, oldest first.
	Workers(ctx context.Context) ([]Worker, error)

	// SetWorkerQuiet makes a worker quiet, or resumes it, and reports whether it is registered. The worker learns in the result of
	// its next Renew that it was made quiet or resumed. A worker that is in the wanted state already keeps its LastChange.
	SetWorkerQuiet(ctx context.Context, c SetWorkerQuietRequest) (bool, error)

	// OverdueClaimLanes returns up to limit lanes that have a run which was due at the given time and which a claim
	// may take, each with the run that has been due for the longest time. It returns only lanes after the
	// given one, in ascending order.
	OverdueClaimLanes(ctx context.Context, at time.Time, after ClaimLane, limit int) ([]OverdueLane, error)

	// HaveLiveWorkers reports, for each pair of a queue and a workflow, whether a live worker claims runs of the workflow from the
	// queue. A quiet worker claims no runs, so it does not count. A worker with too many workflows to be recorded counts for all workflows.
	HaveLiveWorkers(ctx context.Context, pairs []QueueWorkflow) ([]bool, error)

	StartKeyStore

	LimitStore
	QueueStore
	QueueAdmitter
	QueueMoveStore
	RepairStore
	RetentionStore
	VersionStore
	DivergenceStore
	OverviewStore

	// TokenSigningKey returns the key that signs the tokens of callbacks: 32 random bytes. The database
	// keeps the key, so every process uses the same one. The first use creates it.
	TokenSigningKey(ctx context.Context) ([]byte, error)

	// Now returns the time of the database's clock.
	Now(ctx context.Context) (time.Time, error)

	// Listen shows to other processes that the worker is alive (see DeadWorkers). It calls the given function when another process
	// may have made a run claimable or changed a run of this worker. The function onHint must not block. Listen reconnects by itself
	// until ctx ends, and then releases what it holds and returns. A store whose database has no such mechanism only waits for ctx.
	Listen(ctx context.Context, worker uuid.UUID, onHint func(WakeHint)) error

	// DeadWorkers returns the registered workers, except self, that are known to be dead although their
	// leases have not expired. It only speeds up a takeover: a store that cannot detect dead workers
	// returns none, and their leases expire. It may check only the DeadWorkerCheckCount workers that follow self in the order of
	// their IDs, because every worker makes this call. It does not count the workers in known, which the caller knows to
	// be dead, and always checks them.
	DeadWorkers(ctx context.Context, self uuid.UUID, known []uuid.UUID) (Peers, error)

	// Name returns the kind of database: "postgres" or "sqlite".
	Name() string

	// Close releases every connection that the store opened itself.
	Close() error
}

// DeadWorkerCheckCount is the number of workers that one call of DeadWorkers must check, unless there are fewer.
const DeadWorkerCheckCount = 32

// Peers is the result of Store.DeadWorkers.
type Peers struct {
	Dead            []uuid.UUID
	Live            int // how many other workers show that they are alive, or have died too recently for the caller to know
	LiveWithLowerID int // how many of the live workers have a lower ID than the caller

	// WorkersSharingConns is how many workers on other schemas of the same database share the caller's connections. Many such
	// workers poll less often, because their polls use the same connections and the same server.
	WorkersSharingConns int
}

// HeartbeatSharer is a Store that sends the heartbeats of several workers that own no run in one statement, if they are due together.
type HeartbeatSharer interface {
	// HeartbeatPhase returns a random time, which is the same for all stores of this process that do so with each other. Their
	// workers send such heartbeats when the current time plus the phase is a multiple of the interval.
	HeartbeatPhase() time.Duration
}

// SerialCommitter is a Store that executes concurrent commits one after the other.
type SerialCommitter interface {
	Store
	// CommitsSerially does nothing. It marks the type.
	CommitsSerially()
}
