package engine

import (
	"math/rand/v2"
	"time"
)

// claimPace decides how many runs the next claim takes at most, and how long claimLoop waits before it.
type claimPace struct {
	maxLimit int           // the largest limit: Config.ClaimLimit
	maxPoll  time.Duration // the longest poll interval: Config.Poll, or the result of OtherWorkers.ClaimPollInterval

	limit      int           // how many runs the next claim takes at most
	isFull     bool          // all slots are taken, or the last claim took as many runs as its limit
	pollDelay  time.Duration // how long to wait for work after the last claim, if it was not full
	retryDelay time.Duration // about how long to wait after the next claim that fails
}

func newClaimPace(cfg *Config) claimPace {
	return claimPace{maxLimit: cfg.ClaimLimit, maxPoll: cfg.Poll, limit: cfg.ClaimLimit, pollDelay: minClaimPoll, retryDelay: firstClaimRetryDelay}
}

// noteSuccess records a claim that took the given number of runs.
func (p *claimPace) noteSuccess(runs int, full bool) {
	p.limit = min(2*p.limit, p.maxLimit)
	p.retryDelay = firstClaimRetryDelay
	p.isFull = full
	if runs > 0 {
		p.pollDelay = minClaimPoll
	} else {
		next := minClaimPoll + rand.N(3*p.pollDelay)
		if p.pollDelay >= p.maxPoll*3/4 { // the delay stays long
			next = p.maxPoll - rand.N(p.maxPoll/4+1)
		}
		p.pollDelay = min(p.maxPoll, next)
	}
}

// noteFailure records a claim with the given limit that has failed. It returns how long to wait before the next
// claim, which takes at most half as many runs, because the result may have been too large to arrive in time.
func (p *claimPace) noteFailure(limit int) (wait time.Duration) {
	wait = p.retryDelay/2 + rand.N(p.retryDelay)
	p.retryDelay = min(2*p.retryDelay, maxClaimRetryDelay)
	p.limit = max(1, min(p.limit, limit)/2)
	p.isFull = false
	return wait
}
