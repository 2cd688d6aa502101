package store

import (
	"context"
	"time"

	"github.com/google/uuid"
)

// A run whose code does not fit its history is held: OwnershipEnd.Divergence pauses it with the control bit
// HeldForDrift, and records which version of the code diverged. A resume clears the bit, as a pause's. A worker of
// a version that has not diverged on the run may claim it directly. No claim reads held runs, so they cost a claim
// nothing.

// DriftStore reads and releases runs that are held for drift.
type DriftStore interface {
	// HeldRuns returns up to limit runs that are held for drift and not paused, of the workflows and queues of the
	// filter, on which the version has not diverged. It returns those with higher UUIDs than after, in ascending order.
	HeldRuns(ctx context.Context, version string, f *ClaimFilter, after uuid.UUID, limit int) ([]uuid.UUID, error)

	// ClaimHeld claims one run that is held for drift and not paused, for q.Worker, with q.Nonce and q.LeaseUntil. The run gets
	// the version of the worker, see VersionClaimRules.VersionAfterClaim. The run was read before: it is not claimed if its queue,
	// priority or version has changed. The
	// result has no history. A run that needs a place in its queue is not claimed, but becomes Pending at q.Now. The
	// result is nil if the run is not held any more, or is paused.
	ClaimHeld(ctx context.Context, run *Run, q ClaimQuery) (*Run, error)

	// Divergences returns the divergences of a run, ordered by version. They are kept until DeleteDivergences.
	Divergences(ctx context.Context, run uuid.UUID) ([]Divergence, error)

	// Histories returns the checkpoints of many runs, ordered by run and name.
	Histories(ctx context.Context, runs []uuid.UUID) ([]Step, error)

	// DeleteDivergences deletes the divergences of runs that are neither held for drift nor running, because they have
	// continued since.
	DeleteDivergences(ctx context.Context) error
}

// Divergence records that a version of the code made a call that does not fit the history of a run.
type Divergence struct {
	Version string // empty: the version is unknown
	At      time.Time
	Call    string // as people see it; empty: the workflow function itself
	Detail  string // the recorded call, and the call that the code made
}
