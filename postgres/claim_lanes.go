package postgres

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// forgetLanesAfter is the age at which the known lanes are forgotten and found anew, because lanes without live
// runs cost a claim a few index probes each.
const forgetLanesAfter = time.Minute

// knownLanes holds the lanes that this process has seen in the database. A claim sends the lanes from which it
// may take runs, so its cost depends on them and not on how many workflows and queues the worker serves. A lane is a hash of its
// properties, so the properties of a known lane never change. In the transaction of the claim, claim_check_lanes_and_versions.sql
// searches for lanes that are not known yet, so that the claim does not miss runs with a higher priority.
type knownLanes struct {
	mu         sync.Mutex
	lanes      []knownLane // in the order of the lanes
	laneReadAt time.Time
	lastSearch time.Time // when a call last searched for unknown lanes

	claimFilter  *store.ClaimFilter     // the filter for which claimedLanes was computed
	queueRules   *store.QueueClaimRules // the rules for which claimedLanes was computed
	versions     *store.VersionClaimRules
	claimedLanes []knownLane // by priority, the higher first, and in the order of the last claim
}

type knownLane struct {
	lane            store.ClaimLane
	queue, workflow string
	version         string // of its runs; empty: the version has no place in the order of versions
	diverged        store.DivergedVersions
	priority        int16
}

// claimLaneArgs holds the lane arguments of a claim.
type claimLaneArgs struct {
	gapStarts, gapEnds []store.ClaimLane // the bounds of the gaps between known lanes, exclusive
	claimable          []store.ClaimLane // from which the claim may take runs, in the order of the claim
	hasOtherVersions   bool              // some of the claimable lanes have runs of other versions
	nextLanes          []store.ClaimLane // for each claimable lane, the lane of its runs after the claim
	nextVersions       []string          // for each claimable lane, the version of its runs after the claim; empty: each run keeps its own
	onlyStarted        []bool            // for each claimable lane, whether the claim takes only runs that were executed before
	noneKnown          bool              // no lane was known
}

// newClaimLaneArgs returns the arguments for the next claim.
func (l *knownLanes) newClaimLaneArgs(served *store.ClaimFilter, gated *store.QueueClaimRules, versions *store.VersionClaimRules) claimLaneArgs {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.laneReadAt) > forgetLanesAfter {
		return claimLaneArgs{gapStarts: []store.ClaimLane{store.FirstLane}, gapEnds: []store.ClaimLane{store.LastLane}, noneKnown: true}
	}
	if l.claimFilter != served || l.queueRules != gated || l.versions != versions {
		l.claimFilter, l.queueRules, l.versions, l.claimedLanes = served, gated, versions, nil
		for _, k := range l.lanes {
			if gated.AllowsClaim(k.lane, k.queue) && served.Includes(k.queue, k.workflow) && versions.AllowsClaim(k.queue, k.workflow, k.version, k.diverged) {
				l.claimedLanes = append(l.claimedLanes, k)
			}
		}
		slices.SortStableFunc(l.claimedLanes, func(a, b knownLane) int { return cmp.Compare(b.priority, a.priority) })
	}
	p := l.laneGaps()
	n := len(l.claimedLanes)
	p.claimable, p.onlyStarted, p.nextLanes, p.nextVersions = make([]store.ClaimLane, 0, n), make([]bool, 0, n), make([]store.ClaimLane, 0, n), make([]string, 0, n)
	store.RotateLanesRandomly(l.claimedLanes, func(k *knownLane) int16 { return k.priority })
	for _, k := range l.claimedLanes {
		p.claimable, p.onlyStarted = append(p.claimable, k.lane), append(p.onlyStarted, gated.ClaimsOnlyStartedRuns(k.lane, k.queue))
		lane, version := versions.LaneAfterClaim(k.lane, k.queue, k.workflow, k.version, k.diverged, k.priority)
		p.nextLanes, p.nextVersions = append(p.nextLanes, lane), append(p.nextVersions, version)
		p.hasOtherVersions = p.hasOtherVersions || versions.IsOtherOrderedVersion(k.version)
	}
	return p
}

// laneGaps returns the bounds of the gaps between the known lanes.
func (l *knownLanes) laneGaps() claimLaneArgs {
	p := claimLaneArgs{gapStarts: make([]store.ClaimLane, 0, len(l.lanes)+1), gapEnds: make([]store.ClaimLane, 0, len(l.lanes)+1)}
	p.gapStarts = append(p.gapStarts, store.FirstLane)
	for _, k := range l.lanes {
		p.gapStarts, p.gapEnds = append(p.gapStarts, k.lane), append(p.gapEnds, k.lane)
	}
	p.gapEnds = append(p.gapEnds, store.LastLane)
	return p
}

// gapsToSearch returns the bounds of the gaps between the known lanes, or false if the gaps were searched within the last
// StrayCheckInterval. The caller adds the lanes that it finds in the gaps.
func (l *knownLanes) gapsToSearch() (claimLaneArgs, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.lastSearch) < store.StrayCheckInterval {
		return claimLaneArgs{}, false
	}
	return l.laneGaps(), true
}

// lanesWithUnadmittedRuns returns the known lanes of a queue with runs that no admission has seen, if the queue has a row.
func (l *knownLanes) lanesWithUnadmittedRuns(queue string) (lanes []store.ClaimLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.lanes {
		if k.queue == queue && k.lane.Admission() == store.AdmissionNotNeeded {
			lanes = append(lanes, k.lane)
		}
	}
	return lanes
}

// add adds lanes that the claim with this plan has found.
func (l *knownLanes) add(p *claimLaneArgs, found []knownLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lastSearch = time.Now()
	if len(found) == 0 && !p.noneKnown {
		return
	}
	if p.noneKnown {
		l.lanes, l.laneReadAt = nil, time.Now()
	}
	l.claimFilter, l.queueRules, l.versions, l.claimedLanes = nil, nil, nil, nil
	l.lanes = append(l.lanes, found...)
	byLane := func(a, b knownLane) int { return cmp.Compare(a.lane, b.lane) }
	slices.SortFunc(l.lanes, byLane)
	l.lanes = slices.CompactFunc(l.lanes, func(a, b knownLane) bool { return a.lane == b.lane }) // concurrent claims find the same lanes
}

// newLaneArray returns lanes as the parameter of a statement.
func newLaneArray(list []store.ClaimLane) int8Array {
	return int8Array{len(list), func(i int) int64 { return int64(list[i]) }}
}

func newBoolArray(list []bool) boolArray {
	return boolArray{len(list), func(i int) bool { return list[i] }}
}
