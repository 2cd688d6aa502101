package store

import (
	"context"
	"slices"
	"strings"
	"time"
)

// UnorderedVersionPrefix is the prefix of the version of an executable that was built without a version. A hash of the executable
// follows the prefix. Such a version is neither earlier nor later than another version, and does not affect which worker claims a run.
const UnorderedVersionPrefix = "executable-"

// IsOrderedVersion reports whether the version has a place in the order of versions. An empty one has none.
func IsOrderedVersion(version string) bool {
	return version != "" && !strings.HasPrefix(version, UnorderedVersionPrefix)
}

// VersionTakeoverDelay is how long the workers of all later versions of a workflow must have sent no reports before a worker of an
// earlier version claims their runs. An outage of the database, or a rolling restart, must not look like a rollback.
const VersionTakeoverDelay = time.Minute

// VersionRetention is how long a version is kept in the database after its last report. A version that comes back later is a new
// one.
const VersionRetention = 90 * 24 * time.Hour

// VersionSighting is one row of the table of versions: workers of the version execute the workflow. The versions of a workflow
// are in the order in which they were first seen.
type VersionSighting struct {
	Workflow, Version string
	Queue             string    // one of the queues that the workers serve; empty: all queues
	FirstSeen         time.Time // when a worker of the version first began
	LastSeen          time.Time // the last report of such a worker
}

// WorkerVersionReport is what a worker reports about its version.
type WorkerVersionReport struct {
	Version   string // an empty version is not recorded: the worker only reads
	Now       time.Time
	Workflows []string // sorted
	Queues    []string // sorted; empty: all
	// FirstSeen has, for each workflow, when the worker knows its version to have been first seen; zero means it does not know.
	// A promoted standby may have lost the rows: then they are recorded again with these times, so that the order remains.
	FirstSeen []time.Time
}

// QueuesToRecord returns the queues of the report, each for a row, or an empty name for all queues.
func (r *WorkerVersionReport) QueuesToRecord() []string {
	if len(r.Queues) == 0 {
		return []string{""}
	}
	return r.Queues
}

// KnownVersions are the versions of some workflows.
type KnownVersions struct {
	Sightings []VersionSighting
	// LatestArrival is when a version of any workflow last appeared, or appeared again after a silence of VersionTakeoverDelay.
	LatestArrival time.Time
}

// VersionStore keeps which versions of the code execute which workflows.
type VersionStore interface {
	// RecordWorkerVersion records a report of the worker's version for each of its workflows and queues, and returns all versions of
	// these workflows. A new version is later than all that are recorded, whatever the clock says. Sightings older than
	// VersionRetention are deleted.
	RecordWorkerVersion(ctx context.Context, r *WorkerVersionReport) (KnownVersions, error)

	// WorkflowVersions returns the versions of the workflows.
	WorkflowVersions(ctx context.Context, workflows []string) (KnownVersions, error)
}

// VersionClaimRules tells a claim which runs belong to other versions of the code. It does not change. Nil means that the versions of
// runs decide nothing, and that a claim does not record its own.
type VersionClaimRules struct {
	ownVersion    string
	latestArrival time.Time
	workflows     map[string]*workflowVersions
	// ChangesAt is when some of these runs may be claimed unless workers of their versions report again; zero means never.
	ChangesAt  time.Time
	computedAt time.Time
}

// workflowVersions are the versions of one workflow.
type workflowVersions struct {
	sightings []VersionSighting // of the same version, they have the same FirstSeen
	pinned    bool
	pinGrace  time.Duration // of a pinned workflow
}

// PinnedWorkflows has the grace period of each pinned workflow.
type PinnedWorkflows map[string]time.Duration

// MinPinnedSilence is the shortest time without reports of a version after which other versions execute its pinned runs. Workers
// report every VersionReportInterval.
const MinPinnedSilence = 3 * VersionReportInterval

// VersionReportInterval is how often a worker reports its version.
const VersionReportInterval = 10 * time.Second

