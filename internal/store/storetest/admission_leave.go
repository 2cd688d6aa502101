package storetest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

func admitPausedRun(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(3, "")
	q.admit(q.in(time.Second))
	q.ordered(store.VerbPause, r[0], r[1]) // one with a place, and one in line
	q.begins("when two are paused", q.in(20*time.Second), r[2])
	q.wantState("paused", r[1], store.PlaceOutside, store.AdmissionPending)
	q.ordered(store.VerbResume, r[0], r[1])
	q.begins("while another executes", q.in(20*time.Second))
	q.ends(r[2])
	q.begins("when it has ended", q.in(20*time.Second), r[0])
	q.ordered(store.VerbPause, r[1])
	q.ordered(store.VerbResume, r[1]) // no admission has seen the pause
	q.ends(r[0])
	q.begins("paused and resumed in line", q.in(20*time.Second), r[1])
}

func admitCancelled(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(3, "")
	q.begins("at first", q.in(time.Second), r[0])
	q.waits(q.in(2*time.Second), r[0])
	q.begins("while it sleeps", q.in(time.Second), r[1])
	q.admit(q.in(2 * time.Second)) // the first is in line again
	q.wantState("awake", r[0], store.PlaceInLine, store.AdmissionInLine)
	q.ordered(store.VerbCancel, r[0], r[2])
	if s := q.row(r[2]).Status; s != store.Cancelled {
		q.Errorf("a cancelled run that has not begun is %v", s)
	}
	q.begins("to compensate", q.in(20*time.Second), r[0])
	q.wantState("cancelled in line", r[2], store.PlaceGone, store.AdmissionNotNeeded)
	q.wantState("compensating", r[0], store.PlacePassing, store.AdmissionBypassed)
	end := q.finish(r[0], q.row(r[0]).Epoch)
	end.Status, end.Output = store.Cancelled, nil
	wantOutcome(b, "the cancelled end", q.commitRun(end).Outcome, store.Written)
	q.ends(r[1])
	q.admit(q.in(20 * time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitTerminated(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(5, "")
	q.begins("at first", q.in(time.Second), r[0], r[1])
	q.ordered(store.VerbTerminate, r[0], r[2])
	q.begins("when one of them was terminated, and one in line", q.in(20*time.Second), r[3])
}

func admitExpired(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	first := q.start("")
	late := q.start("", func(w *store.StartWrite) { w.Place.StartBy = q.in(time.Minute) })
	overdue := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.in(30 * time.Second) })
	patient := q.start("", func(w *store.StartWrite) { w.Place.StartBy = q.in(time.Hour) })
	q.begins("at first", q.in(time.Second), first)
	a := q.admit(q.in(time.Second))
	if !a.NextPassAt.Equal(q.in(30 * time.Second)) {
		q.Errorf("the next pass is after %v, want the first deadline", a.NextPassAt.Sub(q.now))
	}
	q.begins("at the deadline", q.in(30*time.Second), overdue)
	q.begins("when it should have begun", q.in(time.Minute), late)
	q.wantState("expiring", late, store.PlacePassing, store.AdmissionBypassed)
	q.ends(first)
	q.begins("when there is room", q.in(2*time.Minute), patient)
}

func admitClockBack(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(2, "")
	q.begins("at first", q.in(time.Hour), r...)
	q.ends(r[0])
	q.waits(q.in(2*time.Second), r[1])
	fresh := q.start("")
	q.begins("when the clock went back", q.in(time.Second), fresh)
	q.begins("when the time of the other has come", q.in(2*time.Second), r[1])
	overdue := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.in(time.Minute) })
	q.admit(q.in(3 * time.Second))
	q.wantState("before its deadline", overdue, store.PlaceInLine, store.AdmissionInLine)
	q.begins("at its deadline", q.in(time.Minute), overdue)
}

func admitDeadline(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(2, "")
	q.begins("at first", q.in(time.Second), r[0])
	wantOutcome(b, "the deadline", q.setDeadline(r[1], q.in(time.Minute)).Outcome, store.Written)
	if a := q.admit(q.in(2 * time.Second)); !a.NextPassAt.Equal(q.in(time.Minute)) {
		q.Errorf("the next pass is after %v, want the deadline", a.NextPassAt.Sub(q.now))
	}
	q.begins("at the deadline", q.in(time.Minute), r[1])
}

