package store

import (
	"context"
	"slices"
	"strings"
	"time"
)

// UnorderedVersionPrefix is the prefix of the version of an executable that was built without a version. A hash of the executable follows
// the prefix. A version with UnorderedVersionPrefix is neither earlier nor later than another version, and does not affect which worker
// claims a run.
const UnorderedVersionPrefix = "executable-"

// IsOrderedVersion reports whether the version has a place in the order of versions. An empty version has no place in the order of
// versions.
func IsOrderedVersion(version string) bool {
	return version != "" && !strings.HasPrefix(version, UnorderedVersionPrefix)
}

// VersionTakeoverDelay is how long the workers of all later versions of a workflow must have sent no reports before a worker of an earlier
// version claims their runs. VersionTakeoverDelay is so long that an outage of the database, or a rolling restart, does not look like a
// rollback.
const VersionTakeoverDelay = time.Minute

// VersionRetention is how long the database keeps a version after the last report of a worker with this version. A version that reports
// again after VersionRetention counts as a new version.
const VersionRetention = 90 * 24 * time.Hour

// VersionSighting is one row of the table of versions. A VersionSighting tells that workers of a version execute a workflow. The versions
// of a workflow are ordered by the time at which they were first seen.
type VersionSighting struct {
	Workflow, Version string
	Queue             string    // one of the queues that the workers serve; empty: all queues
	FirstSeen         time.Time // when a worker of the version first began
	LastSeen          time.Time // the last report of such a worker
}

// WorkerVersionReport is what a worker reports about the version of its code.
type WorkerVersionReport struct {
	Version   string // an empty version is not recorded: the worker only reads
	Now       time.Time
	Workflows []string // sorted
	Queues    []string // sorted; empty: all
	// FirstSeen has, for each workflow, the time at which the worker's version was first seen, as far as the worker knows; zero means that
	// the worker does not know. If a promoted standby has lost the rows of the version, the store records them again with the times in
	// FirstSeen, so that the order of versions remains.
	FirstSeen []time.Time
}

// QueuesToRecord returns the queues for which the store records a row each. If the worker takes runs from all queues, QueuesToRecord
// returns one empty name.
func (r *WorkerVersionReport) QueuesToRecord() []string {
	if len(r.Queues) == 0 {
		return []string{""}
	}
	return r.Queues
}

// KnownVersions are the versions of some workflows that a process has read from the database.
type KnownVersions struct {
	Sightings []VersionSighting
	// LatestArrival is the latest time at which a version of any workflow appeared, or appeared again after VersionTakeoverDelay without
	// reports.
	LatestArrival time.Time
}

// VersionStore records which versions of the code execute which workflows.
type VersionStore interface {
	// RecordWorkerVersion records a report of the worker's version for each of its workflows and queues, and returns all versions of these
	// workflows. A new version counts as later than all recorded versions, whatever the clock says. RecordWorkerVersion also deletes the
	// rows of versions that no worker has reported for longer than VersionRetention.
	RecordWorkerVersion(ctx context.Context, r *WorkerVersionReport) (KnownVersions, error)

	// WorkflowVersions returns the known versions of the given workflows.
	WorkflowVersions(ctx context.Context, workflows []string) (KnownVersions, error)
}

// VersionClaimRules tells a claim which runs are reserved for workers of other versions of the code. A VersionClaimRules value is
// immutable. With a nil *VersionClaimRules, a claim ignores the versions of runs and does not record the worker's version.
type VersionClaimRules struct {
	ownVersion    string
	latestArrival time.Time
	workflows     map[string]*versionsOfWorkflow
	// ChangesAt is when the worker may claim some runs that are reserved now, unless workers of their versions report again. Zero means
	// never.
	ChangesAt  time.Time
	computedAt time.Time
}

// versionsOfWorkflow are the versions of one workflow.
type versionsOfWorkflow struct {
	sightings []VersionSighting // all sightings of one version have the same FirstSeen
	pinned    bool
	pinGrace  time.Duration // of a pinned workflow
}

// PinnedWorkflows maps the name of each pinned workflow to its grace period.
type PinnedWorkflows map[string]time.Duration

// MinPinnedSilence is how long a version must have sent no reports, at least, before workers of other versions execute its pinned runs.
// Workers report their versions every VersionReportInterval.
const MinPinnedSilence = 3 * VersionReportInterval

