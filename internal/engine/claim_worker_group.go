package engine

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/slots"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// workerClaimGroup holds the workers of this process that may claim the same runs. One of them, the leader, claims for all: each
// claim requests runs for the free slots of every member, and the owner of each claimed run is the member that has the slot. A claim
// costs about as much as ten steps, however few runs it takes. In a group, many workers with few slots make as few claims as one
// worker with many slots.
//
// Everything else remains the worker's own: its leases, its presence, its heartbeats, its queues and its runs.
type workerClaimGroup struct {
	hints           wakeup.Chan   // a run may be claimable
	sharedHints     wakeup.Chan   // a run may be claimable; all workers were notified
	slotsFreed      wakeup.Chan   // slots of a member came free
	hasAdmittedRuns atomic.Bool   // a member has admitted runs to a queue since the last claim began
	leadership      chan struct{} // holds an element while no member leads

	mu               sync.Mutex // held during a claim, so that no claim is in flight for a member that leaves
	members          []*worker  // the workers that take runs
	pools            []*slots.Pool
	capacity         int // slots of all members
	firstMemberIndex int // which member is first at the next claim
}

func newWorkerClaimGroup() *workerClaimGroup {
	g := &workerClaimGroup{hints: wakeup.NewChan(), sharedHints: wakeup.NewChan(), slotsFreed: wakeup.NewChan(), leadership: make(chan struct{}, 1)}
	g.leadership <- struct{}{}
	return g
}

// workerClaimGroupKey identifies a group: what its members send with a claim, and how they pace their claims.
type workerClaimGroupKey struct {
	store                              store.Store // the store that was passed to New
	workflows, queues, pinned, version string
	lease, poll                        time.Duration
	maxCrashes, claimLimit             int
}

// findOrCreateClaimGroup returns the group of the engine's workers. Engines with a codec or test hooks claim alone, because their stores
// decode or observe what is claimed.
func (e *Engine) findOrCreateClaimGroup() *workerClaimGroup {
	sharer := e.sharedStoreOrNil()
	if sharer == nil {
		return newWorkerClaimGroup()
	}
	workflows, queues := e.claimFilter.WorkflowsAndQueues()
	list := func(names []string) string { return strings.Join(names, "\x00") }
	pinned := make([]string, 0, len(e.pinnedWorkflows))
	for _, name := range slices.Sorted(maps.Keys(e.pinnedWorkflows)) {
		pinned = append(pinned, fmt.Sprint(name, "\x00", e.pinnedWorkflows[name]))
	}
	key := workerClaimGroupKey{e.store, list(workflows), list(queues), list(pinned), e.cfg.Version, e.cfg.Lease, e.cfg.Poll, e.cfg.crashesBeforePause(), e.cfg.ClaimLimit}
	return sharer.GetOrCreateSharedValue(key, func() any { return newWorkerClaimGroup() }).(*workerClaimGroup)
}

// join adds a member. The next claim counts its slots.
func (g *workerClaimGroup) join(w *worker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.setMembers(append(g.members, w))
	g.hints.Notify()
	g.slotsFreed.Notify()
}

// leave removes a member, after the claim in flight.
func (g *workerClaimGroup) leave(w *worker) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.setMembers(slices.DeleteFunc(g.members, func(m *worker) bool { return m == w }))
}

// setMembers sets the members. g.mu is held.
func (g *workerClaimGroup) setMembers(members []*worker) {
	g.members, g.pools, g.capacity = members, nil, 0
	for _, m := range members {
		g.pools = append(g.pools, m.slots)
		g.capacity += m.e.cfg.Concurrency
	}
}

// size returns how many members there are.
func (g *workerClaimGroup) size() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.members)
}

// countFreeSlotsAndPrefetch returns how many slots of the members are free, and how many runs to prefetch, at most limit. The result many says
// that the claim need not wait for more free slots, because many are free, or because runs were admitted since the last claim.
func (g *workerClaimGroup) countFreeSlotsAndPrefetch(limit int) (free int, many bool, prefetch int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	free, prefetch = slots.JointRoom(g.pools, limit)
	return free, claimWaitFraction*free >= g.capacity || free > 0 && g.hasAdmittedRuns.Load(), prefetch
}

// claimDelayAfterNotification returns how long the group waits before it claims after a notification for all workers: until the turn of its first
// member.
func (g *workerClaimGroup) claimDelayAfterNotification(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	first := time.Duration(0)
	for i, m := range g.members {
		if d := m.otherWorkers.ClaimDelayAfterNotification(now); i == 0 || d < first {
			first = d
		}
	}
	return first
}

// claimShare is the part of one worker in a claim.
type claimShare struct {
	w                 *worker
	reservedSlots     slots.Reservation
	changeHintsBefore uint64 // worker.ownedRunChangeHints before the claim
}

