package engine

import (
	"math/rand/v2"
	"time"
)

// claimPace decides how many runs the next claim takes at most, and how long claimLoop waits before it.
type claimPace struct {
	largest int           // the largest limit: Config.ClaimLimit
	longest time.Duration // the longest poll: Config.Poll

	limit int           // how many runs the next claim takes at most
	full  bool          // all slots are taken, or the last claim took as many runs as its limit
	poll  time.Duration // how long to wait for work after the last claim, if it was not full
	retry time.Duration // about how long to wait after the next claim that fails
}

func newClaimPace(cfg *Config) claimPace {
	return claimPace{largest: cfg.ClaimLimit, longest: cfg.Poll, limit: cfg.ClaimLimit, poll: shortestPoll, retry: firstClaimRetryDelay}
}

// noteSuccess records a claim that took the given number of runs.
func (p *claimPace) noteSuccess(runs int, full bool) {
	p.limit = min(2*p.limit, p.largest)
	p.retry = firstClaimRetryDelay
	p.full = full
	if runs > 0 {
		p.poll = shortestPoll
	} else {
		p.poll = min(p.longest, shortestPoll+rand.N(3*p.poll))
	}
}

// noteFailure records a claim with the given limit that has failed. It returns how long to wait before the next
// claim, which takes at most half as many runs, because the result may have been too large to arrive in time.
func (p *claimPace) noteFailure(limit int) (wait time.Duration) {
	wait = p.retry/2 + rand.N(p.retry)
	p.retry = min(2*p.retry, maxClaimRetryDelay)
	p.limit = max(1, min(p.limit, limit)/2)
	p.full = false
	return wait
}
