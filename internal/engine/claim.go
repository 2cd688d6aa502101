package engine

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

const (
	defaultClaimLimit     = 256                    // default of Config.ClaimLimit: runs taken by one claim
	minClaimPoll          = 20 * time.Millisecond  // the shortest wait between two claims that found nothing
	claimMaxSlotWait      = 2 * time.Millisecond   // how long a claim waits for more free slots
	claimWaitFraction     = 4                      // a claim does not wait if one slot in this many is free
	slotFractionForStarts = 8                      // a claim leaves one slot in this many to starts of this process
	firstClaimRetryDelay  = 50 * time.Millisecond  // the first wait after a failed claim
	maxFirstClaimDelay    = 250 * time.Millisecond // how long the first claim waits, at most, until other workers see this worker
	maxClaimRetryDelay    = 2 * time.Second
)

// claimLoop makes the worker a member of its group until ctx ends. While it leads the group, it claims for all members.
func (w *worker) claimLoop(ctx context.Context) {
	// The first hint says that other workers see this worker. If a worker claimed before that and died,
	// the others would notice only when its leases expire.
	w.awaitFirstHint(ctx)
	g := w.claimGroup
	g.join(w)
	defer g.leave(w)
	select {
	case <-g.leadership:
		w.leadClaims(ctx)
		g.leadership <- struct{}{}
	case <-ctx.Done():
	}
}

// leadClaims claims due runs while members of the group have free slots. Hints wake it. It also polls with decorrelated
// jitter, so that a lost hint costs only time.
//
// A claim holds its slots until it returns. If the last claim did not fill all its slots, the next claim leaves some slots to starts
// of this process, so that the starts need not wait for the claim.
func (w *worker) leadClaims(ctx context.Context) {
	g, pace := w.claimGroup, newClaimPace(&w.e.cfg)
	for ctx.Err() == nil {
		prefetch := 0
		if pace.isFull {
			if prefetch = w.awaitSlots(ctx); ctx.Err() != nil {
				return
			}
		}
		limit, got, err := g.claimForMembers(w, &pace, prefetch)
		switch {
		case err != nil:
			w.stopIfFatal(err)
			w.logFailure("could not claim runs; trying again", err)
			wakeup.SleepCtx(ctx, pace.noteFailure(limit))
			continue
		case limit == 0:
			pace.isFull = true
			continue
		}
		pace.maxPoll = w.otherWorkers.ClaimPollInterval(w.e.cfg.Poll, w.e.cfg.Lease, w.e.clock.Now(), got.nextDue, g.size())
		if pace.noteSuccess(got.runCount, got.reachedLimit); !got.reachedLimit {
			w.awaitWork(ctx, pace.pollDelay, got.nextDue)
		}
	}
}

// claimResult is the result of one claim.
type claimResult struct {
	runCount     int       // how many runs it took
	reachedLimit bool      // it took as many runs as its limit, so more may be due
	nextDue      time.Time // when the next run is due; zero: not known
}

// claimRuns claims runs for the slots and the prefetch places of the shares, and starts their executions. It releases the slots and
// places that it does not use. The worker claims runs that it may execute itself, but need not have a share.
func (w *worker) claimRuns(shares []claimShare, maxSuspects int) (claimResult, error) {
	return w.claimByQueueRules(shares, maxSuspects, w.setQueueRulesOfClaim)
}

// claimByQueueRules does the same as claimRuns with the rules that setRules sets. The function setRules reports whether the rules leave out
// runs that the next claim would take.
func (w *worker) claimByQueueRules(shares []claimShare, maxSuspects int, setRules func(context.Context, *store.ClaimQuery) (capped bool)) (claimResult, error) {
	q := w.newClaimQuery()
	q.MaxSuspects = maxSuspects
	for i := range shares {
		s := &shares[i]
		s.changeHintsBefore = s.w.ownedRunChangeHints.Load()
		defer s.reservedSlots.Release()
		q.Limit += s.reservedSlots.Capacity()
	}
	if q.Worker = shares[0].w.id; len(shares) > 1 {
		q.Owners = roundRobinOwners(shares, q.Limit)
	}
	// The claim does not use the loop's context: a claim that is cancelled in flight may have taken runs.
	ctx, cancel := context.WithTimeout(w.ctx, w.e.cfg.Lease/2)
	defer cancel()
	if q.Limit == 1 { // if there are many suspects, they must not always be claimed before other runs
		q.MaxSuspects = min(q.MaxSuspects, rand.IntN(2))
	}
	capped := setRules(ctx, &q)
	claims, err := w.claimByVersionRules(ctx, &q, shares)
	if err != nil {
		return claimResult{}, err
	}
	for i := range claims.Runs {
		c := &claims.Runs[i]
		s := shareOfOwner(shares, c.Run.Owner.UUID)
		s.w.e.counters.claimedRuns.Add(1)
		if c.Run.Status == store.Paused {
			w.logPausedByClaim(&c.Run, q.Now)
			continue
		}
		s.w.startExecution(c, s.w.timeFromCreationToClaim(&c.Run, q.Now), &s.reservedSlots)
		s.w.queueAdmitter.NoteRunClaimed(c.Run.Queue)
	}
	if len(claims.Runs) > 0 {
		for i := range shares {
			shares[i].w.rereadChangesOfEnteredRuns(shares[i].changeHintsBefore)
		}
	}
	return claimResult{runCount: len(claims.Runs), reachedLimit: len(claims.Runs) == q.Limit || capped, nextDue: claims.NextDue}, nil
}

