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

func repairWithoutPlace(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxInProgress: 1, Rate: store.Rate{Count: 1, Period: time.Minute, Burst: 1}})
	r := q.starts(2, "a")
	at := q.afterStart(10 * time.Minute)
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	end := q.newCompletion(r[0], q.row(r[0]).Epoch)
	end.Status, end.Output, end.Error = store.Failed, nil, []byte(`{"message":"no"}`)
	wantOutcome(b, "the end", q.commitOwnershipEnd(end).Outcome, store.Written)
	q.wantBegun("when it has failed", at, r[1])
	q.parkRuns(at.Add(5*time.Minute), r[1])
	q.wantState("failed", r[0], store.PlaceGone, store.AdmissionNotNeeded)
	q.departedRuns = make(map[uuid.UUID]bool)
	p := q.repairOf(q.row(r[0]), 1)
	p.Runs[0].WakeAt = at
	q.wantRepaired(p)
	q.wantBegun("while another root is in progress", at.Add(2*time.Minute))
	q.wantState("repaired", r[0], store.PlaceInLine, store.AdmissionInLine)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{InProgress: 1, Waiting: 1}) {
		q.Errorf("the queue counts %+v", use)
	}
	at = at.Add(5 * time.Minute)
	q.wantBegun("the root in progress", at, r[1])
	q.finishRuns(r[1])
	if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Now: q.now}); err != nil {
		q.Fatal(err)
	}
	q.wantBegun("in a paused queue", at)
	if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Resume: true}); err != nil {
		q.Fatal(err)
	}
	q.wantBegun("when the other has ended", at, r[0])
	late := q.start("a")
	q.finishRuns(r[0])
	q.wantBegun("before the rate allows it", at.Add(59*time.Second))
	q.wantBegun("later", at.Add(time.Minute), late)
}