// VersionReportInterval is how often a worker reports its version.
const VersionReportInterval = 10 * time.Second

// NewVersionClaimRules returns the rules that follow from the known versions for a worker of the version own at the time now.
func NewVersionClaimRules(own string, known KnownVersions, pinned PinnedWorkflows, now time.Time) *VersionClaimRules {
	g := &VersionClaimRules{ownVersion: own, latestArrival: known.LatestArrival, workflows: make(map[string]*versionsOfWorkflow), computedAt: now}
	for workflow, grace := range pinned {
		g.workflows[workflow] = &versionsOfWorkflow{pinned: true, pinGrace: grace}
	}
	for _, s := range known.Sightings {
		w := g.workflows[s.Workflow]
		if w == nil {
			w = new(versionsOfWorkflow)
			g.workflows[s.Workflow] = w
		}
		w.sightings = append(w.sightings, s)
	}
	for _, w := range g.workflows {
		for i := range w.sightings {
			s := &w.sightings[i]
			if until := w.reservedUntil(s); s.Version != own && until.After(now) && (g.ChangesAt.IsZero() || until.Before(g.ChangesAt)) {
				g.ChangesAt = until
			}
		}
	}
	return g
}

// reservedUntil returns how long a sighting keeps runs from other versions.
func (w *versionsOfWorkflow) reservedUntil(s *VersionSighting) time.Time {
	if w.pinned {
		return s.LastSeen.Add(max(w.pinGrace, MinPinnedSilence))
	}
	return s.LastSeen.Add(VersionTakeoverDelay)
}

// firstSeen returns when the version was first seen, and false if it was not.
func (w *versionsOfWorkflow) firstSeen(version string) (first time.Time, seen bool) {
	for i := range w.sightings {
		if s := &w.sightings[i]; s.Version == version && (!seen || s.FirstSeen.Before(first)) {
			first, seen = s.FirstSeen, true
		}
	}
	return first, seen
}

// isLaterVersion reports whether a version comes after another one.
func isLaterVersion(version string, first time.Time, other string, otherFirst time.Time) bool {
	if c := first.Compare(otherFirst); c != 0 {
		return c > 0
	}
	return version > other
}

// ReservedUntil returns the time until which this worker may not claim runs of the version on which the given versions have diverged, because they
// are reserved for other workers, and reports whether the time is in the future. Runs of a pinned workflow are reserved for workers of the same
// version while such a worker lives. Runs of any other workflow are reserved for workers of the same or a later version while such a worker
// lives. For ReservedUntil, only workers that serve the given queue count.
//
// If the worker's own version has diverged on the runs, they are reserved while workers with versions that have not diverged are live, and for
// VersionTakeoverDelay after that. After this time the worker claims the runs again, so that they are held for drift again, and people
// see it. This rule does not apply to pinned workflows, whose runs no other version executes.
func (g *VersionClaimRules) ReservedUntil(queue, workflow, version string, diverged DivergedVersions) (until time.Time, kept bool) {
	if g == nil {
		return time.Time{}, false
	}
	until, _ = g.reservedForLaterUntil(queue, workflow, version, diverged)
	if w := g.workflows[workflow]; w != nil && !w.pinned && diverged.Contains(g.ownVersion) {
		for i := range w.sightings {
			s := &w.sightings[i]
			if at := w.reservedUntil(s); (s.Queue == "" || s.Queue == queue) && !diverged.Contains(s.Version) && at.After(until) {
				until = at
			}
		}
	}
	return until, until.After(g.computedAt)
}

// reservedForLaterUntil is ReservedUntil without the rule for runs on which the worker's own version has diverged. The runs are not reserved for
// the versions that have diverged, because these do not claim them, unless the workflow is pinned.
func (g *VersionClaimRules) reservedForLaterUntil(queue, workflow, version string, diverged DivergedVersions) (until time.Time, kept bool) {
	if version == g.ownVersion || !IsOrderedVersion(version) {
		return time.Time{}, false
	}
	w := g.workflows[workflow]
	if w == nil {
		return time.Time{}, false
	}
	first, seen := w.firstSeen(version)
	ownFirst, ownSeen := w.firstSeen(g.ownVersion)
	if !seen || !w.pinned && (!ownSeen || !isLaterVersion(version, first, g.ownVersion, ownFirst)) {
		return time.Time{}, false
	}
	for i := range w.sightings {
		s := &w.sightings[i]
		if s.Queue != "" && s.Queue != queue || !w.pinned && diverged.Contains(s.Version) {
			continue
		}
		if s.Version == version || !w.pinned && isLaterVersion(s.Version, s.FirstSeen, version, first) {
			if at := w.reservedUntil(s); at.After(until) {
				until = at
			}
		}
	}
	return until, until.After(g.computedAt)
}

