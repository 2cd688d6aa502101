package storetest

import (
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var requeues = []test{
	{"a run that has not begun is claimed in the order of its new priority and queue", requeueFree},
	{"an event for each change, and none for a repeated one", requeueEvents},
	{"a run that has begun, has ended or expires stays as it is", requeueRefused},
	{"a run in line arrives again with its new priority", requeueLined},
	{"an admitted run keeps its place with its new priority", requeueAdmittedPriority},
	{"an admitted run that moves gives its place back", requeueAdmittedMoves},
	{"a run in line that moves lets the next of its key in", requeueLinedMoves},
	{"from a queue with settings to one without, and back", requeueOutAndIn},
	{"a paused run stays paused, and is due in its new queue", requeuePaused},
	{"a delayed run stays delayed", requeueDelayed},
	{"a child moves alone", requeueChild},
	{"a run that is not released stays so, and is released in its new queue", requeueUnreleased},
	{"counts equal places after concurrent moves, admissions and claims", requeueRace},
	{"counts equal places after moves against pauses, cancels and deletions of queues", requeueAgainstAll},
}

// requeue makes one change. It repeats it while others have locked the rows.
func (b *bed) requeue(m *store.QueueMove) *store.QueueMove {
	b.Helper()
	if m.Now.IsZero() {
		m.Now = b.now
	}
	for {
		err := b.s.MoveRun(b.ctx, m)
		if err == nil {
			return m
		}
		if b.ctx.Err() != nil || !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrUnavailable) {
			b.Fatalf("Requeue: %v", err)
		}
	}
}

func (b *bed) moved(run uuid.UUID, queue string, gated bool) {
	b.Helper()
	wantOutcome(b, "the move", b.requeue(&store.QueueMove{Run: run, Queue: queue, NeedsPlace: gated}).Outcome, store.Written)
}

func (b *bed) prioritized(run uuid.UUID, p int16) {
	b.Helper()
	wantOutcome(b, "the change of the priority", b.requeue(&store.QueueMove{Run: run, Priority: &p}).Outcome, store.Written)
}

func requeueFree(b *bed) {
	first, second, third := b.queued("first", b.now), b.queued("second", b.now), b.queued("third", b.now)
	b.prioritized(third.UUID, 2)
	b.prioritized(first.UUID, -1)
	b.moved(second.UUID, "elsewhere", false)
	if r := b.row(second.UUID); r.Queue != "elsewhere" || !r.WakeAt.Equal(b.now) {
		b.Errorf("the moved run is %+v", r)
	}
	if r := b.row(third.UUID); r.Priority != 2 {
		b.Errorf("the urgent run has priority %d", r.Priority)
	}
	here := b.query(b.now)
	here.Filter = store.NewClaimFilter([]string{"flow"}, []string{first.Queue})
	here.Limit = 1
	b.claimOne(here, third.UUID)
	b.claimOne(here, first.UUID)
	if got := b.claim(here); len(got.Runs) != 0 {
		b.Errorf("a run of another queue was claimed: %v", ids(got.Runs))
	}
	b.claimOne(b.query(b.now), second.UUID)
}

func requeueEvents(b *bed) {
	r := b.queued("r", b.now)
	p := int16(1)
	m := &store.QueueMove{Run: r.UUID, Queue: "elsewhere", Priority: &p, Actor: "ada", Reason: "the tenant has paid"}
	for range 2 {
		wantOutcome(b, "the change", b.requeue(m).Outcome, store.Written)
	}
	b.wantEvents("r moved", "r priority changed")
	for _, e := range b.events("", 2) {
		want := [2]string{r.Queue, "elsewhere"}
		if e.Type == store.EventPriorityChanged {
			want = [2]string{"0", "1"}
		}
		if e.Actor != "ada" || e.Reason != "the tenant has paid" || [2]string{e.Old, e.New} != want {
			b.Errorf("the event is %+v, want %q", e, want)
		}
	}
	if m.Found == nil || m.Found.Name != "elsewhere" || m.Found.RowPriority != 1 {
		b.Errorf("the repeated change has found %+v", m.Found)
	}
}

