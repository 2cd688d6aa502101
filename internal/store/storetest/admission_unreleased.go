package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// startUnreleased starts a run of the queue that waits for its start key.
func (q *queueFixture) startUnreleased(key string) uuid.UUID {
	q.Helper()
	w := q.newQueuedStart("waits for its key", boundedQueue, key)
	w.Run.WakeAt, w.Run.Unreleased = time.Time{}, true
	q.fold(foldKey, func(store.StartKeySnapshot) *store.StartKeyWrite {
		return &store.StartKeyWrite{Row: store.StartKeyRow{StartKey: foldKey, CheckAt: q.now, State: []byte(`{}`)}, RunToCreate: w}
	})
	q.runs = append(q.runs, w.Run.UUID)
	return w.Run.UUID
}

func admitDeletedUnreleased(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	id := q.startUnreleased("a")
	q.delete()
	q.admitAll(q.afterStart(time.Second))
	if row := q.queueRow(boundedQueue); row != nil {
		q.Errorf("the row of a queue in which a run waits for its start key stays: %+v", row)
	}
	q.controlExistingRuns(store.VerbPause, id)
	q.controlExistingRuns(store.VerbResume, id)
	q.wantBegun("before it is released", q.afterStart(30*time.Minute))
	run := q.row(id)
	if err := q.releaseFold(run, time.Time{}, nil); err != nil {
		q.Fatal(err)
	}
	q.wantState("released without a row", id, store.PlaceGone, store.AdmissionNotNeeded)
	q.wantBegun("when it is released", q.afterStart(30*time.Minute), id)
}

// admitSetAgainUnreleased releases a run in a queue that was deleted and set again.
func admitSetAgainUnreleased(b *fixture) {
	one := store.QueueSettings{MaxExecuting: 1}
	q := b.newQueueFixture(one)
	id := q.startUnreleased("a")
	q.delete()
	q.admitAll(q.afterStart(time.Second))
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: one})
	q.queueDeleted = false
	first := q.start("a")
	q.wantBegun("before it is released", q.afterStart(30*time.Minute), first)
	run := q.row(id)
	run.Admission = store.AdmissionPending
	if err := q.releaseFold(run, time.Time{}, nil); err != nil {
		q.Fatal(err)
	}
	q.wantBegun("while another run executes", q.afterStart(30*time.Minute))
	q.wantState("released", id, store.PlaceInLine, store.AdmissionInLine)
	if p := q.placeOf(id); p.Key != "a" {
		q.Errorf("the released run has the place %+v", p)
	}
	q.finishRuns(first)
	q.wantBegun("when it has ended", q.afterStart(30*time.Minute), id)
}

// endUnreleased ends runs that wait for their start keys, with the queue and without it.
func endUnreleased(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	for name, verb := range map[string]store.ControlVerb{"cancelled": store.VerbCancel, "terminated": store.VerbTerminate} {
		queued := q.startUnreleased("a")
		free := b.unreleased(name)
		b.controlExistingRuns(verb, queued, free.UUID)
		for _, id := range []uuid.UUID{queued, free.UUID} {
			if p := b.placeOf(id); p != nil {
				b.Errorf("an ended run has the place %+v", p)
			}
			wantOutcome(b, "the deletion of a run that ended while it waited for its start key", b.deleteTrees(b.deletionOf(b.row(id))), store.Written)
		}
	}
	if n, err := b.store.QueueDepth(b.ctx, boundedQueue, 10); err != nil || n != 0 {
		b.Errorf("%d ended runs wait, %v", n, err)
	}
	q.admitAll(q.afterStart(time.Second))
}

// releaseStartBy releases runs that must begin by a time, in a queue with settings and in one without.
func releaseStartBy(b *fixture) {
	by := b.afterStart(10 * time.Minute)
	b.changeQueue(store.QueueChangeRequest{Name: boundedQueue})
	for _, admission := range []store.AdmissionState{store.AdmissionNotNeeded, store.AdmissionPending} {
		w := b.newQueuedStart("", boundedQueue, "a")
		w.Run.Admission, w.Run.Control, w.Run.WakeAt, w.Run.Unreleased = admission, store.HasStartBy, time.Time{}, true
		b.fold(foldKey, func(store.StartKeySnapshot) *store.StartKeyWrite {
			return &store.StartKeyWrite{Row: store.StartKeyRow{StartKey: foldKey, CheckAt: b.now, State: []byte(`{}`)}, RunToCreate: w}
		})
		b.moved(w.Run.UUID, "elsewhere", false)
		b.moved(w.Run.UUID, boundedQueue, admission == store.AdmissionPending)
		if err := b.releaseFold(w.Run, by, nil); err != nil {
			b.Fatal(err)
		}
		p := b.placeOf(w.Run.UUID)
		want := store.QueuedRun{QueuePlace: *w.Place, Admission: admission}
		if want.StartBy = by; p == nil || !samePlace(*p, want) {
			b.Errorf("the place of the released run is %+v, want %+v", p, want)
		}
		if row := b.row(w.Run.UUID); row.Control != store.HasStartBy {
			b.Errorf("the released run has lost its mark: %+v", row)
		}
	}
}
