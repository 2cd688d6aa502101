package postgres

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// relearnAfter is the age at which the known lanes are forgotten and found anew, because lanes without live
// runs cost a claim a few index probes each.
const relearnAfter = time.Minute

// knownLanes holds the lanes that this process has seen in the database. A claim sends the lanes from which it
// may take runs, so its cost depends on them and not on how many workflows and queues the worker serves. A
// lane is a hash, so what is known of it never changes. claim_prepare.sql looks for lanes that are not known
// yet, in the transaction of the claim, so that no run with a higher priority is passed over.
type knownLanes struct {
	mu     sync.Mutex
	known  []knownLane // in the order of the lanes
	since  time.Time
	looked time.Time // when somebody looked for unknown lanes last

	served *store.ClaimFilter // whose lanes are in own
	gated  *store.QueueGates  // likewise
	own    []knownLane        // by priority, the higher first, and in the order of the last claim
}

type knownLane struct {
	lane            store.ClaimLane
	queue, workflow string
	priority        int16
}

// claimLanes holds the lane arguments of a claim.
type claimLanes struct {
	low, high    []store.ClaimLane // the bounds of the gaps between known lanes, exclusive
	claimable    []store.ClaimLane // from which the claim may take runs, in the order of the claim
	nothingKnown bool              // nothing was known
}

// newClaimLanes returns the arguments for the next claim.
func (l *knownLanes) newClaimLanes(served *store.ClaimFilter, gated *store.QueueGates) claimLanes {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.since) > relearnAfter {
		return claimLanes{low: []store.ClaimLane{store.FirstLane}, high: []store.ClaimLane{store.LastLane}, nothingKnown: true}
	}
	if l.served != served || l.gated != gated {
		l.served, l.gated, l.own = served, gated, nil
		for _, k := range l.known {
			if gated.AllowsClaim(k.lane, k.queue) && served.Includes(k.queue, k.workflow) {
				l.own = append(l.own, k)
			}
		}
		slices.SortStableFunc(l.own, func(a, b knownLane) int { return cmp.Compare(b.priority, a.priority) })
	}
	p := l.laneGaps()
	p.claimable = make([]store.ClaimLane, 0, len(l.own))
	store.RotateLanes(l.own, func(k *knownLane) int16 { return k.priority })
	for _, k := range l.own {
		p.claimable = append(p.claimable, k.lane)
	}
	return p
}

// laneGaps returns the bounds of the gaps between the known lanes.
func (l *knownLanes) laneGaps() claimLanes {
	p := claimLanes{low: make([]store.ClaimLane, 0, len(l.known)+1), high: make([]store.ClaimLane, 0, len(l.known)+1)}
	p.low = append(p.low, store.FirstLane)
	for _, k := range l.known {
		p.low, p.high = append(p.low, k.lane), append(p.high, k.lane)
	}
	p.high = append(p.high, store.LastLane)
	return p
}

// gapsToSearch returns the bounds of the gaps between the known lanes, unless somebody has looked there lately. The lanes in
// the gaps are to be added.
func (l *knownLanes) gapsToSearch() (claimLanes, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if time.Since(l.looked) < store.StrayCheckInterval {
		return claimLanes{}, false
	}
	return l.laneGaps(), true
}

// strays returns the known lanes of a queue with runs that no admission has seen, if the queue has a row.
func (l *knownLanes) strays(queue string) (lanes []store.ClaimLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, k := range l.known {
		if k.queue == queue && k.lane.Gate() == store.GateFree {
			lanes = append(lanes, k.lane)
		}
	}
	return lanes
}

// add adds lanes that the claim with this plan has found.
func (l *knownLanes) add(p *claimLanes, found []knownLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.looked = time.Now()
	if len(found) == 0 && !p.nothingKnown {
		return
	}
	if p.nothingKnown {
		l.known, l.since = nil, time.Now()
	}
	l.served, l.gated, l.own = nil, nil, nil
	l.known = append(l.known, found...)
	byLane := func(a, b knownLane) int { return cmp.Compare(a.lane, b.lane) }
	slices.SortFunc(l.known, byLane)
	l.known = slices.CompactFunc(l.known, func(a, b knownLane) bool { return a.lane == b.lane }) // concurrent claims find the same lanes
}

// newLaneArray returns lanes as the parameter of a statement.
func newLaneArray(list []store.ClaimLane) int8Array {
	return int8Array{len(list), func(i int) int64 { return int64(list[i]) }}
}
