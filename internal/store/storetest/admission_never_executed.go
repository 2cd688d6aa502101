package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// pause pauses the queue.
func (q *queueFixture) pause() {
	q.Helper()
	if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Now: q.now}); err != nil {
		q.Fatal(err)
	}
}

// admitClaimedInVain pauses a queue with a run whose worker has died before it has called the run's function: the run still has its mark.
func admitClaimedInVain(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxInProgress: 1})
	by := q.afterStart(time.Minute)
	id := q.start("a", func(w *store.StartWrite) { w.Run.Control, w.Place.StartBy = store.HasStartBy, by })
	q.wantBegun("at first", q.afterStart(time.Second), id)
	q.wantReleased(id, q.afterStart(time.Second))
	q.pause()
	q.admitAll(q.afterStart(2 * time.Second))
	q.wantState("in a paused queue", id, store.PlaceInLine, store.AdmissionInLine)
	if got := q.claimsWhilePaused(q.afterStart(2 * time.Second)); len(got) != 0 {
		q.Errorf("claimed %v in a paused queue", got)
	}
	q.resume()
	q.admitAll(q.afterStart(3 * time.Second))
	q.wantState("when the queue is resumed", id, store.PlaceExecuting, store.AdmissionGranted)
	at := by.Add(store.CheckUnclaimedRunAfter)
	q.admitAll(at)
	q.wantState("when its time is over", id, store.PlaceBypassed, store.AdmissionBypassed)
	query := q.query(at)
	query.QueueRules = store.NewClaimRulesForExpiredRuns([]string{boundedQueue})
	q.claimOne(query, id)
	q.finishRuns(id)
	q.admitAll(at)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

// wantReleased releases a claimed run, so that it is pending again.
func (q *queueFixture) wantReleased(id uuid.UUID, at time.Time) {
	q.Helper()
	end := store.OwnershipEnd{UUID: id, Epoch: q.row(id).Epoch, Status: store.Pending, WakeAt: at, Now: at}
	wantOutcome(q.fixture, "the release", q.commitOwnershipEnd(end).Outcome, store.Written)
}

// resume resumes the queue.
func (q *queueFixture) resume() {
	q.Helper()
	if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Resume: true, Now: q.now}); err != nil {
		q.Fatal(err)
	}
}

// admitForkPaused pauses a queue with a fork, which has a history and was never claimed.
func admitForkPaused(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxInProgress: 1})
	f := b.forkOf(b.failedRun("first"), "fork", "first")
	id := f.Start.Run.UUID
	f.Start.Run.Queue, f.Start.Run.Admission = boundedQueue, store.AdmissionPending
	f.Start.Place = &store.QueuePlace{Run: id, Queue: boundedQueue, Weight: 1, State: store.PlaceNotArrived, Root: true}
	b.forked(f)
	q.runs = append(q.runs, id)
	at := q.afterStart(time.Second)
	q.admitAll(at)
	q.wantState("admitted", id, store.PlaceExecuting, store.AdmissionGranted)
	q.pause()
	if got := q.claimsWhilePaused(at); len(got) != 0 {
		q.Errorf("claimed %v in a paused queue", got)
	}
	q.admitAll(at)
	q.wantState("in a paused queue", id, store.PlaceInLine, store.AdmissionInLine)
	q.moved(id, "elsewhere", false)
	q.moved(id, boundedQueue, true)
	q.resume()
	q.wantBegun("when the queue is resumed", at, id)
	if got := b.claim(b.query(at)).Runs; len(got) != 0 {
		b.Errorf("%d further runs were claimed", len(got))
	}
}