func admitChildren(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1})
	r := q.starts(2, "")
	q.begins("at first", q.in(time.Second), r[0])
	parent := q.row(r[0])
	child := q.child(parent, "child")
	child.Queue, child.Admission = boundedQueue, store.AdmissionPending
	w := &store.StartWrite{Run: child, ParentEpoch: parent.Epoch, Place: &store.QueuePlace{Run: child.UUID, Queue: boundedQueue, Weight: 1}}
	q.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	q.runs = append(q.runs, child.UUID)
	q.begins("while its parent executes", q.in(time.Second))
	q.waits(time.Time{}, parent.UUID)
	q.begins("when its parent waits for it", q.in(time.Second), child.UUID)
	wantOutcome(b, "the child's end", q.commitRun(q.childEnd(q.row(child.UUID))).Outcome, store.Written)
	q.begins("when the child has ended", q.in(time.Minute), parent.UUID)
	q.ends(parent.UUID)
	q.begins("when the parent has ended", q.in(time.Minute), r[1])
}

func admitStrays(b *bed) {
	q := &queueBed{bed: b, left: make(map[uuid.UUID]bool)}
	sleeping, executing, due := q.start("", withoutPlace), q.start("", withoutPlace), q.start("", withoutPlace)
	query := q.query(q.in(time.Second))
	query.Limit = 2
	var got []uuid.UUID
	for _, c := range q.claim(query).Runs {
		got = append(got, c.Run.UUID)
	}
	if !slices.Equal(got, []uuid.UUID{sleeping, executing}) {
		q.Fatalf("claimed %v", got)
	}
	q.waits(q.in(time.Minute), sleeping)
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 1, MaxInProgress: 2}})
	fresh := q.start("")
	if got := q.claims(q.in(time.Second)); len(got) > 0 {
		q.Errorf("strays %v were claimed", got)
	}
	q.begins("while one that was executing executes", q.in(time.Second))
	q.wantState("executing", executing, store.PlaceExecuting, store.AdmissionGranted)
	q.wantState("asleep", sleeping, store.PlaceOutside, store.AdmissionPending)
	q.wantState("due", due, store.PlaceInLine, store.AdmissionInLine)
	q.ends(executing)
	q.begins("when it has ended", q.in(time.Second), due)
	q.ends(due)
	q.begins("when that has ended", q.in(time.Second), fresh)
	q.ends(fresh)
	q.begins("what had begun before", q.in(time.Minute), sleeping)
}

// withoutRow checks that the queue has no row, and that its live runs are free.
func (q *queueBed) withoutRow() {
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

func (q *queueBed) delete() {
	q.Helper()
	if found, err := q.s.DeleteQueue(q.ctx, store.OperatorRequest{Name: boundedQueue, Now: q.now}); err != nil || !found {
		q.Fatalf("DeleteQueue: %v, %v", found, err)
	}
	q.gone = true
}

func admitDeleted(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1})
	r := q.starts(4, "a")
	asleep := q.start("", func(w *store.StartWrite) { w.Run.WakeAt = q.in(time.Hour) })
	q.begins("at first", q.in(time.Second), r[0])
	q.delete()
	q.begins("when the queue is deleted", q.in(time.Second), r[1:]...)
	if row := q.queueRow(boundedQueue); row == nil || !row.Deleted {
		q.Errorf("the row of a queue in which a run has a place: %+v", row)
	}
	q.ends(r[0])
	q.admit(q.in(time.Second))
	q.withoutRow()
	q.begins("what slept", q.in(time.Hour), asleep)
}

func admitDeletedStartBy(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	by := q.in(time.Hour)
	first := q.start("a")
	lined := q.start("a", func(w *store.StartWrite) { w.Run.Control, w.Place.StartBy = store.HasStartBy, by })
	q.begins("at first", q.in(time.Second), first)
	asleep := q.start("b", func(w *store.StartWrite) {
		w.Run.WakeAt, w.Run.Control, w.Place.StartBy = q.in(time.Minute), store.HasStartBy, by
	})
	q.delete()
	q.ends(first)
	q.admit(q.in(time.Second))
	if row := q.queueRow(boundedQueue); row != nil {
		q.Errorf("the queue has a row: %+v", row)
	}
	for _, id := range []uuid.UUID{lined, asleep} {
		if p := q.placeOf(id); p == nil || !p.StartBy.Equal(by) || p.Admission != store.AdmissionNotNeeded {
			q.Errorf("a run that has to begin by a time has the place %+v", p)
		}
	}
	q.begins("without a row", q.in(time.Minute), lined, asleep)
	for _, id := range []uuid.UUID{lined, asleep} {
		if kept, err := q.s.StartByKept(q.ctx, id, q.row(id).Epoch); err != nil || !kept {
			q.Errorf("StartByKept: %v, %v", kept, err)
		}
	}
	q.withoutRow()
}

