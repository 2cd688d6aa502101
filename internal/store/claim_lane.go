package store

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// ClaimLane identifies a group of runs that the same workers may claim: the runs with the same queue, workflow, version, priority and
// admission state, and the same set of versions whose code did not fit the run's history. All versions that IsOrderedVersion excludes from the order of versions share one lane. The lane is the first column of the
// index by which claims find due runs, so a claim reads only lanes from which the worker may take runs. A ClaimLane is never negative.
//
// A ClaimLane is a hash of the queue, the workflow and the other values, so that no table of lanes is needed. The hash in a ClaimLane is
// cryptographic, so that nobody can choose a queue name that leads to the lane of another queue.
type ClaimLane int64

// FirstLane is lower than every lane, and LastLane is higher than every lane from which a claim takes runs.
const (
	FirstLane ClaimLane = -1
	LastLane  ClaimLane = math.MaxInt64
)

// AdmissionState tells whether a claim may take a run, or whether the run first needs an admission by its queue. The three lowest bits of a
// [ClaimLane] are the AdmissionState. The database stores the numbers of the AdmissionState constants.
type AdmissionState int8

// The admission states. Claims take only runs with AdmissionNotNeeded, AdmissionGranted or AdmissionBypassed. SQL statements
// test the lowest bit, which is set if the run waits for an admission. SQL statements also test the two lowest bits, which are
// 2 if the run was admitted or bypasses the queue.
const (
	AdmissionNotNeeded AdmissionState = 0 // the queue has no row: a claim may take the run when it is due
	AdmissionPending   AdmissionState = 1 // the queue has a row, and an admission has to decide about the run when it is due
	AdmissionGranted   AdmissionState = 2 // the run has a place in its queue: a claim may take it when it is due
	AdmissionInLine    AdmissionState = 3 // the run waits for a place; WakeAt is the earliest of its deadlines
	AdmissionBypassed  AdmissionState = 6 // as AdmissionGranted, but the bounds of the queue do not apply: a worker that already executes as many runs of the queue as it may claims the run too
)

// admissionMask selects the bits of the admission state.
const admissionMask = 7

// StrayCheckInterval is how often admissions read the database's lanes to find runs that entered a queue before the queue's row was
// created.
const StrayCheckInterval = time.Second

// ClaimLaneOf returns the lane of a run with AdmissionNotNeeded.
func ClaimLaneOf(queue, workflow, version string, priority int16) ClaimLane {
	return ClaimLaneOfDivergedRun(queue, workflow, version, "", priority)
}

// ClaimLaneOfDivergedRun returns the lane of a run with AdmissionNotNeeded if some versions of the code have diverged on the run; see
// DivergedVersions.
func ClaimLaneOfDivergedRun(queue, workflow, version string, diverged DivergedVersions, priority int16) ClaimLane {
	b := make([]byte, 0, 256)
	b = binary.BigEndian.AppendUint32(b, uint32(len(queue)))
	b = append(append(b, queue...), workflow...)
	if IsOrderedVersion(version) {
		b = append(append(b, 0), version...) // no name contains a zero byte
	}
	if diverged != "" {
		b = append(append(b, 0, 0), diverged...)
	}
	b = binary.BigEndian.AppendUint16(b, uint16(priority))
	h := sha256.Sum256(b)
	return ClaimLane(binary.BigEndian.Uint64(h[:8])>>4) << 3
}

// ClaimLane returns the lane of the run, which contains the run's admission state.
func (r *Run) ClaimLane() ClaimLane {
	if r.Unreleased {
		return UnreleasedLane
	}
	return ClaimLaneOf(r.Queue, r.Workflow, r.Version, r.Priority).WithAdmission(r.Admission)
}

// Admission returns the AdmissionState of the runs in the lane, which is stored in the three lowest bits of the ClaimLane.
func (l ClaimLane) Admission() AdmissionState { return AdmissionState(l & admissionMask) }

// WithAdmission returns the lane that has the given admission state, and otherwise the same queue, workflow, version and priority.
func (l ClaimLane) WithAdmission(g AdmissionState) ClaimLane { return l&^admissionMask | ClaimLane(g) }

// IsAdmitted reports whether the queue has admitted the run, or whether the run bypasses the queue. An admitted run needs no further
// admission until the run waits, is paused or ends.
func (g AdmissionState) IsAdmitted() bool { return g == AdmissionGranted || g == AdmissionBypassed }

// Claimable reports whether a claim may take due runs of the lane.
func (l ClaimLane) Claimable() bool { return l&1 == 0 }

