package engine

import (
	"testing"
	"time"
)

func newTestPace() claimPace {
	return newClaimPace(&Config{ClaimLimit: 100, Poll: time.Second})
}

// Claims that find nothing wait longer and longer, up to Config.Poll, until a claim finds a run.
func TestPollGrowsWhileNothingIsDue(t *testing.T) {
	p := newTestPace()
	var longest time.Duration
	for range 1000 {
		before := p.pollDelay
		p.noteSuccess(0, false)
		if p.pollDelay < minClaimPoll || p.pollDelay > min(time.Second, minClaimPoll+3*before) {
			t.Fatalf("a poll of %v after %v", p.pollDelay, before)
		}
		longest = max(longest, p.pollDelay)
	}
	if longest < 950*time.Millisecond {
		t.Errorf("the longest poll is %v", longest)
	}
	if p.noteSuccess(1, false); p.pollDelay != minClaimPoll || p.isFull {
		t.Errorf("after a run was found: %+v", p)
	}
	if p.noteSuccess(100, true); p.pollDelay != minClaimPoll || !p.isFull {
		t.Errorf("after a full claim: %+v", p)
	}
	if p.noteSuccess(0, false); p.isFull {
		t.Errorf("after an empty claim: %+v", p)
	}
}

// Failed claims wait longer and longer, and take fewer runs, until a claim succeeds.
func TestFailedClaimsBackOff(t *testing.T) {
	p := newTestPace()
	p.noteSuccess(100, true)
	retry := firstClaimRetryDelay
	for i, want := range []int{50, 25, 12, 6, 3, 1, 1, 1} {
		wait := p.noteFailure(p.limit)
		if wait < retry/2 || wait > retry*3/2 || p.limit != want || p.isFull {
			t.Errorf("failure %d: %v, then %+v; want a limit of %d", i, wait, p, want)
		}
		retry = min(2*retry, maxClaimRetryDelay)
	}
	if p.retryDelay != maxClaimRetryDelay {
		t.Errorf("the longest wait is about %v", p.retryDelay)
	}
	for _, want := range []int{2, 4, 8, 16, 32, 64, 100, 100} {
		if p.noteSuccess(1, false); p.limit != want || p.retryDelay != firstClaimRetryDelay {
			t.Errorf("after a success: %+v; want a limit of %d", p, want)
		}
	}
	if p.noteFailure(10); p.limit != 5 {
		t.Errorf("a claim of 10 runs failed, and the next takes %d", p.limit)
	}
}
