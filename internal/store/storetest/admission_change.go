package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func admitRateRaised(b *fixture) {
	slow, fast := store.Rate{Count: 1, Period: 24 * time.Hour, Burst: 2}, store.Rate{Count: 10, Period: time.Second, Burst: 1}
	q := b.newQueueFixture(store.QueueSettings{Rate: slow, RatePerKey: slow})
	r := q.starts(4, "a")
	q.wantBegun("at first", q.afterStart(time.Second), r[0], r[1])
	q.wantBegun("when the rate is used up", q.afterStart(time.Minute))
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{Rate: fast, RatePerKey: fast}})
	q.admitAll(q.afterStart(time.Minute))
	q.wantBegun("when it was raised", q.afterStart(time.Minute+100*time.Millisecond), r[2])
	q.wantBegun("later", q.afterStart(time.Minute+200*time.Millisecond), r[3])
}

// admitRateWhileBusy lets no worker claim for a minute.
func admitRateWhileBusy(b *fixture) {
	rate := store.Rate{Count: 2, Period: time.Second, Burst: 1}
	q := b.newQueueFixture(store.QueueSettings{Rate: rate, RatePerKey: rate})
	r := q.starts(10, "a")
	at := time.Second
	for ; at < time.Minute; at += store.UnclaimedStopsRateAfter {
		if a := q.admitAll(q.afterStart(at)); a.NextPassAt.IsZero() || a.NextPassAt.After(q.afterStart(at+store.UnclaimedStopsRateAfter)) {
			q.Fatalf("at %v the next pass is at %v, want it within %v while runs are not claimed", at, a.NextPassAt, store.UnclaimedStopsRateAfter)
		}
	}
	q.wantBegun("after a minute", q.afterStart(at), r[0])
	q.wantBegun("too early", q.afterStart(at+499*time.Millisecond))
	q.wantBegun("in time", q.afterStart(at+500*time.Millisecond), r[1])
	q.wantBegun("when workers have slots", q.afterStart(at+time.Second), r[2])
}

func admitUrgentOfKey(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1})
	busy := q.start("busy")
	q.wantBegun("at first", q.afterStart(time.Second), busy)
	slow := q.start("a", withPriority(-2))
	q.admitAll(q.afterStart(time.Second))
	normal := q.start("")
	urgent := q.start("a", withPriority(2))
	q.admitAll(q.afterStart(time.Second))
	q.wantState("urgent", urgent, store.PlaceInLine, store.AdmissionInLine)
	for _, next := range []struct {
		ends, begins int
	}{{0, 3}, {3, 2}, {2, 1}} {
		q.finishRuns(q.runs[next.ends])
		q.wantBegun("in the order of the priorities", q.afterStart(time.Second), q.runs[next.begins])
	}
	_, _ = slow, normal
}
