package store

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
)

// A run whose code does not fit its history is held: OwnershipEnd.Divergence pauses it with the control bit HeldForDrift, and records
// which version of the code diverged. A resume clears HeldForDrift, as it clears the bit of a pause. A worker of a version that has
// not diverged on the run may also claim the run directly, with ClaimRunHeldForDrift. Other claims do not read held runs, so they
// cost these claims nothing.

// DivergenceStore finds and claims runs that are held for drift. A run is held for drift if a call of the workflow's code does not match
// the run's recorded history.
type DivergenceStore interface {
	// RunsHeldForDrift returns up to limit runs that the filter selects, that are held for drift and not paused, and on which the given
	// version has not diverged. RunsHeldForDrift returns only runs with higher UUIDs than the argument after, in ascending order.
	RunsHeldForDrift(ctx context.Context, version string, f *ClaimFilter, after uuid.UUID, limit int) ([]uuid.UUID, error)

	// ClaimRunHeldForDrift claims one run that is held for drift and not paused, for q.Worker, with q.EpochNonce and q.LeaseUntil. A run
	// that ClaimRunHeldForDrift claims gets the version of the worker; see VersionClaimRules.VersionAfterClaim. ClaimRunHeldForDrift does
	// not claim the run if its queue, priority or version has changed since the caller read the run. If the run needs a place in its queue,
	// ClaimRunHeldForDrift does not claim the run, but makes it Pending at q.Now. The run that ClaimRunHeldForDrift returns has no history.
	// ClaimRunHeldForDrift returns nil if the run is paused, or is no longer held. ClaimRunHeldForDrift stores the argument diverged, the
	// versions that have diverged on the run, in the run's row. ClaimRunHeldForDrift records in the run's divergences which version has
	// claimed the run.
	ClaimRunHeldForDrift(ctx context.Context, run *Run, diverged DivergedVersions, q ClaimQuery) (*Run, error)

	// Divergences returns the divergences of a run, ordered by version. The store keeps the divergences of a run until DeleteDivergences
	// deletes them.
	Divergences(ctx context.Context, run uuid.UUID) ([]Divergence, error)

	// Histories returns the checkpoints of many runs, ordered by run and name.
	Histories(ctx context.Context, runs []uuid.UUID) ([]Step, error)

	// DeleteDivergences deletes the divergences of runs that have ended. DeleteDivergences also deletes divergences without ContinuedBy if
	// their run is neither held for drift nor running, because a resume has released the run.
	DeleteDivergences(ctx context.Context) error
}

// Divergence records that a version of the code made a call that does not fit the history of a run.
type Divergence struct {
	Version string // empty: the version is unknown
	At      time.Time
	Call    string // as people see it; empty: the workflow function itself
	Detail  string // the recorded call, and the call that the code made
	// ContinuedBy is the version of the worker that claimed and continued the held run after this divergence. ContinuedBy is empty as long
	// as no worker has continued the run.
	ContinuedBy string
}

// divergedSeparator separates the versions in a DivergedVersions. No version contains it.
const divergedSeparator = "\x1f"

// DivergedVersions is the sorted list of the versions that diverged on a run before another version continued the run. The store records
// DivergedVersions in the run's row, and DivergedVersions is part of the hash that gives the run's ClaimLane. Claims by workers of these
// versions therefore skip the run as long as VersionClaimRules.AllowsClaim returns false.
type DivergedVersions string

// DivergedVersionsOf returns the versions that the given divergences record.
func DivergedVersionsOf(all []Divergence) DivergedVersions {
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
