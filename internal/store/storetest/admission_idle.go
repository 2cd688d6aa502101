package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// claimWithoutRow claims runs of the queue as a process does that does not know the queue's row.
func (q *queueFixture) claimWithoutRow(want int) {
	q.Helper()
	if n := len(q.claim(q.query(q.afterStart(time.Second))).Runs); n != want {
		q.Fatalf("%d runs were claimed, want %d", n, want)
	}
}

// wantInProgress makes passes until the queue counts n runs in progress, and fails if a run begins meanwhile.
func (q *queueFixture) wantInProgress(n int) {
	q.Helper()
	for q.queueInfo(boundedQueue).InProgress != n { // PostgreSQL may look for unseen runs a second later
		q.wantBegun("while earlier runs are counted", q.afterStart(20*time.Second))
		if q.ctx.Err() != nil {
			q.Fatalf("the queue counts %+v, want %d in progress", q.queueInfo(boundedQueue), n)
		}
	}
}

// admitIdle counts runs that were idle before their queue had a row.
func admitIdle(b *fixture) {
	q := &queueFixture{fixture: b, departedRuns: make(map[uuid.UUID]bool)}
	waiting, paused, later := q.start("", withoutPlace), q.start("", withoutPlace), q.start("", withoutPlace)
	stranger := b.commitPendingRun("in another queue", b.now)
	q.claimWithoutRow(4)
	q.parkRuns(time.Time{}, waiting, stranger.UUID)
	q.parkRuns(q.afterStart(time.Hour), paused)
	q.controlExistingRuns(store.VerbPause, paused)
	notBegun := q.start("", withoutPlace)
	q.controlExistingRuns(store.VerbPause, notBegun)
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxInProgress: 2}})
	q.parkRuns(time.Time{}, later) // before an admission has seen it
	fresh := q.start("")
	q.wantInProgress(3)
	q.wantBegun("while three are open", q.afterStart(20*time.Second))
	q.wantState("waiting", waiting, store.PlaceNotArrived, store.AdmissionPending)
	q.wantState("paused", paused, store.PlaceNotArrived, store.AdmissionPending)
	q.wantState("paused before it began", notBegun, store.PlaceGone, store.AdmissionNotNeeded)
	if p := b.placeOf(stranger.UUID); p != nil {
		b.Errorf("a run of another queue has the place %+v", p)
	}
	q.controlExistingRuns(store.VerbTerminate, waiting, later)
	q.wantBegun("when one is open", q.afterStart(20*time.Second), fresh)
	q.controlExistingRuns(store.VerbResume, paused)
	q.wantBegun("resumed", q.afterStart(20*time.Second), paused)
	q.finishRuns(fresh, paused)
	q.admitAll(q.afterStart(20 * time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

// admitIdleOfKey counts idle runs by their keys in a queue that was deleted and set again.
func admitIdleOfKey(b *fixture) {
	one := store.QueueSettings{MaxInProgressPerKey: 1}
	q := b.newQueueFixture(one)
	a, c := q.start("a"), q.start("c")
	q.wantBegun("at first", q.afterStart(time.Second), a, c)
	q.parkRuns(time.Time{}, a)
	q.delete()
	q.admitAll(q.afterStart(time.Second))
	q.finishRuns(c)
	q.admitAll(q.afterStart(time.Second))
	q.wantNoRow()
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: one})
	q.queueDeleted = false
	nextA, nextC := q.start("a"), q.start("c")
	q.wantBegun("set again", q.afterStart(20*time.Second), nextC)
	q.controlExistingRuns(store.VerbTerminate, a)
	q.wantBegun("when the first has ended", q.afterStart(20*time.Second), nextA)
}

// admitIdleBounded counts runs of a queue without a bound on runs in progress when it gets one.
func admitIdleBounded(b *fixture) {
	q := &queueFixture{fixture: b, departedRuns: make(map[uuid.UUID]bool)}
	idle := q.start("", withoutPlace)
	q.claimWithoutRow(1)
	q.parkRuns(time.Time{}, idle)
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 1}})
	first := q.start("")
	q.wantBegun("without the bound", q.afterStart(20*time.Second), first)
	q.finishRuns(first)
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1}})
	fresh := q.start("")
	q.wantInProgress(1)
	q.wantBegun("with the bound", q.afterStart(20*time.Second))
	q.controlExistingRuns(store.VerbTerminate, idle)
	q.wantBegun("when the idle run has ended", q.afterStart(20*time.Second), fresh)
}

// admitIdleOfDeletedQueue counts a run that became idle after its queue was deleted, although the queue is set again before an admission
// has seen that it was deleted.
func admitIdleOfDeletedQueue(b *fixture) {
	one := store.QueueSettings{MaxInProgress: 1}
	q := b.newQueueFixture(one)
	for _, at := range []time.Duration{time.Second, 10 * time.Second} { // both searches
		q.admitAll(q.afterStart(at))
	}
	q.delete()
	idle := q.start("", withoutPlace)
	q.claimWithoutRow(1)
	q.parkRuns(time.Time{}, idle)
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: one})
	q.queueDeleted = false
	fresh := q.start("")
	q.wantInProgress(1)
	q.controlExistingRuns(store.VerbTerminate, idle)
	q.wantBegun("when the idle run has ended", q.afterStart(20*time.Second), fresh)
}

// admitIdleLate counts a run that a process began which did not know the queue's row, and that became idle after the first search.
func admitIdleLate(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxInProgress: 1})
	q.admitAll(q.afterStart(time.Second))
	late := q.start("", withoutPlace)
	q.claimWithoutRow(1)
	q.parkRuns(time.Time{}, late)
	q.wantInProgress(1)
	fresh := q.start("")
	q.wantBegun("while the late run is in progress", q.afterStart(20*time.Second))
	q.controlExistingRuns(store.VerbTerminate, late)
	q.wantBegun("when the late run has ended", q.afterStart(20*time.Second), fresh)
}
