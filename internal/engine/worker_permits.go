package engine

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

const (
	maxPermitRequests             = 500                    // requests that one transaction contains at most
	maxLimitKeysPerCall           = 100                    // limit keys that one transaction checks
	limitKeyCheckInterval         = 800 * time.Millisecond // at most, between two checks of all limit keys, while a step waits
	idleTurnsBeforePermitCall     = 3                      // scheduler turns without a further request or return after which a call begins
	permitCallsPerReturnWaitTrial = 16                     // every such call waits for returns, to measure how many come
	permitGatherTime              = time.Millisecond       // how long a call waits at most for requests and returns
	firstPermitRetryDelay         = 20 * time.Millisecond  // first pause after a failed call
	maxPermitRetryDelay           = time.Second            // longest such pause
	permitCallTimeout             = 10 * time.Second       // of one call
)

// permitBatcher exchanges permits with the store for all steps of a worker. One goroutine, permitLoop, gathers
// what steps request and give back while its last call is in progress.
type permitBatcher struct {
	wakeLoop wakeup.Chan

	mu                   sync.Mutex
	pendingRequests      []*pendingPermitRequest
	pendingReturns       []pendingPermitReturn
	localWaiters         localPermitWaiters
	nextCheckByLimitKey  map[store.LimitKey]time.Time // when to check limit keys; owned by permitLoop
	warnedOfOlderWorkers bool                         // warnOfOlderWorkers was called; owned by permitLoop
	hasNewWaiter         bool                         // a step has entered a line since the last check of all limit keys was planned; owned by permitLoop
	grantedByLastCall    int                          // permits that the last call has granted; owned by permitLoop, as the next two
	returnRate           float64                      // fraction of the granted permits that are returned before the next call; smoothed
	calls                int
}

// pendingPermitRequest is a request that waits for its outcome.
type pendingPermitRequest struct {
	*store.PermitRequest
	step *stepAwaitingPermit
	ctx  context.Context // ends when the caller no longer waits
	done chan error
}

// pendingPermitReturn is a permit that is to be given back. Once the run has left this process, its permits have
// ended anyway.
type pendingPermitReturn struct {
	store.PermitReturn
	units int
	run   *run
}

// requestPermit requests the store for a permit and sets the outcome of the request. It keeps trying while the database is
// unavailable, until ctx ends.
func (p *permitBatcher) requestPermit(ctx context.Context, place *stepAwaitingPermit, a *store.PermitRequest) error {
	own := *a // the loop may still use it when this caller has left
	q := &pendingPermitRequest{PermitRequest: &own, step: place, ctx: ctx, done: make(chan error, 1)}
	p.mu.Lock()
	p.pendingRequests = append(p.pendingRequests, q)
	p.mu.Unlock()
	p.wakeLoop.Notify()
	select {
	case err := <-q.done:
		*a = own
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// returnPermit gives a permit or a place in a line back, soon.
func (p *permitBatcher) returnPermit(r *run, a *store.PermitRequest) {
	p.mu.Lock()
	p.pendingReturns = append(p.pendingReturns, pendingPermitReturn{a.NewPermitReturn(), a.Units, r})
	p.mu.Unlock()
	p.wakeLoop.Notify()
}

// yieldForMoreRequests lets other goroutines run before a call, so that the call contains more: steps that the last call has granted permits
// return them, and then the first waiting steps of the same limit keys request them. So units go from one step to the next in one call. Without that, the
// store would offer them, which takes two more. If few of the granted permits were returned in time recently, because the steps
// take longer, gather does not wait for them, except before every 16th call, to measure again.
func (p *permitBatcher) yieldForMoreRequests() {
	began, want := time.Now(), 0
	p.calls++
	if p.grantedByLastCall > 0 && (p.returnRate >= 0.5 || p.calls%permitCallsPerReturnWaitTrial == 0) {
		want = p.grantedByLastCall
	}
	p.yieldUntilEnoughPending(began, want, p.countPendingReturns)
	if p.grantedByLastCall > 0 {
		p.returnRate += (min(1, float64(p.countPendingReturns())/float64(p.grantedByLastCall)) - p.returnRate) / 4
		p.grantedByLastCall = 0
	}
	if woken := p.wakeLocalWaiters(); woken > 0 {
		p.yieldUntilEnoughPending(began, p.countPendingRequests()+woken, p.countPendingRequests)
	}
}

// yieldUntilEnoughPending yields to the scheduler until there are as many requests or returns as wanted, and none has been added in a few turns.
func (p *permitBatcher) yieldUntilEnoughPending(began time.Time, want int, count func() int) {
	seen := count()
	for still := 0; (still < idleTurnsBeforePermitCall || seen < want) && time.Since(began) < permitGatherTime; still++ {
		runtime.Gosched()
		if now := count(); now != seen {
			seen, still = now, 0
		}
	}
}

// countPendingRequests returns how many requests the next call would contain.
func (p *permitBatcher) countPendingRequests() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pendingRequests)
}

