package permits

import (
	"context"
	"errors"
	"maps"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// Loop exchanges permits until ctx ends. It also checks the limit keys for which steps wait, because the
// holder of a permit may have died, and nobody else may send a request: often while there are such limit keys, and else as
// often as leases are renewed.
func (p *Batcher) Loop(ctx context.Context) {
	looks := time.NewTimer(0)
	defer looks.Stop()
	var nextLook time.Time
	wait := firstPermitRetryDelay
	for {
		later := p.startLimitKeyCheckTimer()
		look := false
		select {
		case <-p.wakeLoop:
		case <-looks.C:
			look = true
		case <-ctx.Done():
			later.Stop()
			p.sendBatch(context.Background(), nil) // gives back what the last steps held
			return
		}
		later.Stop()
		var err error
		if look {
			var waiting []store.LimitKey
			waiting, err = p.limitKeysWithWaiters(ctx)
			p.scheduleLimitKeyChecksNow(waiting, p.cfg.Clock.Now())
			every := p.cfg.PollInterval(p.cfg.Lease / 3)
			if len(waiting) > 0 || err != nil {
				every = min(every, limitKeyCheckInterval)
			}
			nextLook = time.Now().Add(every/2 + rand.N(every/2)) // at most every, so that SetLimit applies within a second
			looks.Reset(time.Until(nextLook))
			p.hasNewWaiter = false
		}
		var limitKeys []store.LimitKey
		if err == nil {
			limitKeys = p.takeDueLimitKeys(p.cfg.Clock.Now())
		}
		for more := true; more && err == nil; {
			more, err = p.sendBatch(ctx, limitKeys)
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
			p.cfg.LogFailure("could not exchange permits; trying again", err)
		}
		if wakeup.SleepCtx(ctx, wait/2+rand.N(wait)) {
			wait = min(2*wait, maxPermitRetryDelay)
			p.wakeLoop.Notify()
		}
	}
}

// scheduleLimitKeyChecks records when to check limit keys again.
func (p *Batcher) scheduleLimitKeyChecks(again map[store.LimitKey]time.Time) {
	if p.nextCheckByLimitKey == nil {
		p.nextCheckByLimitKey = make(map[store.LimitKey]time.Time)
	}
	maps.Copy(p.nextCheckByLimitKey, again)
}

// scheduleLimitKeyChecksNow records that the limit keys must be checked now.
func (p *Batcher) scheduleLimitKeyChecksNow(limitKeys []store.LimitKey, now time.Time) {
	p.scheduleLimitKeyChecks(nil)
	for _, l := range limitKeys {
		p.nextCheckByLimitKey[l] = now
	}
}

// takeDueLimitKeys removes and returns the limit keys to check now.
func (p *Batcher) takeDueLimitKeys(now time.Time) (limitKeys []store.LimitKey) {
	for g, at := range p.nextCheckByLimitKey {
		if !at.After(now) {
			limitKeys = append(limitKeys, g)
			delete(p.nextCheckByLimitKey, g)
		}
	}
	return limitKeys
}

// startLimitKeyCheckTimer wakes Loop when a limit key must be checked.
func (p *Batcher) startLimitKeyCheckTimer() clock.Timer {
	var first time.Time
	for _, at := range p.nextCheckByLimitKey {
		if first.IsZero() || at.Before(first) {
			first = at
		}
	}
	if first.IsZero() {
		return clock.NoTimer{}
	}
	return p.cfg.Clock.CallAt(first, p.wakeLoop.Notify)
}

// limitKeysWithWaiters returns the limit keys for which a step waits.
func (p *Batcher) limitKeysWithWaiters(ctx context.Context) (limitKeys []store.LimitKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, permitCallTimeout)
	defer cancel()
	var last store.LimitKey
	for {
		some, err := p.cfg.Store.LimitKeysWithWaiters(ctx, last, maxLimitKeysPerCall)
		limitKeys = append(limitKeys, some...)
		if err != nil || len(some) < maxLimitKeysPerCall {
			return limitKeys, err
		}
		last = some[len(some)-1]
	}
}

// sendBatch makes one call of GrantAndReturnPermits with the pending requests and returns, and with the given limit keys. It reports
// whether more of them are pending than one call takes. If the call fails, the limit keys are checked in the next one.
func (p *Batcher) sendBatch(ctx context.Context, limitKeys []store.LimitKey) (more bool, err error) {
	p.yieldForMoreRequests()
	requests, returns, more := p.takePending()
	if len(requests)+len(returns)+len(limitKeys) == 0 {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, permitCallTimeout)
	defer cancel()
	for len(limitKeys) > maxLimitKeysPerCall {
		b := p.newBatch(nil, nil, limitKeys[:maxLimitKeysPerCall])
		if err := p.cfg.Store.GrantAndReturnPermits(ctx, b); err != nil {
			p.requeuePending(requests, returns)
			p.scheduleLimitKeyChecksNow(limitKeys, b.Now)
			return false, err
		}
		p.scheduleLimitKeyChecks(b.RecheckAt)
		limitKeys = limitKeys[maxLimitKeysPerCall:]
	}
	b := p.newBatch(requests, returns, limitKeys)
	if err = p.cfg.Store.GrantAndReturnPermits(ctx, b); err != nil {
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
		p.cfg.WarnOfOlderWorkers(ctx)
	}
	return more, err
}

func (p *Batcher) newBatch(requests []*pendingRequest, returns []pendingReturn, limitKeys []store.LimitKey) *store.PermitBatch {
	now := p.cfg.Clock.Now()
	b := &store.PermitBatch{Now: now, Version: p.cfg.OrderedVersion(), WorkerStarted: p.cfg.WorkerStarted(now), CloseDurationAfterRewind: p.cfg.Lease, LimitKeys: limitKeys}
	for _, a := range requests {
		b.Requests = append(b.Requests, a.PermitRequest)
	}
	for _, r := range returns {
		b.Returns = append(b.Returns, r.PermitReturn)
	}
	return b
}
