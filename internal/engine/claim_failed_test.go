package engine

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// The end of a lease that a failed claim took shows no crash, before the search for its runs has ended and after it.
func TestLeasesOfFailedClaimsEndWithoutACrash(t *testing.T) {
	const lease = 10 * time.Second
	now := time.Now()
	claimedAt := func(at time.Time) store.ClaimQuery { return store.ClaimQuery{Now: at, LeaseUntil: at.Add(lease)} }
	var f failedClaims
	f.wakeLoop = wakeup.NewChan()
	first, second, current := claimedAt(now.Add(-13*time.Second)), claimedAt(now.Add(-11*time.Second)), claimedAt(now.Add(-time.Second))
	for _, q := range []store.ClaimQuery{first, second, current} {
		f.add(q)
	}
	f.remove(first, false)
	yesterday := now.Add(-24 * time.Hour)
	q := claimedAt(now)
	q.OutageFrom, q.OutageUntil = yesterday.Add(-time.Minute), yesterday
	f.extendOutageByFailedClaims(&q)
	for end, want := range map[time.Time]bool{
		first.LeaseUntil: true, second.LeaseUntil: true, current.LeaseUntil: false,
		first.LeaseUntil.Add(-time.Millisecond): false, second.LeaseUntil.Add(time.Millisecond): false,
	} {
		if got := q.LeaseEndedInOutage(end); got != want {
			t.Errorf("a lease that ended %v ago ended in the outage from %v to %v: %v, want %v", now.Sub(end), now.Sub(q.OutageFrom), now.Sub(q.OutageUntil), got, want)
		}
	}
	f.remove(second, true)
	q = claimedAt(now)
	f.extendOutageByFailedClaims(&q)
	if q.LeaseEndedInOutage(second.LeaseUntil) {
		t.Error("the runs of a claim were released, and the end of its lease is taken for an outage")
	}
}
