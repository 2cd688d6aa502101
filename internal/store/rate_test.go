package store

import (
	"math"
	"testing"
	"time"
)

// A rate that is raised applies at once, also if the old one was used up for days.
func TestARaisedRateOfAQueueAppliesAtOnce(t *testing.T) {
	slow, fast := Rate{Count: 1, Period: 24 * time.Hour, Burst: 10}, Rate{Count: 10, Period: time.Second, Burst: 1}
	for what, settings := range map[string]func(Rate) QueueSettings{
		"Rate":       func(r Rate) QueueSettings { return QueueSettings{Rate: r} },
		"RatePerKey": func(r Rate) QueueSettings { return QueueSettings{RatePerKey: r} },
	} {
		q := newQueueInMemory(settings(slow))
		for range 12 {
			q.start("a", 0, 1, true)
		}
		q.settle(t, 100)
		if n := q.state.Use.Executing; n != 10 {
			t.Fatalf("%s: %d runs begin, want the burst of 10", what, n)
		}
		q.claim()
		q.state.Settings, q.state.RecordedSettings = settings(fast), "raised"
		k := q.keys["a"]
		k.CheckAt = q.state.Now // as a store sets it for all keys when CheckAllKeys is set
		q.keys["a"] = k
		q.settle(t, 100)
		q.state.Now = q.state.Now.Add(200 * time.Millisecond)
		q.settle(t, 100)
		if n := q.state.Use.Executing; n < 11 {
			t.Errorf("%s: %d runs have begun when it was raised, want 11", what, n)
		}
	}
}

func TestARateOfALongPeriodBounds(t *testing.T) {
	now := time.Unix(1000, 0)
	r := Rate{Count: 1_000_000, Period: time.Duration(math.MaxInt64).Truncate(time.Microsecond), Burst: 1}
	if paid := r.usedUntilAfterGrant(time.Time{}, now, 1); r.freeUnitsAt(paid, now) != 0 || r.freeUnitsAt(paid, now.Add(3*time.Hour)) != 1 {
		t.Errorf("1,000,000 in 292 years are one per %v", r.timePerUnit())
	}
}
