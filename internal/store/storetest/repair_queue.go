package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// expiresAndIsRepaired ends a claimed run as expired, and repairs it with all its checkpoints, before an admission has seen its end.
func (q *queueBed) expiresAndIsRepaired(at time.Time, id uuid.UUID) {
	q.Helper()
	end := q.finish(id, q.row(id).Epoch)
	end.Status, end.Output, end.Error = store.Expired, nil, []byte(`{"message":"late"}`)
	wantOutcome(q.bed, "the end", q.commitRun(end).Outcome, store.Written)
	p := q.repairOf(q.row(id), 1)
	p.Runs[0].WakeAt = at
	q.repaired(p)
}

func repairPassed(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	over, at := q.in(10*time.Minute), q.in(20*time.Minute)
	asleep := q.start("", func(w *store.StartWrite) { w.Run.Deadline = over })
	q.begins("at first", q.in(time.Second), asleep)
	q.waits(over, asleep)
	holder := q.start("")
	unbegun := q.start("", func(w *store.StartWrite) { w.Place.StartBy = over })
	q.begins("when the first sleeps", q.in(time.Minute), holder)
	q.begins("when their times are over", at, unbegun, asleep)
	for _, id := range []uuid.UUID{unbegun, asleep} {
		q.wantState("to expire", id, store.PlacePassing, store.AdmissionBypassed)
		q.expiresAndIsRepaired(at, id)
	}
	if got := q.claimsWithoutRoom(at); len(got) != 0 {
		q.Fatalf("%d repaired runs were claimed without a place", len(got))
	}
	q.begins("while another run executes", at)
	for _, id := range []uuid.UUID{unbegun, asleep} {
		q.wantState("repaired", id, store.PlaceInLine, store.AdmissionInLine)
	}
	q.ends(holder)
	q.begins("when there is room", at, asleep) // it had begun before
	q.ends(asleep)
	q.begins("when there is room again", at, unbegun)
	q.ends(unbegun)
	q.admit(at)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func repairPlaceKept(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(2, "")
	at := q.in(time.Minute)
	q.begins("at first", at, r[0])
	q.expiresAndIsRepaired(at, r[0])
	q.wantState("repaired", r[0], store.PlaceExecuting, store.AdmissionGranted)
	q.begins("after the repair", at, r[0])
	q.ends(r[0])
	q.begins("when it has ended", at, r[1])
}
