// Package store is the seam between the engine and a database.
//
// The seam is narrow and plural: every method takes many items and answers
// each of them. A store knows rows and statements; it knows nothing of Go
// functions, retries, encodings or goroutines of runs. Two stores implement
// it, postgres and sqlite, and both pass the suite in storetest.
//
// # Rules every store keeps
//
//   - One call of Commit is one transaction: all of it is durable when Commit
//     returns nil, or none of it happened.
//   - Each transition is one guarded statement whose row count is checked;
//     a short count is read back and becomes an Outcome, never silence.
//   - A write carries the epoch of its claim, count and nonce. A write of any other epoch than
//     the run has changes nothing and is answered Fenced.
//   - The first writer of a step wins. A later one is answered Adopted, with
//     the recorded row.
//   - Replaying a call whose answer was lost is safe: a row found in exactly the
//     state that this write wanted, by this epoch and attempt, is Written.
//   - Times are parameters measured on the database's clock (see Now), rounded
//     to microseconds.
//   - Batches arrive in any order; the store locks rows in the order of
//     (shard, id, name), so that two of them cannot deadlock.
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
// Errors: ErrUnavailable wraps anything worth another try with the same
// arguments (connection loss, serialization failure, deadlock, a busy file, an
// ambiguous commit). ErrBadData wraps what the database refused because of a value and
// will refuse again. ErrLocked and ErrRejected wrap what wrote nothing and may succeed
// later: the items that are not concerned should be written without the others. ErrSchema
// and ErrClosed say what they say.
type Store interface {
	// Commit applies a batch in one transaction and fills in each item's answer.
	// The caller owns the batch again, and may read the answers, once Commit has
	// returned nil; after an error the answers mean nothing and the same batch may
	// be committed again. Only internal/journal calls it.
	Commit(ctx context.Context, b *Batch) error

	// Claim takes up to q.Limit due runs for q.Worker and loads their histories in the same
	// round trip, as far as they are small: of a long one it may leave out the rest, see
	// Claimed.Rest. A history, with its rest, has all that former owners have written: where one lost its
	// lease with a write under way, Claim waits for that, for as long as such a thing can take.
	Claim(ctx context.Context, q ClaimQuery) (Claims, error)

	// HeldBy returns the leases that the claim q took, as far as they are still as it left them. A
	// worker whose claim failed gives those runs back: the claim may have been committed all the
	// same. It may also be under way still, and then HeldBy returns nothing.
	HeldBy(ctx context.Context, q ClaimQuery) ([]Lease, error)

	// Renew records the worker's heartbeat, extends its leases, and reads the
	// database's clock.
	Renew(ctx context.Context, h Heartbeat) (Pulse, error)

	// Expire makes the runs of q.Pairs that the named workers own claimable at q.Now, as
	// far as their leases end before q.LeaseUntil, and answers how many; a store may free
	// those of other pairs too. A worker that expires itself leaves the registry at once;
	// a dead one may stay until its heartbeat is a minute old, so that others, with
	// other pairs, find it. It is called only
	// for workers that Dead has named twice, and for the caller itself when it leaves.
	Expire(ctx context.Context, workers []uuid.UUID, q ClaimQuery) (int, error)

	// Order carries out a pause, resume, cancel or termination in one transaction, by Order.Plan: it
	// locks everything at and beneath the runs, and above them, in the order of (shard, id);
	// looks again until no child has come meanwhile; makes the changes, the
	// events and the wakes; and fills in the answers. It tries again by itself when the
	// database undoes the transaction (40001, 40P01). An order that was carried out already
	// changes nothing.
	Order(ctx context.Context, o *Order) error

	// SetDeadline sets or removes when one run expires; see Deadline.
	SetDeadline(ctx context.Context, d *Deadline) error

	// News answers what the worker has to know of the runs that it holds. A run's being
	// woken is told once: the caller looks at all that its run waits for. If the answer is
	// lost, so may that be; then the caller must look in any case.
	News(ctx context.Context, worker uuid.UUID, held []Lease) (News, error)

	// Get answers one row per reference, nil where there is none. It reads all payloads, so it is
	// not for polling, nor to resolve a reference.
	Get(ctx context.Context, refs []Ref) ([]*Run, error)

	// Find answers as Get does, with those payloads only.
	Find(ctx context.Context, refs []Ref, with Payloads) ([]*Run, error)

	// Statuses answers the status of each run, zero where there is none. It reads nothing else,
	// whatever the runs hold: this is what is polled.
	Statuses(ctx context.Context, runs []uuid.UUID) ([]Status, error)

	// History returns the checkpoints of one run, ordered as by InOrder.
	History(ctx context.Context, run uuid.UUID) ([]Step, error)

	// HistoryFrom returns the checkpoints of one run that have this name or a later one, ordered by
	// name: so many that they take about that many bytes, and at least one if there is one.
	HistoryFrom(ctx context.Context, run uuid.UUID, from string, bytes int) ([]Step, Rest, error)

	// Outline answers what the run waits for at now, how far its Maps are, and its tags.
	Outline(ctx context.Context, run uuid.UUID, now time.Time) (Outline, error)

	// List answers up to limit runs by the filter, newest first (by descending ID), those
	// below the ID before, which is zero for the first page. Input and Output are left out.
	List(ctx context.Context, f Filter, before uuid.UUID, limit int) ([]*Run, error)

	// Tree answers the run and everything beneath it, parents before their children, then
	// by ID. Input and Output are left out. Nothing is answered for a run that is not there.
	Tree(ctx context.Context, run uuid.UUID) ([]*Run, error)

	// Counts counts the runs of the tree, and what they wait for, at now.
	Counts(ctx context.Context, run uuid.UUID, now time.Time) (Counts, error)

	// Tag sets tags of a run; an empty value removes one. It returns false if the run is
	// not there or, unless the epoch is zero, is not running at this epoch.
	Tag(ctx context.Context, run uuid.UUID, tags []Tag, epoch Epoch) (bool, error)

	// Unreceived returns how many signals wait for each of the runs, by name; nothing for those for
	// which none waits. It is ordered by the place of the run in the call, then by name.
	Unreceived(ctx context.Context, runs []uuid.UUID) ([]SignalCount, error)

	// Events answers up to limit events after the cursor (empty: from the first one) in the
	// order in which they were committed; none is ever added before one that was
	// answered. ErrBadData: the text is no cursor of this store; with ErrRestored: its event is gone,
	// although older ones are there, so that it cannot be told what came after it.
	Events(ctx context.Context, after string, limit int) ([]Event, error)

	// Workers lists the registry, oldest first.
	Workers(ctx context.Context) ([]Worker, error)

	// Overdue returns up to limit places, after another one in the order of queue and workflow, that have a run
	// which was due at a time, with the run of each that has been due for longest.
	Overdue(ctx context.Context, at time.Time, after Pair, limit int) ([]Overdue, error)

	// Executed reports of each place whether a live worker that takes new runs executes it. One whose
	// list of places is not kept may execute any.
	Executed(ctx context.Context, pairs []Pair) ([]bool, error)

	// TokenKey returns the secret that the tokens of awaitables are signed with: 32 random bytes
	// that are kept in the database, the same for every process. It is made at the first use.
	TokenKey(ctx context.Context) ([]byte, error)

	// Now reads the database's clock.
	Now(ctx context.Context) (time.Time, error)

	// Attend keeps worker present (see Dead) and calls hear, which never blocks,
	// whenever another process may have made a run claimable, or may have news for this
	// worker. It returns when ctx ends, having undone what it holds, and reconnects by
	// itself until then. All it does is optional: where a database cannot, it just waits
	// for ctx.
	Attend(ctx context.Context, worker uuid.UUID, hear func(Hint)) error

	// Dead answers which of the registered workers, self excepted, are seen to
	// be gone although their leases have not expired. It is an accelerator: a store
	// that cannot tell answers none, and lease expiry does the rest.
	Dead(ctx context.Context, self uuid.UUID) ([]uuid.UUID, error)

	// Name is the kind of database: "postgres" or "sqlite".
	Name() string

	// Close releases every connection that the store opened itself.
	Close() error
}

// Serial is a Store whose commits take turns, however many are asked for at the same time.
type Serial interface {
	Store
	// Serial does nothing.
	Serial()
}
