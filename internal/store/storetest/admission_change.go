package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func admitRateRaised(b *bed) {
	slow, fast := store.Rate{Count: 1, Period: 24 * time.Hour, Burst: 2}, store.Rate{Count: 10, Period: time.Second, Burst: 1}
	q := b.bounded(store.QueueSettings{Rate: slow, RatePerKey: slow})
	r := q.starts(4, "a")
	q.begins("at first", q.in(time.Second), r[0], r[1])
	q.begins("when the rate is used up", q.in(time.Minute))
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{Rate: fast, RatePerKey: fast}})
	q.admit(q.in(time.Minute))
	q.begins("when it was raised", q.in(time.Minute+100*time.Millisecond), r[2])
	q.begins("later", q.in(time.Minute+200*time.Millisecond), r[3])
}

// admitRateWhileBusy lets no worker claim for a minute.
func admitRateWhileBusy(b *bed) {
	rate := store.Rate{Count: 2, Period: time.Second, Burst: 1}
	q := b.bounded(store.QueueSettings{Rate: rate, RatePerKey: rate})
	r := q.starts(10, "a")
	at := time.Second
	for ; at < time.Minute; at += store.ClaimTime {
		if a := q.admit(q.in(at)); a.NextPassAt.IsZero() || a.NextPassAt.After(q.in(at+store.ClaimTime)) {
			q.Fatalf("at %v the next pass is at %v, want it within %v while runs are not claimed", at, a.NextPassAt, store.ClaimTime)
		}
	}
	q.begins("after a minute", q.in(at), r[0])
	q.begins("too early", q.in(at+499*time.Millisecond))
	q.begins("in time", q.in(at+500*time.Millisecond), r[1])
	q.begins("when workers have slots", q.in(at+time.Second), r[2])
}

func admitUrgentOfKey(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1})
	busy := q.start("busy")
	q.begins("at first", q.in(time.Second), busy)
	slow := q.start("a", withPriority(-2))
	q.admit(q.in(time.Second))
	normal := q.start("")
	urgent := q.start("a", withPriority(2))
	q.admit(q.in(time.Second))
	q.wantState("urgent", urgent, store.PlaceInLine, store.AdmissionInLine)
	for _, next := range []struct {
		ends, begins int
	}{{0, 3}, {3, 2}, {2, 1}} {
		q.ends(q.runs[next.ends])
		q.begins("in the order of the priorities", q.in(time.Second), q.runs[next.begins])
	}
	_, _ = slow, normal
}