func requeueRefused(b *bed) {
	running, waiting, held := b.started("running"), b.started("waiting"), b.started("pending again")
	b.commitRun(b.park(waiting, b.in(time.Hour)))
	b.commitRun(store.OwnershipEnd{UUID: held.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now})
	ended, cancelled := b.started("ended"), b.queued("cancelled", b.now)
	b.commitRun(b.finish(ended.UUID, epochAt(1)))
	b.ordered(store.VerbCancel, cancelled.UUID)
	overdue := b.pending("overdue", b.in(-time.Hour))
	overdue.Deadline = b.in(-time.Minute)
	b.commitStart(overdue)
	late := b.arriving("late", boundedQueue, "")
	late.Run.Admission, late.Run.Control, late.Place.StartBy = store.AdmissionNotNeeded, store.HasStartBy, b.in(-time.Minute)
	b.commit(&store.Batch{Starts: []*store.StartWrite{late}})
	p := int16(1)
	for _, r := range []store.Run{running, waiting, held, ended, cancelled, overdue, late.Run} {
		before := fmt.Sprintf("%+v", b.row(r.UUID))
		m := b.requeue(&store.QueueMove{Run: r.UUID, Queue: "elsewhere", Priority: &p})
		if m.Outcome != store.Fenced || m.Found == nil {
			b.Errorf("%s was changed: %+v", r.Name, m)
		}
		if after := fmt.Sprintf("%+v", b.row(r.UUID)); after != before {
			b.Errorf("%s was\n%s, and is\n%s", r.Name, before, after)
		}
	}
	if m := b.requeue(&store.QueueMove{Run: uuid.New(), Queue: "elsewhere"}); m.Outcome != store.Fenced || m.Found != nil {
		b.Errorf("a run that does not exist: %+v", m)
	}
	b.wantEvents("ended completed", "cancelled cancelled")
}

func requeueLined(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(5, "")
	q.begins("at first", q.in(time.Second), r[0])
	q.prioritized(r[4], 2)
	q.prioritized(r[1], -2)
	q.wantState("until an admission sees it", r[4], store.PlaceOutside, store.AdmissionPending)
	q.checkCounts()
	q.checkKeys(boundedQueue)
	for i, want := range []int{4, 2, 3, 1} {
		q.ends(r[[]int{0, 4, 2, 3}[i]])
		q.begins("next", q.in(time.Second), r[want])
	}
}

func requeueAdmittedPriority(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(2, "")
	q.admit(q.in(time.Second))
	q.prioritized(r[1], 2)
	q.wantState("admitted", r[1], store.PlaceExecuting, store.AdmissionGranted)
	q.admit(q.in(time.Second))
	query := q.query(q.in(time.Second))
	query.Limit, query.QueueRules = 1, store.NewQueueClaimRules([]string{boundedQueue}, nil, nil)
	q.claimOne(query, r[1])
	q.claimOne(query, r[0])
	q.ends(r...)
	q.admit(q.in(time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func requeueAdmittedMoves(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1, MaxInProgressPerKey: 1})
	r := q.starts(2, "a")
	q.admit(q.in(time.Second))
	q.wantState("before", r[0], store.PlaceExecuting, store.AdmissionGranted)
	q.changeQueue(store.QueueChangeRequest{Name: "elsewhere"})
	q.moved(r[0], "elsewhere", true)
	if p := q.placeOf(r[0]); p == nil || p.Queue != "elsewhere" || p.Key != "a" || p.Begun || p.State != store.PlaceOutside {
		q.Errorf("the place in the new queue is %+v", p)
	}
	q.runs = r[1:]
	q.begins("the next of its key", q.in(time.Second), r[1])
	q.checkKeys(boundedQueue)
	if err := q.s.Admit(q.ctx, &store.QueueAdmission{Queue: "elsewhere", Now: q.in(time.Second), Lease: time.Minute}); err != nil {
		q.Fatal(err)
	}
	if u := q.queueInfo("elsewhere").QueueUse; u != (store.QueueUse{Executing: 1, Open: 1}) {
		q.Errorf("the new queue counts %+v", u)
	}
	q.ends(r[1])
}

func requeueLinedMoves(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1})
	other := q.start("other")
	r := q.starts(3, "a")
	q.begins("at first", q.in(time.Second), other)
	q.wantState("in line", r[0], store.PlaceInLine, store.AdmissionInLine)
	q.wantState("behind its key", r[2], store.PlaceBehind, store.AdmissionInLine)
	q.moved(r[0], "elsewhere", false)
	q.moved(r[2], "elsewhere", false)
	q.admit(q.in(time.Second))
	q.checkKeys(boundedQueue)
	q.wantState("the next", r[1], store.PlaceInLine, store.AdmissionInLine)
	q.wantState("moved", r[0], store.PlaceGone, store.AdmissionNotNeeded)
	query := q.query(q.in(time.Second))
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, nil, nil)
	if got := q.claim(query).Runs; len(got) != 2 {
		q.Errorf("claimed %v, want the two that have moved", ids(got))
	}
	q.ends(other)
	q.begins("when there is room", q.in(time.Second), r[1])
}

