package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

func (q *queueBed) pauseQueue(resume bool) {
	q.Helper()
	if _, err := q.s.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Now: q.now, Resume: resume}); err != nil {
		q.Fatal(err)
	}
}

func admitPauseTakesBack(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 3})
	begun := q.start("")
	q.begins("at first", q.in(time.Second), begun)
	q.waits(q.in(2*time.Second), begun)
	r := q.starts(3, "")
	q.admit(q.in(time.Second))
	q.admit(q.in(2 * time.Second))
	q.pauseQueue(false)
	q.begins("in a paused queue", q.in(2*time.Second), begun)
	for _, id := range r {
		q.wantState("taken back", id, store.PlaceInLine, store.AdmissionInLine)
	}
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{Executing: 1, Open: 1, Waiting: 3}) {
		q.Errorf("the queue counts %+v", use)
	}
	q.pauseQueue(true)
	q.begins("when it is resumed", q.in(2*time.Second), r[0], r[1])
	q.ends(begun, r[0], r[1])
	q.begins("when these have ended", q.in(2*time.Second), r[2])
	q.ends(r[2])
	q.admit(q.in(3 * time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitLoweredTakesBack(b *bed) {
	q := b.bounded(store.QueueSettings{})
	for _, s := range []store.QueueSettings{{MaxExecuting: 1}, {MaxInProgress: 1}, {MaxExecutingPerKey: 1}, {MaxInProgressPerKey: 1}} {
		r := q.starts(2, "a")
		urgent := q.start("a", withPriority(1))
		q.admit(q.in(time.Second))
		q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: s})
		q.begins("lowered to "+s.Text(), q.in(2*time.Second), urgent)
		q.ends(urgent)
		q.begins("when it has ended", q.in(2*time.Second), r[0])
		q.changeQueue(store.QueueChangeRequest{Name: boundedQueue})
		q.begins("without a bound", q.in(2*time.Second), r[1])
		q.ends(r...)
	}
}

func admitLateWithoutRoom(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecutingPerWorker: 1})
	late := q.start("", func(w *store.StartWrite) { w.Place.StartBy, w.Run.Control = q.in(time.Minute), store.HasStartBy })
	overdue := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.in(time.Minute) })
	patient := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.in(2 * time.Hour) })
	q.admit(q.in(time.Second))
	q.admit(q.in(time.Hour))
	q.wantState("late", late, store.PlacePassing, store.AdmissionBypassed)
	q.wantState("overdue", overdue, store.PlacePassing, store.AdmissionBypassed)
	q.wantState("in time", patient, store.PlaceExecuting, store.AdmissionGranted)
	if got := q.claimsWithoutRoom(q.in(time.Hour)); len(got) != 2 {
		q.Errorf("a worker without room claims %+v, want the two that expire", got)
	}
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{Executing: 1, Open: 1}) {
		q.Errorf("the queue counts %+v", use)
	}
}
