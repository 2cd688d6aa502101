package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// expireAndRepair ends a claimed run as expired, and repairs it with all its checkpoints, before an admission has seen its end.
func (q *queueFixture) expireAndRepair(at time.Time, id uuid.UUID) {
	q.Helper()
	end := q.newCompletion(id, q.row(id).Epoch)
	end.Status, end.Output, end.Error = store.Expired, nil, []byte(`{"message":"late"}`)
	wantOutcome(q.fixture, "the end", q.commitOwnershipEnd(end).Outcome, store.Written)
	p := q.repairOf(q.row(id), 1)
	p.Runs[0].WakeAt = at
	q.wantRepaired(p)
}

func repairPassed(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	over, at := q.afterStart(10*time.Minute), q.afterStart(20*time.Minute)
	asleep := q.start("", func(w *store.StartWrite) { w.Run.Deadline = over })
	q.wantBegun("at first", q.afterStart(time.Second), asleep)
	q.parkRuns(over, asleep)
	holder := q.start("")
	unbegun := q.start("", func(w *store.StartWrite) { w.Place.StartBy = over })
	q.wantBegun("when the first sleeps", q.afterStart(time.Minute), holder)
	q.wantBegun("when their times are over", at, unbegun, asleep)
	for _, id := range []uuid.UUID{unbegun, asleep} {
		q.wantState("to expire", id, store.PlaceBypassed, store.AdmissionBypassed)
		q.expireAndRepair(at, id)
	}
	if got := q.claimsWithoutRoom(at); len(got) != 0 {
		q.Fatalf("%d repaired runs were claimed without a place", len(got))
	}
	q.wantBegun("while another run executes", at)
	for _, id := range []uuid.UUID{unbegun, asleep} {
		q.wantState("repaired", id, store.PlaceInLine, store.AdmissionInLine)
	}
	q.finishRuns(holder)
	q.wantBegun("when there is room", at, asleep) // it had begun before
	q.finishRuns(asleep)
	q.wantBegun("when there is room again", at, unbegun)
	q.finishRuns(unbegun)
	q.admitAll(at)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func repairPlaceKept(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(2, "")
	at := q.afterStart(time.Minute)
	q.wantBegun("at first", at, r[0])
	q.expireAndRepair(at, r[0])
	q.wantState("repaired", r[0], store.PlaceExecuting, store.AdmissionGranted)
	q.wantBegun("after the repair", at, r[0])
	q.finishRuns(r[0])
	q.wantBegun("when it has ended", at, r[1])
}
