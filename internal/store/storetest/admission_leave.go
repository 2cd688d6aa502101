package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

func admitPausedRun(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(3, "")
	q.admitAll(q.afterStart(time.Second))
	q.controlExistingRuns(store.VerbPause, r[0], r[1]) // one with a place, and one in line
	q.wantBegun("when two are paused", q.afterStart(20*time.Second), r[2])
	q.wantState("paused", r[1], store.PlaceNotArrived, store.AdmissionPending)
	q.controlExistingRuns(store.VerbResume, r[0], r[1])
	q.wantBegun("while another executes", q.afterStart(20*time.Second))
	q.finishRuns(r[2])
	q.wantBegun("when it has ended", q.afterStart(20*time.Second), r[0])
	q.controlExistingRuns(store.VerbPause, r[1])
	q.controlExistingRuns(store.VerbResume, r[1]) // no admission has seen the pause
	q.finishRuns(r[0])
	q.wantBegun("paused and resumed in line", q.afterStart(20*time.Second), r[1])
}

func admitCancelled(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(3, "")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	q.parkRuns(q.afterStart(2*time.Second), r[0])
	q.wantBegun("while it sleeps", q.afterStart(time.Second), r[1])
	q.admitAll(q.afterStart(2 * time.Second)) // the first is in line again
	q.wantState("awake", r[0], store.PlaceInLine, store.AdmissionInLine)
	q.controlExistingRuns(store.VerbCancel, r[0], r[2])
	if s := q.row(r[2]).Status; s != store.Cancelled {
		q.Errorf("a cancelled run that has not begun is %v", s)
	}
	q.wantBegun("to compensate", q.afterStart(20*time.Second), r[0])
	q.wantState("cancelled in line", r[2], store.PlaceGone, store.AdmissionNotNeeded)
	q.wantState("compensating", r[0], store.PlaceBypassed, store.AdmissionBypassed)
	end := q.newCompletion(r[0], q.row(r[0]).Epoch)
	end.Status, end.Output = store.Cancelled, nil
	wantOutcome(b, "the cancelled end", q.commitOwnershipEnd(end).Outcome, store.Written)
	q.finishRuns(r[1])
	q.admitAll(q.afterStart(20 * time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitTerminated(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(5, "")
	q.wantBegun("at first", q.afterStart(time.Second), r[0], r[1])
	q.controlExistingRuns(store.VerbTerminate, r[0], r[2])
	q.wantBegun("when one of them was terminated, and one in line", q.afterStart(20*time.Second), r[3])
}

func admitExpired(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	first := q.start("")
	late := q.start("", func(w *store.StartWrite) { w.Place.StartBy = q.afterStart(time.Minute) })
	overdue := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.afterStart(30 * time.Second) })
	patient := q.start("", func(w *store.StartWrite) { w.Place.StartBy = q.afterStart(time.Hour) })
	q.wantBegun("at first", q.afterStart(time.Second), first)
	a := q.admitAll(q.afterStart(time.Second))
	if !a.NextPassAt.Equal(q.afterStart(30 * time.Second)) {
		q.Errorf("the next pass is after %v, want the first deadline", a.NextPassAt.Sub(q.now))
	}
	q.wantBegun("at the deadline", q.afterStart(30*time.Second), overdue)
	q.wantBegun("when it should have begun", q.afterStart(time.Minute), late)
	q.wantState("expiring", late, store.PlaceBypassed, store.AdmissionBypassed)
	q.finishRuns(first)
	q.wantBegun("when there is room", q.afterStart(2*time.Minute), patient)
}

func admitClockBack(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(2, "")
	q.wantBegun("at first", q.afterStart(time.Hour), r...)
	q.finishRuns(r[0])
	q.parkRuns(q.afterStart(2*time.Second), r[1])
	fresh := q.start("")
	q.wantBegun("when the clock went back", q.afterStart(time.Second), fresh)
	q.wantBegun("when the time of the other has come", q.afterStart(2*time.Second), r[1])
	overdue := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.afterStart(time.Minute) })
	q.admitAll(q.afterStart(3 * time.Second))
	q.wantState("before its deadline", overdue, store.PlaceInLine, store.AdmissionInLine)
	q.wantBegun("at its deadline", q.afterStart(time.Minute), overdue)
}

func admitDeadline(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(2, "")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	wantOutcome(b, "the deadline", q.setDeadline(r[1], q.afterStart(time.Minute)).Outcome, store.Written)
	if a := q.admitAll(q.afterStart(2 * time.Second)); !a.NextPassAt.Equal(q.afterStart(time.Minute)) {
		q.Errorf("the next pass is after %v, want the deadline", a.NextPassAt.Sub(q.now))
	}
	q.wantBegun("at the deadline", q.afterStart(time.Minute), r[1])
}