// countPendingReturns returns how many returns the next call would contain.
func (p *permitBatcher) countPendingReturns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.pendingReturns)
}

// takePending removes the next requests, and everything to give back. It drops the requests whose callers are gone: these
// have given back already what such a request would be granted.
func (p *permitBatcher) takePending() (requests []*pendingPermitRequest, returns []pendingPermitReturn, more bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.pendingRequests = slices.DeleteFunc(p.pendingRequests, func(a *pendingPermitRequest) bool { return a.ctx.Err() != nil })
	n := min(len(p.pendingRequests), maxPermitRequests)
	requests, returns = slices.Clone(p.pendingRequests[:n]), p.pendingReturns
	p.pendingRequests, p.pendingReturns = slices.Delete(p.pendingRequests, 0, n), nil
	return requests, returns, len(p.pendingRequests) > 0
}

// requeuePending returns what a failed call did not do, except for callers that are gone.
func (p *permitBatcher) requeuePending(requests []*pendingPermitRequest, returns []pendingPermitReturn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	var left []*pendingPermitRequest
	for _, a := range requests {
		if a.ctx.Err() == nil {
			left = append(left, a)
		}
	}
	p.pendingRequests = append(left, p.pendingRequests...)
	var owed []pendingPermitReturn
	for _, r := range returns {
		if r.run.ownedCtx.Err() == nil {
			owed = append(owed, r)
		}
	}
	p.pendingReturns = append(owed, p.pendingReturns...)
}

// permitLoop exchanges permits until ctx ends. It also checks the limit keys for which steps wait, because the
// holder of a permit may have died, and nobody else may send a request: often while there are such limit keys, and else as
// often as leases are renewed.
func (w *worker) permitLoop(ctx context.Context) {
	p := &w.permitBatcher
	looks := time.NewTimer(0)
	defer looks.Stop()
	var nextLook time.Time
	wait := firstPermitRetryDelay
	for {
		later := p.startLimitKeyCheckTimer(w.e.clock)
		look := false
		select {
		case <-p.wakeLoop:
		case <-looks.C:
			look = true
		case <-ctx.Done():
			later.Stop()
			w.sendPermitBatch(context.Background(), nil) // gives back what the last steps held
			return
		}
		later.Stop()
		var err error
		if look {
			var waiting []store.LimitKey
			waiting, err = w.limitKeysWithWaiters(ctx)
			p.scheduleLimitKeyChecksNow(waiting, w.e.clock.Now())
			every := w.otherWorkers.pollInterval(w.e.cfg.Lease / 3)
			if len(waiting) > 0 || err != nil {
				every = min(every, limitKeyCheckInterval)
			}
			nextLook = time.Now().Add(every/2 + rand.N(every/2)) // at most every, so that SetLimit applies within a second
			looks.Reset(time.Until(nextLook))
			p.hasNewWaiter = false
		}
		var limitKeys []store.LimitKey
		if err == nil {
			limitKeys = p.takeDueLimitKeys(w.e.clock.Now())
		}
		for more := true; more && err == nil; {
			more, err = w.sendPermitBatch(ctx, limitKeys)
			limitKeys = nil
		}
		if soon := limitKeyCheckInterval/2 + rand.N(limitKeyCheckInterval/2); p.hasNewWaiter && time.Until(nextLook) > soon {
			nextLook = time.Now().Add(soon) // an operator may change the limit
			looks.Reset(soon)
		}
		p.hasNewWaiter = false
		if err == nil {
			wait = firstPermitRetryDelay
			continue
		}
		if ctx.Err() == nil {
			w.log.Warn("could not exchange permits; trying again", telemetry.KeyError, err)
		}
		if wakeup.SleepCtx(ctx, wait/2+rand.N(wait)) {
			wait = min(2*wait, maxPermitRetryDelay)
			p.wakeLoop.Notify()
		}
	}
}

// scheduleLimitKeyChecks records when to check limit keys again.
func (p *permitBatcher) scheduleLimitKeyChecks(again map[store.LimitKey]time.Time) {
	if p.nextCheckByLimitKey == nil {
		p.nextCheckByLimitKey = make(map[store.LimitKey]time.Time)
	}
	maps.Copy(p.nextCheckByLimitKey, again)
}

// scheduleLimitKeyChecksNow records that the limit keys must be checked now.
func (p *permitBatcher) scheduleLimitKeyChecksNow(limitKeys []store.LimitKey, now time.Time) {
	p.scheduleLimitKeyChecks(nil)
	for _, l := range limitKeys {
		p.nextCheckByLimitKey[l] = now
	}
}

