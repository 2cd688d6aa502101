package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func (q *queueFixture) pauseQueue(resume bool) {
	q.Helper()
	if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Now: q.now, Resume: resume}); err != nil {
		q.Fatal(err)
	}
}

func admitPauseTakesBack(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 3})
	begun := q.start("")
	q.wantBegun("at first", q.afterStart(time.Second), begun)
	q.parkRuns(q.afterStart(2*time.Second), begun)
	r := q.starts(3, "")
	q.admitAll(q.afterStart(time.Second))
	q.admitAll(q.afterStart(2 * time.Second))
	q.pauseQueue(false)
	q.wantBegun("in a paused queue", q.afterStart(2*time.Second), begun)
	for _, id := range r {
		q.wantState("taken back", id, store.PlaceInLine, store.AdmissionInLine)
	}
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{Executing: 1, InProgress: 1, Waiting: 3}) {
		q.Errorf("the queue counts %+v", use)
	}
	q.pauseQueue(true)
	q.wantBegun("when it is resumed", q.afterStart(2*time.Second), r[0], r[1])
	q.finishRuns(begun, r[0], r[1])
	q.wantBegun("when these have ended", q.afterStart(2*time.Second), r[2])
	q.finishRuns(r[2])
	q.admitAll(q.afterStart(3 * time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitLoweredTakesBack(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{})
	for _, s := range []store.QueueSettings{{MaxExecuting: 1}, {MaxInProgress: 1}, {MaxExecutingPerKey: 1}, {MaxInProgressPerKey: 1}} {
		r := q.starts(2, "a")
		urgent := q.start("a", withPriority(1))
		q.admitAll(q.afterStart(time.Second))
		q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: s})
		q.wantBegun("lowered to "+s.EncodeJSON(), q.afterStart(2*time.Second), urgent)
		q.finishRuns(urgent)
		q.wantBegun("when it has ended", q.afterStart(2*time.Second), r[0])
		q.changeQueue(store.QueueChangeRequest{Name: boundedQueue})
		q.wantBegun("without a bound", q.afterStart(2*time.Second), r[1])
		q.finishRuns(r...)
	}
}

func admitLateWithoutRoom(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecutingPerWorker: 1})
	late := q.start("", func(w *store.StartWrite) {
		w.Place.StartBy, w.Run.Control = q.afterStart(time.Minute), store.HasStartBy
	})
	overdue := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.afterStart(time.Minute) })
	patient := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.afterStart(2 * time.Hour) })
	q.admitAll(q.afterStart(time.Second))
	q.admitAll(q.afterStart(time.Hour))
	q.wantState("late", late, store.PlaceBypassed, store.AdmissionBypassed)
	q.wantState("overdue", overdue, store.PlaceBypassed, store.AdmissionBypassed)
	q.wantState("in time", patient, store.PlaceExecuting, store.AdmissionGranted)
	if got := q.claimsWithoutRoom(q.afterStart(time.Hour)); len(got) != 2 {
		q.Errorf("a worker without room claims %+v, want the two that expire", got)
	}
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{Executing: 1, InProgress: 1}) {
		q.Errorf("the queue counts %+v", use)
	}
}