// RotateLanesRandomly prepares lanes, which are sorted by priority, for one claim. RotateLanesRandomly makes the list of the lanes of each priority begin
// at a random lane, and keeps the cyclic order of these lanes. Without RotateLanesRandomly, claims that always reach their limit at the first lane
// would never reach the last lane.
func RotateLanesRandomly[L any](lanes []L, priority func(*L) int16) {
	for rest := lanes; len(rest) > 0; {
		n := 1
		for n < len(rest) && priority(&rest[n]) == priority(&rest[0]) {
			n++
		}
		first := rand.IntN(n)
		slices.Reverse(rest[:first])
		slices.Reverse(rest[first:n])
		slices.Reverse(rest[:n])
		rest = rest[n:]
	}
}

// QueueClaimRules tells a claim which queues have settings, and from which queues the worker currently claims only some runs. A
// QueueClaimRules value is immutable. A nil *QueueClaimRules means that no queue has settings.
type QueueClaimRules struct {
	queues      map[string]queueClaimRule
	onlyExpired bool // see NewClaimRulesForExpiredRuns
}

// queueClaimRule tells which admitted runs of a queue the worker claims. It always claims runs that need no place.
type queueClaimRule int8

const (
	claimsAdmittedRuns  queueClaimRule = iota
	claimsStartedRuns                  // those that were executed before: the queue is paused
	claimsBypassingRuns                // none: the worker executes as many runs of the queue as allowed
)

// NewQueueClaimRules returns the rules for the given queues, which have settings and are not deleted. The argument full lists the queues
// of which the worker already executes as many runs as it may: from a full queue, the worker claims only runs that need no place. From a
// queue in the argument paused, the worker claims only runs that need no place and runs that were executed before.
func NewQueueClaimRules(queues, full, paused []string) *QueueClaimRules {
	g := &QueueClaimRules{queues: make(map[string]queueClaimRule, len(queues))}
	for _, q := range queues {
		g.queues[q] = claimsAdmittedRuns
	}
	for _, q := range paused {
		g.queues[q] = claimsStartedRuns
	}
	for _, q := range full {
		g.queues[q] = claimsBypassingRuns
	}
	return g
}

// NewClaimRulesForExpiredRuns returns the rules of a claim that takes only expired runs of the given queues. An expired run needs no place and
// was never executed.
func NewClaimRulesForExpiredRuns(queues []string) *QueueClaimRules {
	g := NewQueueClaimRules(queues, nil, nil)
	g.onlyExpired = true
	return g
}

// AllowsClaim reports whether a claim may take runs from a lane of the queue. If a process that does not know the queue's row yet starts a
// run, the run has AdmissionNotNeeded although the queue has a row. No claim takes such a run before an admission has decided about the
// run.
func (g *QueueClaimRules) AllowsClaim(l ClaimLane, queue string) bool {
	if !l.Claimable() {
		return false
	}
	if g == nil {
		return true
	}
	rule, found := g.queues[queue]
	if g.onlyExpired {
		return found && l.Admission() == AdmissionBypassed
	}
	return !found || rule != claimsBypassingRuns && l.Admission() == AdmissionGranted || l.Admission() == AdmissionBypassed
}

// ClaimsOnlyStartedRuns reports whether a claim takes from the lane only runs that were executed before, because the queue is paused.
func (g *QueueClaimRules) ClaimsOnlyStartedRuns(l ClaimLane, queue string) bool {
	return g != nil && l.Admission() == AdmissionGranted && g.queues[queue] == claimsStartedRuns
}

// ClaimsOnlyUnstartedRuns reports whether a claim takes only runs that were never executed.
func (g *QueueClaimRules) ClaimsOnlyUnstartedRuns() bool { return g != nil && g.onlyExpired }

// ClaimFilter tells which runs a worker claims: the runs of the worker's workflows, in all queues or in some queues. A ClaimFilter is
// immutable. A nil *ClaimFilter selects no run.
type ClaimFilter struct{ workflows, queues map[string]struct{} }

// NewClaimFilter returns a filter that selects the runs of the workflows in the given queues, or in all queues if no queue is
// given.
func NewClaimFilter(workflows, queues []string) *ClaimFilter {
	set := func(names []string) map[string]struct{} {
		m := make(map[string]struct{}, len(names))
		for _, n := range names {
			m[n] = struct{}{}
		}
		return m
	}
	return &ClaimFilter{workflows: set(workflows), queues: set(queues)}
}

// Includes reports whether the filter selects the runs of the workflow in the queue.
func (s *ClaimFilter) Includes(queue, workflow string) bool {
	if s == nil {
		return false
	}
	_, executes := s.workflows[workflow]
	_, serves := s.queues[queue]
	return executes && (serves || len(s.queues) == 0)
}

// WorkflowsAndQueues returns the workflows and the queues of the filter. The list of queues is empty if the filter selects all queues.
func (s *ClaimFilter) WorkflowsAndQueues() (workflows, queues []string) {
	if s == nil {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(s.workflows)), slices.Sorted(maps.Keys(s.queues))
}

// Empty reports whether the filter selects no run at all.
func (s *ClaimFilter) Empty() bool { return s == nil || len(s.workflows) == 0 }