// takeDueLimitKeys removes and returns the limit keys to check now.
func (p *permitBatcher) takeDueLimitKeys(now time.Time) (limitKeys []store.LimitKey) {
	for g, at := range p.nextCheckByLimitKey {
		if !at.After(now) {
			limitKeys = append(limitKeys, g)
			delete(p.nextCheckByLimitKey, g)
		}
	}
	return limitKeys
}

// startLimitKeyCheckTimer wakes permitLoop when a limit key must be checked.
func (p *permitBatcher) startLimitKeyCheckTimer(c clock.Clock) clock.Timer {
	var first time.Time
	for _, at := range p.nextCheckByLimitKey {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() {
		return noTimer{}
	}
	return c.CallAt(first, p.wakeLoop.Notify)
}

// noTimer is the timer of no time.
type noTimer struct{}

func (noTimer) Stop() bool { return false }

// limitKeysWithWaiters returns the limit keys for which a step waits.
func (w *worker) limitKeysWithWaiters(ctx context.Context) (limitKeys []store.LimitKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, permitCallTimeout)
	defer cancel()
	var last store.LimitKey
	for {
		some, err := w.e.store.LimitKeysWithWaiters(ctx, last, maxLimitKeysPerCall)
		limitKeys = append(limitKeys, some...)
		if err != nil || len(some) < maxLimitKeysPerCall {
			return limitKeys, err
		}
		last = some[len(some)-1]
	}
}

// sendPermitBatch makes one call of GrantAndReturnPermits with the pending requests and returns, and with the given limit keys. It reports
// whether more of them are pending than one call takes. If the call fails, the limit keys are checked in the next one.
func (w *worker) sendPermitBatch(ctx context.Context, limitKeys []store.LimitKey) (more bool, err error) {
	p := &w.permitBatcher
	p.yieldForMoreRequests()
	requests, returns, more := p.takePending()
	if len(requests)+len(returns)+len(limitKeys) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, permitCallTimeout)
	defer cancel()
	for len(limitKeys) > maxLimitKeysPerCall {
		b := w.newPermitBatch(nil, nil, limitKeys[:maxLimitKeysPerCall])
		if err := w.e.store.GrantAndReturnPermits(ctx, b); err != nil {
			p.requeuePending(requests, returns)
			p.scheduleLimitKeyChecksNow(limitKeys, b.Now)
			return false, err
		}
		p.scheduleLimitKeyChecks(b.RecheckAt)
		limitKeys = limitKeys[maxLimitKeysPerCall:]
	}
	b := w.newPermitBatch(requests, returns, limitKeys)
	if err = w.e.store.GrantAndReturnPermits(ctx, b); err != nil {
		p.scheduleLimitKeyChecksNow(limitKeys, b.Now)
	}
	switch {
	case err == nil:
		p.scheduleLimitKeyChecks(b.RecheckAt)
		p.grantedByLastCall = p.updateLocalWaitersFromOutcomes(requests)
	case errors.Is(err, store.ErrUnavailable), errors.Is(err, store.ErrLocked), ctx.Err() != nil:
		p.requeuePending(requests, returns)
		return false, err
	default: // the callers wait as for any write that the database rejects
		p.requeuePending(nil, returns)
	}
	for _, a := range requests {
		a.done <- err
	}
	if len(requests) > 0 && !p.warnedOfOlderWorkers {
		p.warnedOfOlderWorkers = true
		w.warnOfOlderWorkers(ctx)
	}
	return more, err
}

// warnOfOlderWorkers logs if a worker lives that knows no limits. The steps of this worker get their permits
// nevertheless: the calls of the older worker are not bounded either way.
func (w *worker) warnOfOlderWorkers(ctx context.Context) {
	if older, is := errors.AsType[*OlderWorkerError](w.e.checkNoOlderWorkers(ctx, "limits")); is {
		w.log.Warn("limits do not bound the steps of a worker with an older version of durable", telemetry.KeyError, older)
	}
}

func (w *worker) newPermitBatch(requests []*pendingPermitRequest, returns []pendingPermitReturn, limitKeys []store.LimitKey) *store.PermitBatch {
	now := w.e.clock.Now()
	b := &store.PermitBatch{Now: now, Version: w.e.programVersionIfOrdered(), WorkerStarted: w.comparableStartTime(now), CloseDurationAfterRewind: w.e.cfg.Lease, LimitKeys: limitKeys}
	for _, a := range requests {
		b.Requests = append(b.Requests, a.PermitRequest)
	}
	for _, r := range returns {
		b.Returns = append(b.Returns, r.PermitReturn)
	}
	return b
}
