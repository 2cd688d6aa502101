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
//   - The first writer of a step wins. A later write gets the outcome AlreadyRecorded and the recorded row.
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

// Store is the interface to one database. All methods of Store are safe for concurrent use.
//
// Methods return these errors, which wrap the driver's error:
//   - ErrUnavailable: the same call may succeed when it is repeated (lost connection, serialization
//     failure, deadlock, busy file, ambiguous commit).
//   - ErrBadData: the database refused a value, and will refuse it again.
//   - ErrLocked, ErrRejected: nothing was written, and the call may succeed later. The caller should write the other items without the
//     items that cause the error.
//   - ErrSchema and ErrClosed.
type Store interface {
	ScheduleStore

	// Commit writes a batch in one transaction and sets the outcome of each item. The caller must not access the batch until Commit has
	// returned. If Commit returns an error, the outcomes are undefined, and the caller may commit the same batch again. Only
	// internal/journal calls Commit.
	Commit(ctx context.Context, b *Batch) error

	// Claim claims up to q.Limit due runs for q.Worker and loads their histories in the same round trip. Claim may load only a part of a
	// long history; see ClaimedRun.UnreadHistory. A history that Claim loads contains everything that former owners have written: if an
	// owner lost its lease during a write, Claim waits until that write has ended or can no longer be committed.
	Claim(ctx context.Context, q ClaimQuery) (ClaimResult, error)

	// LeasesOfClaim returns the leases that the claim q has created and that have not changed since: the leases with the worker, the nonce
	// and the LeaseUntil of q. A worker whose claim has returned an error calls LeasesOfClaim to release the claimed runs, because the
	// database may have committed the claim nevertheless. If the claim has not been committed yet, LeasesOfClaim returns nothing.
	LeasesOfClaim(ctx context.Context, q ClaimQuery) ([]Lease, error)

	// RenewLeases records the heartbeat of the worker, extends the worker's leases, and reads the database's clock.
	RenewLeases(ctx context.Context, h Heartbeat) (RenewResult, error)

	// EndLeases releases the runs of the given workers whose leases end before q.LeaseUntil: the runs become claimable at q.Now. EndLeases
	// returns how many runs it has released. A store's EndLeases may also release runs whose leases end later. A worker that ends its own
	// leases is removed from the registry at once. A dead worker may stay in the registry until its heartbeat is a minute old. Engines call
	// EndLeases for workers that DeadWorkers has returned twice. A worker that stops calls EndLeases for its own leases.
	EndLeases(ctx context.Context, workers []uuid.UUID, q ClaimQuery) (int, error)

	// ControlRuns pauses, resumes, cancels or terminates runs in one transaction. ControlRuns locks the runs, their ancestors and their
	// descendants in the order of (shard, id), and repeats this until no further child has been started. ControlRuns then applies the
	// changes that ControlRequest.Plan returns, writes the events, wakes parents, and sets the results. If the database rolls the
	// transaction back (40001, 40P01), ControlRuns retries it. A repeated call of ControlRuns changes nothing.
	ControlRuns(ctx context.Context, o *ControlRequest) error

	// SetDeadline sets or removes the deadline of one run; see DeadlineChangeRequest.
	SetDeadline(ctx context.Context, d *DeadlineChangeRequest) error

	// SetAwaitedChildEnds sets how many children of a call must have ended before the parent run is woken; see
	// SetAwaitedChildEndsRequest.
	SetAwaitedChildEnds(ctx context.Context, w *SetAwaitedChildEndsRequest) error

	// OwnedRunChanges returns what has changed for the runs that the worker owns: pause and cancel requests, wake-ups, deadlines and
	// terminations. OwnedRunChanges reports each wake-up once, and the caller then checks everything that the woken run waits for. If the
	// result of an OwnedRunChanges call was lost, wake-ups may be lost with it, and the caller must check all its runs.
	OwnedRunChanges(ctx context.Context, worker uuid.UUID, held []Lease) (OwnedRunChanges, error)

	// GetRuns returns one row for each reference, or nil for a run that does not exist. GetRuns reads all payloads, so use Statuses for
	// polling, and GetRunsSelectingPayloads to resolve a reference.
	GetRuns(ctx context.Context, refs []RunRef) ([]*Run, error)

	// GetRunsSelectingPayloads returns the same rows as GetRuns, but reads only the selected payloads.
	GetRunsSelectingPayloads(ctx context.Context, refs []RunRef, with PayloadSelection) ([]*Run, error)

	// Statuses returns the status of each run, or zero if there is no such run. Statuses reads nothing but the status, so it is suitable
	// for polling.
	Statuses(ctx context.Context, runs []uuid.UUID) ([]Status, error)

	// RunFingerprints returns a text for each run that changes whenever the run or one of its checkpoints changes. For a run that does not
	// exist, RunFingerprints returns an empty text. RunFingerprints considers up to limit checkpoints of each run. The renewal of a run's
	// lease does not change its fingerprint.
	RunFingerprints(ctx context.Context, runs []uuid.UUID, limit int) ([]string, error)

	// History returns the checkpoints of one run, in the order of SortByCallOrder.
	History(ctx context.Context, run uuid.UUID) ([]Step, error)

	// HistoryFrom returns the checkpoints of one run, ordered by name, beginning with the name from or the first name after it.
	// HistoryFrom stops after about the given number of bytes, but returns at least one checkpoint if there is one.
	HistoryFrom(ctx context.Context, run uuid.UUID, from string, bytes int) ([]Step, UnreadHistory, error)

	// HistoryOutline returns the checkpoints of one run without their payloads, in the order of SortByCallOrder. Only the checkpoints of
	// choices, Maps, renewals and graphs in a HistoryOutline have their Output; no checkpoint has its Error or its Failures.
	HistoryOutline(ctx context.Context, run uuid.UUID) ([]Step, error)

	// CheckpointsByName returns the checkpoints of one run with the given names, in the order of SortByCallOrder. CheckpointsByName omits each
	// Output that is longer than maxOutput bytes.
	CheckpointsByName(ctx context.Context, run uuid.UUID, names []string, maxOutput int) ([]SizedStep, error)

	// RunProgress returns what the run waits for at the time now, how far its Maps are, and its tags.
	RunProgress(ctx context.Context, run uuid.UUID, now time.Time) (RunProgress, error)

	// ListRuns returns up to limit runs that match the filter, ordered by descending UUID, so that the newest runs come first. If before is
	// not zero, ListRuns returns only runs whose UUIDs are lower than before. ListRuns does not read the fields Input and Output of the
	// runs.
	ListRuns(ctx context.Context, f Filter, before uuid.UUID, limit int) ([]*Run, error)

	// RunTree returns the run and all its descendants, level by level, each level ordered by UUID. If allGenerations is true, the
	// descendants include the children of superseded generations, whose Parent is the archive ID of the generation. RunTree does not read
	// the fields Input and Output of the runs. If the run does not exist, RunTree returns an empty result.
	RunTree(ctx context.Context, run uuid.UUID, allGenerations bool) ([]*Run, error)

	// RunTreeCounts counts the runs of a tree by status, and the checkpoints for which these runs wait at the time now by kind. The tree
	// includes the children of superseded generations.
	RunTreeCounts(ctx context.Context, run uuid.UUID, now time.Time) (TreeCounts, error)

	// SetTags sets tags of a run; an empty value removes a tag. SetTags returns false if the run does not exist. If the argument epoch is
	// not zero, SetTags also returns false unless the run is running at this epoch. If any tag changes, SetTags records the actor and the
	// reason in an event.
	SetTags(ctx context.Context, run uuid.UUID, tags []Tag, epoch Epoch, by ActorAndReason) (bool, error)

	// CountUnreceivedSignals returns, for each of the runs and each signal name, how many signals with this name the run has not received.
	// The result of CountUnreceivedSignals has no entry for a run that has received all its signals. The result of CountUnreceivedSignals
	// is ordered by the position of the run in the argument runs, then by signal name.
	CountUnreceivedSignals(ctx context.Context, runs []uuid.UUID) ([]SignalCount, error)

	// Events returns up to limit events after the cursor, in the order in which they were committed. For an empty cursor, Events begins
	// with the first event. No event is ever added before an event that Events has returned. Events returns ErrBadData if the cursor text
	// does not come from this store. If the event of the cursor no longer exists although older events do, the position of the cursor is
	// unknown, and Events returns ErrBadData together with ErrRestored.
	Events(ctx context.Context, after string, limit int) ([]Event, error)

	// Workers returns the registered workers, the oldest worker first.
	Workers(ctx context.Context) ([]Worker, error)

	// SetWorkerQuiet makes a worker quiet or resumes it, and reports whether the worker is registered. The worker learns from its next call
	// of RenewLeases that it was made quiet or resumed. A worker that is already in the wanted state keeps its LastChange.
	SetWorkerQuiet(ctx context.Context, c SetWorkerQuietRequest) (bool, error)

	// OverdueClaimLanes returns up to limit lanes that have a run which was due at the given time and which a claim may take. With each
	// lane, OverdueClaimLanes returns the run that has been due for the longest time. OverdueClaimLanes returns only lanes after the given
	// lane, in ascending order.
	OverdueClaimLanes(ctx context.Context, at time.Time, after ClaimLane, limit int) ([]OverdueLane, error)

	// HaveLiveWorkers reports, for each pair of a queue and a workflow, whether a live worker claims runs of the workflow from the queue. A
	// quiet worker claims no runs, so it does not count as a live worker here. A worker with too many workflows to be recorded counts as a
	// worker that claims runs of all workflows.
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

	// TokenSigningKey returns the key that signs the tokens of callbacks: 32 random bytes. The database keeps the signing key, so every
	// process uses the same key. The first call of TokenSigningKey creates the key.
	TokenSigningKey(ctx context.Context) ([]byte, error)

	// Now returns the present time of the database's clock.
	Now(ctx context.Context) (time.Time, error)

	// Listen shows other processes that the worker is alive (see DeadWorkers). Listen calls onHint when another process may have made a run
	// claimable or changed a run of this worker. The function onHint must not block. Listen reconnects by itself until ctx ends; it then
	// releases its lock and its connection, and returns. If the database of a store has no notifications, Listen only waits for the end of
	// ctx.
	Listen(ctx context.Context, worker uuid.UUID, onHint func(WakeHint)) error

	// DeadWorkers returns the registered workers, except self, that the store knows to be dead although their leases have not expired.
	// DeadWorkers only speeds up takeovers: a store that cannot detect dead workers returns none, and other workers take over the runs when
	// the leases expire. A store may check only the MinDeadWorkerChecks workers that follow self in the order of their IDs, because every
	// worker calls DeadWorkers. In addition, DeadWorkers always checks the workers in known, which the caller knows to be dead.
	DeadWorkers(ctx context.Context, self uuid.UUID, known []uuid.UUID) (DeadWorkersResult, error)

	// Name returns the kind of database: "postgres" or "sqlite".
	Name() string

	// Close closes every connection that the store itself has opened.
	Close() error
}

