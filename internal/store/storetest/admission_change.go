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