// claimByVersionRules claims runs of versions that this worker may execute at present. If another version arrives meanwhile, it reads
// the versions and claims again.
func (w *worker) claimByVersionRules(ctx context.Context, q *store.ClaimQuery, shares []claimShare) (claims store.ClaimResult, err error) {
	for range maxVersionRereadsPerClaim {
		if q.Versions, err = w.versionClaimRules(ctx, q.Now); err != nil {
			return claims, err
		}
		if claims, err = w.claimFromStore(ctx, q, shares); err != nil || !claims.HasNewVersions {
			return claims, err
		}
		if err := w.reportAndReadVersions(ctx); err != nil {
			return store.ClaimResult{}, err
		}
	}
	return claims, nil
}

// claimFromStore executes the claim in the store, and counts it.
func (w *worker) claimFromStore(ctx context.Context, q *store.ClaimQuery, shares []claimShare) (store.ClaimResult, error) {
	claims, err := w.e.store.Claim(ctx, *q)
	if err == nil {
		w.e.counters.claims.Add(1)
		return claims, nil
	}
	for i := range shares {
		own := *q
		own.Worker, own.Owners = shares[i].w.id, nil
		shares[i].w.failedClaims.add(own)
	}
	return claims, err
}

// timeFromCreationToClaim returns the time from the creation of the run, its Delay included, to this claim. It returns -1 for a run that
// was claimed before, because its row no longer has the time at which it became due.
func (w *worker) timeFromCreationToClaim(r *store.Run, now time.Time) time.Duration {
	if r.Epoch.Count > 1 {
		return -1
	}
	return max(0, now.Sub(r.CreatedAt))
}

// awaitSlots waits for a free slot of the group. If few slots are free, it waits up to claimMaxSlotWait for more, because a claim
// costs as much as ten steps, however few runs it takes. It returns how many runs to prefetch. If slots come free so often that the
// workers prefetch runs, it returns at once.
func (w *worker) awaitSlots(ctx context.Context) (prefetch int) {
	var enough <-chan time.Time // nil: no slot is free
	var expired *time.Timer     // nil: not needed yet
	for {
		free, many, prefetch := w.claimGroup.countFreeSlotsAndPrefetch(w.e.cfg.ClaimLimit)
		if many || prefetch > 0 {
			return prefetch
		} else if free > 0 && enough == nil {
			t := time.NewTimer(claimMaxSlotWait)
			defer t.Stop()
			enough = t.C
		}
		if expired == nil {
			expired = time.NewTimer(expiredRunsPoll)
			defer expired.Stop()
		}
		select {
		case <-w.claimGroup.slotsFreed:
		case <-enough:
			return 0
		case <-expired.C:
			expired.Reset(w.claimGroup.claimRunsExpiredInQueue(w))
		case <-ctx.Done():
			return 0
		}
	}
}

// hintClaim tells the leader of the group that a run may be claimable.
func (w *worker) hintClaim() {
	w.firstClaimHint.Notify()
	w.claimGroup.hints.Notify()
}

// hintClaimOfAdmitted tells the leader of the group that this worker has admitted runs to a queue. In a full queue, admitted runs replace
// runs that have ended, so there are slots for them. The next claim therefore does not wait for more slots, and leaves none to starts.
func (w *worker) hintClaimOfAdmitted() {
	w.claimGroup.hasAdmittedRuns.Store(true)
	w.hintClaim()
	w.claimGroup.slotsFreed.Notify()
}

// hintClaimAfterBroadcast tells the leader of the group the same after a notification that all workers have received.
func (w *worker) hintClaimAfterBroadcast() {
	w.firstClaimHint.Notify()
	w.claimGroup.sharedHints.Notify()
}

// awaitFirstHint waits for the first hint of this worker, at most maxFirstClaimDelay.
func (w *worker) awaitFirstHint(ctx context.Context) {
	t := time.NewTimer(maxFirstClaimDelay)
	defer t.Stop()
	select {
	case <-w.firstClaimHint:
	case <-t.C:
	case <-ctx.Done():
	}
}

// awaitWork waits for a hint, for the next due time, or for the poll interval. After a hint that all workers have received, it waits
// for the turn of the group.
func (w *worker) awaitWork(ctx context.Context, poll time.Duration, next time.Time) {
	if !next.IsZero() {
		if left := w.e.clock.Until(next); left < poll-time.Millisecond { // left may be the largest duration, so adding to it would overflow
			poll = left + time.Millisecond
		}
	}
	t := time.NewTimer(poll)
	defer t.Stop()
	select {
	case <-w.claimGroup.hints:
	case <-w.claimGroup.sharedHints:
		w.awaitClaimTurn(ctx, t, poll)
	case <-t.C:
	case <-ctx.Done():
	}
}

// awaitClaimTurn waits for the turn of the group after a notification for all workers, but not longer than the poll interval. Another
// notification during the wait may give the group an earlier turn.
func (w *worker) awaitClaimTurn(ctx context.Context, t *time.Timer, poll time.Duration) {
	for at := time.Now().Add(poll); ; {
		if turn := time.Now().Add(w.claimGroup.claimDelayAfterNotification(w.e.clock.Now())); turn.Before(at) {
			at = turn
		}
		t.Reset(time.Until(at))
		select {
		case <-w.claimGroup.sharedHints:
			continue
		case <-w.claimGroup.hints:
		case <-t.C:
		case <-ctx.Done():
		}
		return
	}
}