func requeueOutAndIn(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1})
	by := q.in(time.Hour)
	first := q.start("")
	r := q.start("k", func(w *store.StartWrite) { w.Run.Control, w.Place.StartBy = store.HasStartBy, by })
	stray := q.start("", withoutPlace)
	q.begins("at first", q.in(time.Second), first)
	q.moved(r, "elsewhere", false)
	if p := q.placeOf(r); p == nil || p.Queue != "elsewhere" || !p.StartBy.Equal(by) || p.Admission != store.AdmissionNotNeeded {
		q.Errorf("the place of a run that has to begin by a time is %+v", p)
	}
	if row := q.row(r); row.Control != store.HasStartBy || row.Queue != "elsewhere" {
		q.Errorf("it is %+v", row)
	}
	q.moved(stray, "elsewhere", false)
	q.checkCounts()
	q.moved(r, boundedQueue, true)
	q.moved(stray, boundedQueue, true)
	q.wantState("back", r, store.PlaceOutside, store.AdmissionPending)
	if p := q.placeOf(r); p.Key != "k" || !p.StartBy.Equal(by) || p.Queue != boundedQueue {
		q.Errorf("its place is %+v", p)
	}
	if p := q.placeOf(stray); p == nil || !p.Root || p.Weight != 1 {
		q.Errorf("the place of a run that had none is %+v", p)
	}
	if n, err := q.s.Depth(q.ctx, boundedQueue, 10); err != nil || n != 2 {
		q.Errorf("%d runs wait, %v; want 2", n, err)
	}
	q.begins("while the first executes", q.in(time.Second))
	q.ends(first)
	q.begins("when it has ended", q.in(time.Second), r)
	q.ends(r)
	q.begins("then", q.in(time.Second), stray)
}

func requeuePaused(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1})
	r := q.starts(2, "")
	q.admit(q.in(time.Second))
	q.ordered(store.VerbPause, r[0]) // it counts as open
	q.admit(q.in(time.Second))
	if u := q.queueInfo(boundedQueue).QueueUse; u != (store.QueueUse{Open: 1, Waiting: 1}) {
		q.Fatalf("the queue counts %+v", u)
	}
	q.prioritized(r[0], 1)
	q.moved(r[0], "elsewhere", false)
	if row := q.row(r[0]); row.Status != store.Paused || !row.WakeAt.IsZero() {
		q.Errorf("the moved run is %+v", row)
	}
	q.begins("when it has moved", q.in(time.Minute), r[1])
	q.ordered(store.VerbResume, r[0])
	q.claimOne(q.query(q.in(time.Minute)), r[0])
}

func requeueDelayed(b *bed) {
	q := b.bounded(store.QueueSettings{})
	r := q.start("", func(w *store.StartWrite) { w.Run.WakeAt, w.Run.Deadline = q.in(time.Hour), q.in(2*time.Hour) })
	q.admit(q.in(time.Second))
	q.moved(r, "elsewhere", false)
	q.prioritized(r, -1)
	q.moved(r, boundedQueue, true)
	if row := q.row(r); !row.WakeAt.Equal(q.in(time.Hour)) || !row.Deadline.Equal(q.in(2*time.Hour)) {
		q.Errorf("the delayed run is due at %v, and expires at %v", row.WakeAt, row.Deadline)
	}
	q.begins("before it is due", q.in(time.Minute))
	q.begins("when it is due", q.in(time.Hour), r)
}

func requeueChild(b *bed) {
	q := b.bounded(store.QueueSettings{MaxInProgress: 1})
	root := q.start("")
	q.begins("the parent", q.in(time.Second), root)
	parent := q.row(root)
	child := q.child(parent, "child")
	child.Queue, child.Admission = boundedQueue, store.AdmissionPending
	w := &store.StartWrite{Run: child, ParentEpoch: parent.Epoch, Place: &store.QueuePlace{Run: child.UUID, Queue: boundedQueue, Weight: 1}}
	q.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	stray := q.child(parent, "stray")
	stray.Queue = boundedQueue
	q.commit(&store.Batch{Starts: []*store.StartWrite{{Run: stray, ParentEpoch: parent.Epoch}}})
	q.changeQueue(store.QueueChangeRequest{Name: "elsewhere", Settings: store.QueueSettings{MaxInProgress: 1}})
	for _, id := range []uuid.UUID{child.UUID, stray.UUID} {
		q.moved(id, "elsewhere", true)
		if p := q.placeOf(id); p == nil || p.Root {
			q.Errorf("the place of a child is %+v", p)
		}
	}
	if err := q.s.Admit(q.ctx, &store.QueueAdmission{Queue: "elsewhere", Now: q.in(time.Minute), Lease: time.Minute}); err != nil {
		q.Fatal(err)
	}
	if u := q.queueInfo("elsewhere").QueueUse; u != (store.QueueUse{Executing: 2}) {
		q.Errorf("children that have moved count as %+v", u)
	}
}