func admitChildren(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1})
	r := q.starts(2, "")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	parent := q.row(r[0])
	child := q.child(parent, "child")
	child.Queue, child.Admission = boundedQueue, store.AdmissionPending
	w := &store.StartWrite{Run: child, ParentEpoch: parent.Epoch, Place: &store.QueuePlace{Run: child.UUID, Queue: boundedQueue, Weight: 1}}
	q.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	q.runs = append(q.runs, child.UUID)
	q.wantBegun("while its parent executes", q.afterStart(time.Second))
	q.parkRuns(time.Time{}, parent.UUID)
	q.wantBegun("when its parent waits for it", q.afterStart(time.Second), child.UUID)
	wantOutcome(b, "the child's end", q.commitOwnershipEnd(q.childEnd(q.row(child.UUID))).Outcome, store.Written)
	q.wantBegun("when the child has ended", q.afterStart(time.Minute), parent.UUID)
	q.finishRuns(parent.UUID)
	q.wantBegun("when the parent has ended", q.afterStart(time.Minute), r[1])
}

func admitStrays(b *fixture) {
	q := &queueFixture{fixture: b, departedRuns: make(map[uuid.UUID]bool)}
	sleeping, executing, due := q.start("", withoutPlace), q.start("", withoutPlace), q.start("", withoutPlace)
	query := q.query(q.afterStart(time.Second))
	query.Limit = 2
	var got []uuid.UUID
	for _, c := range q.claim(query).Runs {
		got = append(got, c.Run.UUID)
	}
	if !slices.Equal(got, []uuid.UUID{sleeping, executing}) {
		q.Fatalf("claimed %v", got)
	}
	q.parkRuns(q.afterStart(time.Minute), sleeping)
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 1, MaxInProgress: 2}})
	fresh := q.start("")
	if got := q.claimRuns(q.afterStart(time.Second)); len(got) > 0 {
		q.Errorf("strays %v were claimed", got)
	}
	q.wantBegun("while one that was executing executes", q.afterStart(time.Second))
	q.wantState("executing", executing, store.PlaceExecuting, store.AdmissionGranted)
	q.wantState("asleep", sleeping, store.PlaceNotArrived, store.AdmissionPending)
	q.wantState("due", due, store.PlaceInLine, store.AdmissionInLine)
	q.finishRuns(executing)
	q.wantBegun("when it has ended", q.afterStart(time.Second), due)
	q.finishRuns(due)
	q.wantBegun("when that has ended", q.afterStart(time.Second), fresh)
	q.finishRuns(fresh)
	q.wantBegun("what had begun before", q.afterStart(time.Minute), sleeping)
}

// wantNoRow checks that the queue has no row, and that its live runs are free.
func (q *queueFixture) wantNoRow() {
	q.Helper()
	if row := q.queueRow(boundedQueue); row != nil {
		q.Errorf("the queue has a row: %+v", row)
	}
	for _, id := range q.runs {
		if p := q.placeOf(id); p != nil {
			q.Errorf("a run has a place: %+v", p)
		}
	}
}

func (q *queueFixture) delete() {
	q.Helper()
	if found, err := q.store.DeleteQueue(q.ctx, store.DeleteOrResetRequest{Name: boundedQueue, Now: q.now}); err != nil || !found {
		q.Fatalf("DeleteQueue: %v, %v", found, err)
	}
	q.queueDeleted = true
}

func admitDeleted(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1})
	r := q.starts(4, "a")
	asleep := q.start("", func(w *store.StartWrite) { w.Run.WakeAt = q.afterStart(time.Hour) })
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	q.delete()
	q.wantBegun("when the queue is deleted", q.afterStart(time.Second), r[1:]...)
	if row := q.queueRow(boundedQueue); row == nil || !row.Deleted {
		q.Errorf("the row of a queue in which a run has a place: %+v", row)
	}
	q.finishRuns(r[0])
	q.admitAll(q.afterStart(time.Second))
	q.wantNoRow()
	q.wantBegun("what slept", q.afterStart(time.Hour), asleep)
}

func admitDeletedStartBy(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	by := q.afterStart(time.Hour)
	first := q.start("a")
	lined := q.start("a", func(w *store.StartWrite) { w.Run.Control, w.Place.StartBy = store.HasStartBy, by })
	q.wantBegun("at first", q.afterStart(time.Second), first)
	asleep := q.start("b", func(w *store.StartWrite) {
		w.Run.WakeAt, w.Run.Control, w.Place.StartBy = q.afterStart(time.Minute), store.HasStartBy, by
	})
	q.delete()
	q.finishRuns(first)
	q.admitAll(q.afterStart(time.Second))
	if row := q.queueRow(boundedQueue); row != nil {
		q.Errorf("the queue has a row: %+v", row)
	}
	for _, id := range []uuid.UUID{lined, asleep} {
		if p := q.placeOf(id); p == nil || !p.StartBy.Equal(by) || p.Admission != store.AdmissionNotNeeded {
			q.Errorf("a run that has to begin by a time has the place %+v", p)
		}
	}
	q.wantBegun("without a row", q.afterStart(time.Minute), lined, asleep)
	for _, id := range []uuid.UUID{lined, asleep} {
		if kept, err := q.store.ClearStartByDeadline(q.ctx, id, q.row(id).Epoch); err != nil || !kept {
			q.Errorf("StartByKept: %v, %v", kept, err)
		}
	}
	q.wantNoRow()
}