// MinDeadWorkerChecks is how many workers one call of DeadWorkers must check, unless there are fewer workers.
const MinDeadWorkerChecks = 32

// DeadWorkersResult holds what Store.DeadWorkers returns about other workers.
type DeadWorkersResult struct {
	Dead                 []uuid.UUID
	LiveCount            int // how many other workers show that they are alive, or have died so recently that the store does not know it
	LiveWithLowerIDCount int // how many of the live workers have a lower ID than the caller

	// WorkersSharingConns is how many workers on other schemas of the same database share the caller's connections. If many workers share
	// connections, each of them polls less often, because their polls use the same connections and the same server.
	WorkersSharingConns int
}

// HeartbeatSharer is a Store that combines the heartbeats of several workers into one statement, if the workers own no run and their
// heartbeats are due at the same time.
type HeartbeatSharer interface {
	// HeartbeatPhase returns a random duration, which is the same for all stores of this process that share heartbeats. Workers that own no
	// run send their heartbeats when the current time plus the phase is a multiple of the interval.
	HeartbeatPhase() time.Duration
}

// SerialCommitter is a Store whose database executes concurrent commits one after the other.
type SerialCommitter interface {
	Store
	// CommitsSerially does nothing. CommitsSerially marks a type as a SerialCommitter.
	CommitsSerially()
}