func admitSetAgainInLine(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(3, "a")
	q.begins("at first", q.in(time.Second), r[0])
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 3}}) // there would be room now
	q.delete()
	q.admit(q.in(time.Second))
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxExecuting: 3}})
	q.gone = false
	q.ends(r[0])
	q.admit(q.in(time.Second))
}

func admitSetAgain(b *bed) {
	one := store.QueueSettings{MaxInProgress: 1}
	q := b.bounded(one)
	r := q.starts(2, "a")
	q.begins("at first", q.in(time.Second), r[0])
	q.waits(q.in(2*time.Second), r[0])
	q.delete()
	q.begins("when the queue is deleted", q.in(time.Second), r[1])
	q.waits(q.in(time.Minute), r[1])
	q.admit(q.in(time.Second))
	q.withoutRow()
	q.begins("without a row", q.in(2*time.Second), r[0])
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: one})
	q.gone = false
	for p := q.placeOf(r[1]); p == nil || p.State == store.PlaceGone; p = q.placeOf(r[1]) { // it takes effect within a second
		q.admit(q.in(2 * time.Second))
	}
	fresh := q.start("a")
	q.begins("while two are open", q.in(2*time.Second))
	q.wantState("executing", r[0], store.PlaceExecuting, store.AdmissionGranted)
	q.begins("when the other wakes", q.in(time.Minute), r[1])
	q.ends(r[0])
	q.begins("while one is open", q.in(time.Minute))
	q.ends(r[1])
	q.begins("when none is open", q.in(time.Minute), fresh)
}

func admitWithoutRow(b *bed) {
	q := &queueBed{bed: b, gone: true, left: make(map[uuid.UUID]bool)}
	r := q.starts(2, "a") // started by a process that did not know that the queue was deleted
	if rows, err := b.s.QueueRows(b.ctx); err != nil || len(rows) != 1 || rows[0].Name != boundedQueue || !rows[0].Deleted {
		b.Fatalf("a queue without a row whose runs wait: %+v, %v", rows, err)
	}
	q.begins("although there is no row", q.in(time.Second), r...)
	q.withoutRow()
}

func admitLeftOut(b *bed) {
	q := b.bounded(store.QueueSettings{})
	r := q.starts(2, "")
	stranger := q.queued("stranger", q.now)
	q.admit(q.in(time.Second))
	query := q.query(q.in(time.Second))
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, []string{boundedQueue}, nil)
	q.claimOne(query, stranger.UUID)
	q.begins("of a worker that takes from the queue", q.in(time.Second), r...)
}

func admitRandom(b *bed) {
	x := rand.New(rand.NewPCG(7, 11))
	q := b.bounded(store.QueueSettings{MaxExecuting: 3, MaxInProgress: 6, MaxExecutingPerKey: 2, MaxInProgressPerKey: 3})
	at := q.in(time.Second)
	executing := make(map[uuid.UUID]bool)
	claim := func() {
		for _, id := range q.claims(at) {
			executing[id] = true
		}
		if len(executing) > 3 {
			q.Fatalf("%d runs execute at once", len(executing))
		}
	}
	order := func(verb store.Verb, id uuid.UUID) {
		o := q.newOrder(verb, id)
		o.Now = at
		q.order(o)
	}
	for range testsize.Of(60, 25) {
		live := q.live()
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
			q.ends(id)
			delete(executing, id)
		case executing[id]:
			q.waits(at.Add(time.Duration(x.IntN(3))*time.Second), id)
			delete(executing, id)
		case n == 4:
			order(store.VerbTerminate, id)
		case n == 5:
			order(store.VerbPause, id)
		default:
			order(store.VerbResume, id)
		}
		at = at.Add(time.Duration(x.IntN(1000)) * time.Millisecond)
		q.admit(at)
		claim()
	}
	for range 200 {
		live := q.live()
		if len(live) == 0 {
			break
		}
		for _, id := range live {
			switch {
			case executing[id]:
				q.ends(id)
				delete(executing, id)
			default:
				order(store.VerbResume, id)
			}
		}
		at = at.Add(time.Second)
		q.admit(at)
		claim()
	}
	q.admit(at)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("the queue never became empty: %+v", use)
	}
}