func admitSetAgainInLine(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(3, "a")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 3}}) // there would be room now
	q.delete()
	q.admitAll(q.afterStart(time.Second))
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 3}})
	q.queueDeleted = false
	q.finishRuns(r[0])
	q.admitAll(q.afterStart(time.Second))
}

func admitSetAgain(b *fixture) {
	one := store.QueueSettings{MaxInProgress: 1}
	q := b.newQueueFixture(one)
	r := q.starts(2, "a")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	q.parkRuns(q.afterStart(2*time.Second), r[0])
	q.delete()
	q.wantBegun("when the queue is deleted", q.afterStart(time.Second), r[1])
	q.parkRuns(q.afterStart(time.Minute), r[1])
	q.admitAll(q.afterStart(time.Second))
	q.wantNoRow()
	q.wantBegun("without a row", q.afterStart(2*time.Second), r[0])
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: one})
	q.queueDeleted = false
	for p := q.placeOf(r[1]); p == nil || p.State == store.PlaceGone; p = q.placeOf(r[1]) { // it takes effect within a second
		q.admitAll(q.afterStart(2 * time.Second))
	}
	fresh := q.start("a")
	q.wantBegun("while two are open", q.afterStart(2*time.Second))
	q.wantState("executing", r[0], store.PlaceExecuting, store.AdmissionGranted)
	q.wantBegun("when the other wakes", q.afterStart(time.Minute), r[1])
	q.finishRuns(r[0])
	q.wantBegun("while one is open", q.afterStart(time.Minute))
	q.finishRuns(r[1])
	q.wantBegun("when none is open", q.afterStart(time.Minute), fresh)
}

func admitWithoutRow(b *fixture) {
	q := &queueFixture{fixture: b, queueDeleted: true, departedRuns: make(map[uuid.UUID]bool)}
	r := q.starts(2, "a") // started by a process that did not know that the queue was deleted
	if rows, err := b.store.QueueRows(b.ctx); err != nil || len(rows) != 1 || rows[0].Name != boundedQueue || !rows[0].Deleted {
		b.Fatalf("a queue without a row whose runs wait: %+v, %v", rows, err)
	}
	q.wantBegun("although there is no row", q.afterStart(time.Second), r...)
	q.wantNoRow()
}

func admitLeftOut(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{})
	r := q.starts(2, "")
	stranger := q.commitPendingRun("stranger", q.now)
	q.admitAll(q.afterStart(time.Second))
	query := q.query(q.afterStart(time.Second))
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, []string{boundedQueue}, nil)
	q.claimOne(query, stranger.UUID)
	q.wantBegun("of a worker that takes from the queue", q.afterStart(time.Second), r...)
}

func admitRandom(b *fixture) {
	x := rand.New(rand.NewPCG(7, 11))
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 3, MaxInProgress: 6, MaxExecutingPerKey: 2, MaxInProgressPerKey: 3})
	at := q.afterStart(time.Second)
	executing := make(map[uuid.UUID]bool)
	claim := func() {
		for _, id := range q.claimRuns(at) {
			executing[id] = true
		}
		if len(executing) > 3 {
			q.Fatalf("%d runs execute at once", len(executing))
		}
	}
	order := func(verb store.ControlVerb, id uuid.UUID) {
		o := q.newControlRequest(verb, id)
		o.Now = at
		q.controlRuns(o)
	}
	for range testsize.Of(60, 25) {
		live := q.liveRuns()
		n := x.IntN(10)
		if n < 4 || len(live) == 0 {
			q.start([]string{"", "a", "b"}[x.IntN(3)], withPriority(int16(x.IntN(5)-2)))
			n = -1
		}
		var id uuid.UUID
		if n >= 0 {
			id = live[x.IntN(len(live))]
		}
		switch {
		case n < 0:
		case executing[id] && n < 7:
			q.finishRuns(id)
			delete(executing, id)
		case executing[id]:
			q.parkRuns(at.Add(time.Duration(x.IntN(3))*time.Second), id)
			delete(executing, id)
		case n == 4:
			order(store.VerbTerminate, id)
		case n == 5:
			order(store.VerbPause, id)
		default:
			order(store.VerbResume, id)
		}
		at = at.Add(time.Duration(x.IntN(1000)) * time.Millisecond)
		q.admitAll(at)
		claim()
	}
	for range 200 {
		live := q.liveRuns()
		if len(live) == 0 {
			break
		}
		for _, id := range live {
			switch {
			case executing[id]:
				q.finishRuns(id)
				delete(executing, id)
			default:
				order(store.VerbResume, id)
			}
		}
		at = at.Add(time.Second)
		q.admitAll(at)
		claim()
	}
	q.admitAll(at)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("the queue never became empty: %+v", use)
	}
}
