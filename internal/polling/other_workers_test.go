package polling

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// A lone worker, and one whose notifications do not arrive, poll as often as configured. In a fleet each polls less often, but all of
// them together at least as often.
func TestPollIntervalsOfAFleet(t *testing.T) {
	const poll, lease = time.Second, 10 * time.Second
	for _, c := range []struct {
		listening          bool
		others, siblings   int
		poll, claim, check time.Duration
	}{
		{false, 0, 0, time.Second, time.Second, 250 * time.Millisecond},
		{false, 49, 0, time.Second, time.Second, 2 * time.Second},
		{true, 0, 0, time.Second, time.Second, 250 * time.Millisecond},
		{true, 1, 0, time.Second, time.Second, 120 * time.Millisecond},
		{true, 4, 0, 2500 * time.Millisecond, 2500 * time.Millisecond, 200 * time.Millisecond},
		{true, 49, 0, 10 * time.Second, 5 * time.Second, 2 * time.Second},
		{true, 0, 9, 10 * time.Second, 10 * time.Second, 250 * time.Millisecond},
		{true, 49, 999, time.Minute, time.Minute, 2 * time.Second},
		{true, 0, 999, time.Minute, time.Minute, 300 * time.Millisecond},
		{false, 0, 999, time.Second, time.Second, 300 * time.Millisecond},
	} {
		var f OtherWorkers
		f.SetListening(c.listening)
		f.RecordPeers(&store.DeadWorkersResult{LiveCount: c.others, WorkersSharingConns: c.siblings})
		now := time.Now()
		if got := f.PollInterval(poll); got != c.poll {
			t.Errorf("%+v: polls are %v apart", c, got)
		}
		if got := f.ClaimPollInterval(poll, lease, now, time.Time{}, 1); got != c.claim {
			t.Errorf("%+v: claims are %v apart", c, got)
		}
		if got := f.ClaimPollInterval(poll, lease, now, now.Add(lease), 1); got != poll {
			t.Errorf("%+v: claims are %v apart while a run is executed somewhere", c, got)
		}
		if got := f.DeadWorkerCheckInterval(120 * time.Millisecond); got != c.check {
			t.Errorf("%+v: checks for dead workers are %v apart", c, got)
		}
	}
}

// After a hint for all workers, each has a turn of its own, one of them is first at any time, and no worker is always the first.
func TestTurnsAfterAHint(t *testing.T) {
	now := time.Now()
	const workers = 5
	firsts := make(map[int]bool)
	for range workers {
		turns := make(map[time.Duration]bool)
		for i := range workers {
			var f OtherWorkers
			f.RecordPeers(&store.DeadWorkersResult{LiveCount: workers - 1, LiveWithLowerIDCount: i})
			delay := f.ClaimDelayAfterNotification(now)
			turns[delay] = true
			firsts[i] = firsts[i] || delay == 0
		}
		if len(turns) != workers || !turns[0] {
			t.Errorf("the turns are %v", turns)
		}
		now = now.Add(FirstWorkerRotationInterval)
	}
	for i := range workers {
		if !firsts[i] {
			t.Errorf("worker %d was never the first", i)
		}
	}
}
