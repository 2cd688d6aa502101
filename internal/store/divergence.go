package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A run whose code does not fit its history is held: OwnershipEnd.Divergence pauses it with the control bit
// HeldForDrift, and records which version of the code diverged. A resume clears the bit, as a pause's. A worker of
// a version that has not diverged on the run may claim it directly. No claim reads held runs, so they cost a claim
// nothing.

// DivergenceStore reads and releases runs that are held for drift.
type DivergenceStore interface {
	// HeldRuns returns up to limit runs that are held for drift and not paused, of the workflows and queues of the
	// filter, on which the version has not diverged. It returns those with higher UUIDs than after, in ascending order.
	HeldRuns(ctx context.Context, version string, f *ClaimFilter, after uuid.UUID, limit int) ([]uuid.UUID, error)

	// ClaimHeld claims one run that is held for drift and not paused, for q.Worker, with q.Nonce and q.LeaseUntil. The run gets
	// the version of the worker, see VersionClaimRules.VersionAfterClaim. The run was read before: it is not claimed if its queue,
	// priority or version has changed. The
	// result has no history. A run that needs a place in its queue is not claimed, but becomes Pending at q.Now. The
	// result is nil if the run is not held any more, or is paused. The versions in diverged, which are those of its divergences, are
	// recorded on the run, and the version of the claim in its divergences.
	ClaimHeld(ctx context.Context, run *Run, diverged DivergedVersions, q ClaimQuery) (*Run, error)

	// Divergences returns the divergences of a run, ordered by version. They are kept until DeleteDivergences.
	Divergences(ctx context.Context, run uuid.UUID) ([]Divergence, error)

	// Histories returns the checkpoints of many runs, ordered by run and name.
	Histories(ctx context.Context, runs []uuid.UUID) ([]Step, error)

	// DeleteDivergences deletes the divergences of runs that have ended, and those without ContinuedBy of runs that are neither held
	// for drift nor running, because the runs were resumed since.
	DeleteDivergences(ctx context.Context) error
}

// Divergence records that a version of the code made a call that does not fit the history of a run.
type Divergence struct {
	Version string // empty: the version is unknown
	At      time.Time
	Call    string // as people see it; empty: the workflow function itself
	Detail  string // the recorded call, and the call that the code made
	// ContinuedBy is the version whose claim of the held run came after it; empty means none did.
	ContinuedBy string
}

// divergedSeparator separates the versions in a DivergedVersions. No version contains it.
const divergedSeparator = "\x1f"

// DivergedVersions are the versions that diverged on a run before another one continued it, sorted. They are recorded on the run and are
// part of its lane, so that they do not claim it again, and a claim does not read it; see VersionClaimRules.Allows.
type DivergedVersions string

// DivergedOn returns the versions of divergences.
func DivergedOn(all []Divergence) DivergedVersions {
	versions := make([]string, 0, len(all))
	for i := range all {
		if all[i].Version != "" {
			versions = append(versions, all[i].Version)
		}
	}
	slices.Sort(versions)
	return DivergedVersions(strings.Join(versions, divergedSeparator))
}

// Contains reports whether the version has diverged.
func (d DivergedVersions) Contains(version string) bool {
	return d != "" && slices.Contains(strings.Split(string(d), divergedSeparator), version)
}
