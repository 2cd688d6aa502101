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

// ClaimLane identifies the runs of one queue, workflow, version, priority and admission state, on which the same versions have diverged. Versions without a place in the order of
// versions (see IsOrderedVersion) are all the same here. It leads the index by which claims
// find due runs, so a claim reads only lanes from which it may take runs. It is never negative.
//
// A lane is a hash of these values, so that no table of lanes is needed. The hash is a cryptographic one, because names of queues
// may come from strangers: nobody can choose a name whose lane is that of another queue.
type ClaimLane int64

// FirstLane is lower than every lane, and LastLane is higher than every lane from which a claim takes runs.
const (
	FirstLane ClaimLane = -1
	LastLane  ClaimLane = math.MaxInt64
)

// Admission tells whether the queue of a run permits a claim. It is the three lowest bits of the lane. The numbers
// are stored.
type Admission int8

// The admission states. Claims take runs of AdmissionNotNeeded, AdmissionGranted and AdmissionBypassed only. SQL tests the lowest bit (the run waits for an
// admission) and the two lowest bits (2: the run was admitted, or passes).
const (
	AdmissionNotNeeded Admission = 0 // the queue has no row: a claim may take the run when it is due
	AdmissionPending   Admission = 1 // the queue has a row, and an admission has to look at the run when it is due
	AdmissionGranted   Admission = 2 // the run has a place in its queue: a claim may take it when it is due
	AdmissionInLine    Admission = 3 // the run waits for a place; WakeAt is the earliest of its deadlines
	AdmissionBypassed  Admission = 6 // as AdmissionGranted, also for a worker that executes as many runs of the queue as it may
)

// admissionMask selects the bits of the admission state.
const admissionMask = 7

// StrayCheckInterval is how often an admission reads the lanes of the database again, to find runs that entered a queue before
// its row was created.
const StrayCheckInterval = time.Second

// ClaimLaneOf returns the lane of a run with AdmissionNotNeeded.
func ClaimLaneOf(queue, workflow, version string, priority int16) ClaimLane {
	return DivergedLaneOf(queue, workflow, version, "", priority)
}

// DivergedLaneOf returns the same as ClaimLaneOf for a run on which versions have diverged.
func DivergedLaneOf(queue, workflow, version string, diverged DivergedVersions, priority int16) ClaimLane {
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

// ClaimLane returns the lane of the run, with its admission state.
func (r *Run) ClaimLane() ClaimLane {
	if r.Unreleased {
		return UnreleasedLane
	}
	return ClaimLaneOf(r.Queue, r.Workflow, r.Version, r.Priority).WithAdmission(r.Admission)
}

// Admission returns the admission state in the lane.
func (l ClaimLane) Admission() Admission { return Admission(l & admissionMask) }

// WithAdmission returns the lane of the same runs with another admission state.
func (l ClaimLane) WithAdmission(g Admission) ClaimLane { return l&^admissionMask | ClaimLane(g) }

// IsAdmitted reports whether the run was admitted, or passes. It does not arrive again until it waits, is paused or ends.
func (g Admission) IsAdmitted() bool { return g == AdmissionGranted || g == AdmissionBypassed }

// Claimable reports whether a claim may take due runs of the lane.
func (l ClaimLane) Claimable() bool { return l&1 == 0 }

// RotateLanes prepares lanes, sorted by priority, for one claim: the lanes of each priority begin at a random one and keep
// their cyclic order. A claim that reaches its limit at the first lane would otherwise never get to the last.
func RotateLanes[L any](lanes []L, priority func(*L) int16) {
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

// QueueClaimRules tells a claim which queues have settings, and from which of them the worker claims at present only some runs. It
// does not change. Nil means that no queue has a row.
type QueueClaimRules struct {
	queues      map[string]queueClaimRule
	onlyExpired bool // see NewExpiredClaimRules
}

// queueClaimRule tells which admitted runs of a queue the worker claims. It always claims runs that need no place.
type queueClaimRule int8

const (
	claimsAdmittedRuns  queueClaimRule = iota
	claimsStartedRuns                  // those that were executed before: the queue is paused
	claimsBypassingRuns                // none: the worker executes as many runs of the queue as allowed
)

// NewQueueClaimRules returns the queues with a row that are not deleted. From the queues in full, the worker claims only runs that
// need no place, because it already executes as many of their runs as allowed. From the queues in paused, it claims these and
// runs that were executed before.
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

// NewExpiredClaimRules returns the rules of a claim that takes only runs of these queues that need no place and were never executed: their
// time is over.
func NewExpiredClaimRules(queues []string) *QueueClaimRules {
	g := NewQueueClaimRules(queues, nil, nil)
	g.onlyExpired = true
	return g
}

// AllowsClaim reports whether a claim may take runs of a lane in the queue. A run with AdmissionNotNeeded in a queue with a row was started
// by a process that did not know the row yet. No claim takes such a run before an admission has decided about it.
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

// OnlyStartedRuns reports whether a claim takes only runs that were executed before from the lane, because the queue is paused.
func (g *QueueClaimRules) OnlyStartedRuns(l ClaimLane, queue string) bool {
	return g != nil && l.Admission() == AdmissionGranted && g.queues[queue] == claimsStartedRuns
}

// OnlyUnstartedRuns reports whether a claim takes only runs that were never executed.
func (g *QueueClaimRules) OnlyUnstartedRuns() bool { return g != nil && g.onlyExpired }

// ClaimFilter tells which runs a worker claims: those of its workflows, in all queues or in some. It does not
// change. Nil serves no run.
type ClaimFilter struct{ workflows, queues map[string]struct{} }

// NewClaimFilter returns the workflows in the given queues, or in all queues if none is given.
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

// Includes reports whether the worker claims runs of the workflow in the queue.
func (s *ClaimFilter) Includes(queue, workflow string) bool {
	if s == nil {
		return false
	}
	_, executes := s.workflows[workflow]
	_, serves := s.queues[queue]
	return executes && (serves || len(s.queues) == 0)
}

// Names returns the workflows and the queues of the filter. No queue means all queues.
func (s *ClaimFilter) Names() (workflows, queues []string) {
	if s == nil {
		return nil, nil
	}
	return slices.Sorted(maps.Keys(s.workflows)), slices.Sorted(maps.Keys(s.queues))
}

// Empty reports whether the worker claims no run at all.
func (s *ClaimFilter) Empty() bool { return s == nil || len(s.workflows) == 0 }