// AllowsClaim reports whether the worker may claim runs with the given workflow, queue and version on which the given versions have
// diverged; see ReservedUntil.
func (g *VersionClaimRules) AllowsClaim(queue, workflow, version string, diverged DivergedVersions) bool {
	_, kept := g.ReservedUntil(queue, workflow, version, diverged)
	return !kept
}

// IsOtherOrderedVersion reports whether the given version differs from the worker's own version and has a place in the order of versions.
func (g *VersionClaimRules) IsOtherOrderedVersion(version string) bool {
	return g != nil && version != g.ownVersion && IsOrderedVersion(version)
}

// LastVersionArrivalTime returns the latest time at which a version appeared, or appeared again after a time without reports, as far as the
// rules know.
func (g *VersionClaimRules) LastVersionArrivalTime() time.Time {
	if g == nil || g.latestArrival.IsZero() {
		return time.Unix(0, 0).UTC() // before any version
	}
	return g.latestArrival
}

// VersionAfterClaim returns the version that a run of the given version gets when the worker claims the run: usually the worker's version,
// so that the rules of the next claim are about the version that has executed the run. This also applies to a run of a pinned workflow,
// because such a run may come from a client that executes no runs, or from a version whose workers are gone. A run whose version has a place
// in the order of versions keeps it if the worker's version has no place there.
func (g *VersionClaimRules) VersionAfterClaim(version string) string {
	if g == nil || g.ownVersion == "" || IsOrderedVersion(version) && !IsOrderedVersion(g.ownVersion) {
		return version
	}
	return g.ownVersion
}

// VersionsReleasedSince returns, for each workflow, the versions whose runs were reserved for other workers by the rules before, but are
// not reserved by the present rules.
func (g *VersionClaimRules) VersionsReleasedSince(before *VersionClaimRules) (released []VersionSighting) {
	if g == nil || before == nil {
		return nil
	}
	for workflow, w := range before.workflows {
		for _, s := range w.sightings {
			if !before.AllowsClaim(s.Queue, workflow, s.Version, "") && g.AllowsClaim(s.Queue, workflow, s.Version, "") &&
				!slices.ContainsFunc(released, func(r VersionSighting) bool { return r.Workflow == workflow && r.Version == s.Version }) {
				released = append(released, s)
			}
		}
	}
	return released
}

// LaneAfterClaim returns the lane and the version that the runs of a lane get when the worker claims them. If LaneAfterClaim returns an
// empty version, each run keeps its own version.
func (g *VersionClaimRules) LaneAfterClaim(lane ClaimLane, queue, workflow, version string, diverged DivergedVersions, priority int16) (next ClaimLane, nextVersion string) {
	after := g.VersionAfterClaim(version)
	if after == version && (g == nil || after != g.ownVersion) {
		return lane, ""
	}
	return ClaimLaneOfDivergedRun(queue, workflow, after, diverged, priority).WithAdmission(lane.Admission()), after
}

// LaneOfHeldRun returns the lane, with AdmissionNotNeeded, and the version that a held run gets when the worker claims it.
func (g *VersionClaimRules) LaneOfHeldRun(r *Run, diverged DivergedVersions) (ClaimLane, string) {
	version := g.VersionAfterClaim(r.Version)
	return ClaimLaneOfDivergedRun(r.Queue, r.Workflow, version, diverged, r.Priority), version
}

// Differs reports whether the rules may decide otherwise than the rules in the argument before.
func (g *VersionClaimRules) Differs(before *VersionClaimRules) bool {
	return !g.latestArrival.Equal(before.latestArrival) || !g.ChangesAt.Equal(before.ChangesAt)
}