// NewVersionClaimRules returns what the known versions mean for a worker of the version own at the time now.
func NewVersionClaimRules(own string, known KnownVersions, pinned PinnedWorkflows, now time.Time) *VersionClaimRules {
	g := &VersionClaimRules{ownVersion: own, latestArrival: known.LatestArrival, workflows: make(map[string]*workflowVersions), computedAt: now}
	for workflow, grace := range pinned {
		g.workflows[workflow] = &workflowVersions{pinned: true, pinGrace: grace}
	}
	for _, s := range known.Sightings {
		w := g.workflows[s.Workflow]
		if w == nil {
			w = new(workflowVersions)
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
func (w *workflowVersions) reservedUntil(s *VersionSighting) time.Time {
	if w.pinned {
		return s.LastSeen.Add(max(w.pinGrace, MinPinnedSilence))
	}
	return s.LastSeen.Add(VersionTakeoverDelay)
}

// firstSeen returns when the version was first seen, and false if it was not.
func (w *workflowVersions) firstSeen(version string) (first time.Time, seen bool) {
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

// ReservedUntil returns the time until which this worker may not claim runs of the version, because they are reserved for other
// workers, and reports whether the time is in the future. Runs of a pinned workflow are reserved for workers of the same version
// while such a worker lives. Runs of any other workflow are reserved for workers of the same or a later version while such a
// worker lives. Only workers that serve the queue count.
func (g *VersionClaimRules) ReservedUntil(queue, workflow, version string) (until time.Time, kept bool) {
	return g.reservedUntil(queue, workflow, version, "")
}

// reservedUntil is ReservedUntil for runs on which the given versions have diverged. Nothing is kept for these versions, because they
// do not claim the runs, unless the workflow is pinned.
func (g *VersionClaimRules) reservedUntil(queue, workflow, version string, diverged DivergedVersions) (until time.Time, kept bool) {
	if g == nil || version == g.ownVersion || !IsOrderedVersion(version) {
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

// AllowsClaim reports whether the worker may claim runs of a version of the workflow in the queue on which the given versions have
// diverged.
//
// If its own version is one of them, it does not, while workers of others that serve the queue live, and for VersionTakeoverDelay
// after. Then the worker tries the runs again, so that they are held again where people see it. A pinned workflow has no other versions.
func (g *VersionClaimRules) AllowsClaim(queue, workflow, version string, diverged DivergedVersions) bool {
	if g == nil {
		return true
	}
	if w := g.workflows[workflow]; w != nil && !w.pinned && diverged.Contains(g.ownVersion) && slices.ContainsFunc(w.sightings, func(s VersionSighting) bool {
		return (s.Queue == "" || s.Queue == queue) && !diverged.Contains(s.Version) && s.LastSeen.Add(VersionTakeoverDelay).After(g.computedAt)
	}) {
		return false
	}
	_, kept := g.reservedUntil(queue, workflow, version, diverged)
	return !kept
}

// IsForeign reports whether runs with this version are of another version that has a place in the order.
func (g *VersionClaimRules) IsForeign(version string) bool {
	return g != nil && version != g.ownVersion && IsOrderedVersion(version)
}

// LatestVersionArrival returns the time at which a version last appeared, or appeared again after a silence, as far as these rules know.
func (g *VersionClaimRules) LatestVersionArrival() time.Time {
	if g == nil || g.latestArrival.IsZero() {
		return time.Unix(0, 0).UTC() // before any
	}
	return g.latestArrival
}

// VersionAfterClaim returns the version that a run of the given workflow and version has after the worker has claimed it: that of the
// worker, with two exceptions. A run keeps the version of its starter if its workflow is pinned, and any version with a place in the
// order if the worker's has none.
func (g *VersionClaimRules) VersionAfterClaim(workflow, version string) string {
	switch {
	case g == nil:
		return version
	case IsOrderedVersion(version) && (!IsOrderedVersion(g.ownVersion) || g.isPinned(workflow)):
		return version
	case g.ownVersion == "":
		return version
	}
	return g.ownVersion
}

func (g *VersionClaimRules) isPinned(workflow string) bool {
	w := g.workflows[workflow]
	return w != nil && w.pinned
}

// VersionsReleasedSince returns the versions of each workflow whose runs the rules before reserved for other workers, and these rules do not.
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

// LaneAfterClaim returns the lane and the version that the runs of a lane get when the worker claims them. An empty version means
// that each run keeps its own.
func (g *VersionClaimRules) LaneAfterClaim(lane ClaimLane, queue, workflow, version string, diverged DivergedVersions, priority int16) (next ClaimLane, nextVersion string) {
	after := g.VersionAfterClaim(workflow, version)
	if after == version && (g == nil || after != g.ownVersion) {
		return lane, ""
	}
	return DivergedLaneOf(queue, workflow, after, diverged, priority).WithAdmission(lane.Admission()), after
}

// LaneOfHeldRun returns the lane, with AdmissionNotNeeded, and the version of a held run when the worker has claimed it.
func (g *VersionClaimRules) LaneOfHeldRun(r *Run, diverged DivergedVersions) (ClaimLane, string) {
	version := g.VersionAfterClaim(r.Workflow, r.Version)
	return DivergedLaneOf(r.Queue, r.Workflow, version, diverged, r.Priority), version
}

// Differs reports whether these rules may decide otherwise than the rules before.
func (g *VersionClaimRules) Differs(before *VersionClaimRules) bool {
	return !g.latestArrival.Equal(before.latestArrival) || !g.ChangesAt.Equal(before.ChangesAt)
}