// reserveSlotsForClaim reserves slots of all members for a claim of at most pace.limit runs. If the last claim was not full, and no runs were
// admitted since, it leaves some slots to starts. If the slots are fewer than the limit, it also reserves up to prefetch places. g.mu is held.
func (g *workerClaimGroup) reserveSlotsForClaim(pace *claimPace, prefetch int) (shares []claimShare) {
	g.firstMemberIndex++
	admitted := g.hasAdmittedRuns.Swap(false)
	type candidate struct {
		w            *worker
		room, places int // places for prefetched runs are part of the room
	}
	var free []candidate
	for i := range g.members {
		m := g.members[(g.firstMemberIndex+i)%len(g.members)]
		places := 0
		if pace.isFull && prefetch > 0 {
			places = m.slots.PrefetchRoom()
		}
		if room := m.slots.FreeSlots() + places; room > 0 {
			free = append(free, candidate{m, room, places})
		}
	}
	slices.SortStableFunc(free, func(a, b candidate) int { return cmp.Compare(a.room, b.room) }) // the members with most room come last, and get what the others do not need
	left, n := pace.limit, len(free)
	for i, c := range free {
		part := (left + n - i - 1) / (n - i) // an equal part of what is left
		leave := 0
		if !pace.isFull && !admitted {
			leave = max(1, c.w.e.cfg.Concurrency/slotFractionForStarts)
		}
		free := c.w.slots.Reserve(part, leave, min(prefetch, c.places))
		if free.Capacity() == 0 {
			continue
		}
		left -= free.Capacity()
		prefetch -= free.Capacity() - free.UnassignedSlots()
		shares = append(shares, claimShare{w: c.w, reservedSlots: free})
	}
	return shares
}

// claimForMembers claims once for the members with free slots. The result limit is the number of runs for which they had room. The
// leader makes the claim or, if an operator has made the leader quiet, another member.
func (g *workerClaimGroup) claimForMembers(leader *worker, pace *claimPace, prefetch int) (limit int, got claimResult, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	shares := g.reserveSlotsForClaim(pace, prefetch)
	for i := range shares {
		limit += shares[i].reservedSlots.Capacity()
	}
	if limit == 0 {
		return 0, got, nil
	}
	if leader.slots.IsQuiet() {
		leader = shares[0].w
	}
	if leader.hasQueuesLimitedPerWorker(leader.ctx) { // each member may leave out other queues
		got, err = g.claimEachShare(shares)
	} else {
		got, err = leader.claimRuns(shares, g.maxClaimableSuspects())
	}
	return limit, got, err
}

// maxClaimableSuspects returns how many suspects the next claim may take: none while a member executes one, because the members would die
// with it. g.mu is held.
func (g *workerClaimGroup) maxClaimableSuspects() int {
	for _, m := range g.members {
		if m.maxClaimableSuspects() == 0 {
			return 0
		}
	}
	return 1
}

// claimRunsExpiredInQueue makes the leader or, if an operator has made the leader quiet, another member claim runs that have expired in line.
// It returns the time until the next such claim.
func (g *workerClaimGroup) claimRunsExpiredInQueue(leader *worker) (wait time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, m := range g.members {
		if !leader.slots.IsQuiet() {
			break
		}
		leader = m
	}
	return leader.claimRunsExpiredInQueue()
}

// claimEachShare claims for one share after the other. g.mu is held.
func (g *workerClaimGroup) claimEachShare(shares []claimShare) (got claimResult, err error) {
	for i := range shares {
		one, failed := shares[i].w.claimRuns(shares[i:i+1], g.maxClaimableSuspects())
		if failed != nil {
			for j := i + 1; j < len(shares); j++ { // claimRuns has released the slots of the failed claim
				shares[j].reservedSlots.Release()
			}
			return got, failed
		}
		got.runCount += one.runCount
		got.reachedLimit = got.reachedLimit || one.reachedLimit
		if got.nextDue.IsZero() || !one.nextDue.IsZero() && one.nextDue.Before(got.nextDue) {
			got.nextDue = one.nextDue
		}
	}
	return got, nil
}

// roundRobinOwners returns limit owners: for each run for which a share has room, the worker of the share. The workers take turns in
// the list.
func roundRobinOwners(shares []claimShare, limit int) []uuid.UUID {
	owners := make([]uuid.UUID, 0, limit)
	for round := 0; len(owners) < limit; round++ {
		for i := range shares {
			if shares[i].reservedSlots.Capacity() > round {
				owners = append(owners, shares[i].w.id)
			}
		}
	}
	return owners
}

// shareOfOwner returns the share of the owner of a claimed run, or the first share if the claim has paused the run, which then has no
// owner.
func shareOfOwner(shares []claimShare, owner uuid.UUID) *claimShare {
	for i := range shares {
		if shares[i].w.id == owner {
			return &shares[i]
		}
	}
	return &shares[0]
}
