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
func (b *fixture) requeue(m *store.MoveRunRequest) *store.MoveRunRequest {
	b.Helper()
	if m.Now.IsZero() {
		m.Now = b.now
	}
	for {
		err := b.store.MoveRun(b.ctx, m)
		if err == nil {
			return m
		}
		if b.ctx.Err() != nil || !errors.Is(err, store.ErrLocked) && !errors.Is(err, store.ErrUnavailable) {
			b.Fatalf("Requeue: %v", err)
		}
	}
}

func (b *fixture) moved(run uuid.UUID, queue string, gated bool) {
	b.Helper()
	wantOutcome(b, "the move", b.requeue(&store.MoveRunRequest{Run: run, Queue: queue, NeedsPlace: gated}).Outcome, store.Written)
}

func (b *fixture) prioritized(run uuid.UUID, p int16) {
	b.Helper()
	wantOutcome(b, "the change of the priority", b.requeue(&store.MoveRunRequest{Run: run, Priority: &p}).Outcome, store.Written)
}

func requeueFree(b *fixture) {
	first, second, third := b.commitPendingRun("first", b.now), b.commitPendingRun("second", b.now), b.commitPendingRun("third", b.now)
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
		b.Errorf("a run of another queue was claimed: %v", describeClaims(got.Runs))
	}
	b.claimOne(b.query(b.now), second.UUID)
}

func requeueEvents(b *fixture) {
	r := b.commitPendingRun("r", b.now)
	p := int16(1)
	m := &store.MoveRunRequest{Run: r.UUID, Queue: "elsewhere", Priority: &p, Actor: "ada", Reason: "the tenant has paid"}
	for range 2 {
		wantOutcome(b, "the change", b.requeue(m).Outcome, store.Written)
	}
	b.wantEvents("r moved", "r priority changed")
	for _, e := range b.events("", 2) {
		want := [2]string{r.Queue, "elsewhere"}
		if e.Type == store.EventPriorityChanged {
			want = [2]string{"0", "1"}
		}
		if e.Actor != "ada" || e.Reason != "the tenant has paid" || [2]string{e.OldValue, e.NewValue} != want {
			b.Errorf("the event is %+v, want %q", e, want)
		}
	}
	if m.FoundRun == nil || m.FoundRun.Name != "elsewhere" || m.FoundRun.RowPriority != 1 {
		b.Errorf("the repeated change has found %+v", m.FoundRun)
	}
}

func requeueRefused(b *fixture) {
	running, waiting, held := b.commitRunningRun("running"), b.commitRunningRun("waiting"), b.commitRunningRun("pending again")
	b.commitOwnershipEnd(b.park(waiting, b.afterStart(time.Hour)))
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: held.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now})
	ended, cancelled := b.commitRunningRun("ended"), b.commitPendingRun("cancelled", b.now)
	b.commitOwnershipEnd(b.newCompletion(ended.UUID, epochAt(1)))
	b.controlExistingRuns(store.VerbCancel, cancelled.UUID)
	overdue := b.newPendingRun("overdue", b.afterStart(-time.Hour))
	overdue.Deadline = b.afterStart(-time.Minute)
	b.commitStart(overdue)
	late := b.newQueuedStart("late", boundedQueue, "")
	late.Run.Admission, late.Run.Control, late.Place.StartBy = store.AdmissionNotNeeded, store.HasStartBy, b.afterStart(-time.Minute)
	b.commit(&store.Batch{Starts: []*store.StartWrite{late}})
	p := int16(1)
	for _, r := range []store.Run{running, waiting, held, ended, cancelled, overdue, late.Run} {
		before := fmt.Sprintf("%+v", b.row(r.UUID))
		m := b.requeue(&store.MoveRunRequest{Run: r.UUID, Queue: "elsewhere", Priority: &p})
		if m.Outcome != store.Fenced || m.FoundRun == nil {
			b.Errorf("%s was changed: %+v", r.Name, m)
		}
		if after := fmt.Sprintf("%+v", b.row(r.UUID)); after != before {
			b.Errorf("%s was\n%s, and is\n%s", r.Name, before, after)
		}
	}
	if m := b.requeue(&store.MoveRunRequest{Run: uuid.New(), Queue: "elsewhere"}); m.Outcome != store.Fenced || m.FoundRun != nil {
		b.Errorf("a run that does not exist: %+v", m)
	}
	b.wantEvents("ended completed", "cancelled cancelled")
}

func requeueLined(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	r := q.starts(5, "")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	q.prioritized(r[4], 2)
	q.prioritized(r[1], -2)
	q.wantState("until an admission sees it", r[4], store.PlaceNotArrived, store.AdmissionPending)
	q.checkCounts()
	q.checkKeys(boundedQueue)
	for i, want := range []int{4, 2, 3, 1} {
		q.finishRuns(r[[]int{0, 4, 2, 3}[i]])
		q.wantBegun("next", q.afterStart(time.Second), r[want])
	}
}

func requeueAdmittedPriority(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(2, "")
	q.admitAll(q.afterStart(time.Second))
	q.prioritized(r[1], 2)
	q.wantState("admitted", r[1], store.PlaceExecuting, store.AdmissionGranted)
	q.admitAll(q.afterStart(time.Second))
	query := q.query(q.afterStart(time.Second))
	query.Limit, query.QueueRules = 1, store.NewQueueClaimRules([]string{boundedQueue}, nil, nil)
	q.claimOne(query, r[1])
	q.claimOne(query, r[0])
	q.finishRuns(r...)
	q.admitAll(q.afterStart(time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func requeueAdmittedMoves(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1, MaxInProgressPerKey: 1})
	r := q.starts(2, "a")
	q.admitAll(q.afterStart(time.Second))
	q.wantState("before", r[0], store.PlaceExecuting, store.AdmissionGranted)
	q.changeQueue(store.QueueChangeRequest{Name: "elsewhere"})
	q.moved(r[0], "elsewhere", true)
	if p := q.placeOf(r[0]); p == nil || p.Queue != "elsewhere" || p.Key != "a" || p.HasBegun || p.State != store.PlaceNotArrived {
		q.Errorf("the place in the new queue is %+v", p)
	}
	q.runs = r[1:]
	q.wantBegun("the next of its key", q.afterStart(time.Second), r[1])
	q.checkKeys(boundedQueue)
	if err := q.store.AdmitRuns(q.ctx, &store.AdmissionRequest{Queue: "elsewhere", Now: q.afterStart(time.Second), CloseDurationAfterRewind: time.Minute}); err != nil {
		q.Fatal(err)
	}
	if u := q.queueInfo("elsewhere").QueueUse; u != (store.QueueUse{Executing: 1, InProgress: 1}) {
		q.Errorf("the new queue counts %+v", u)
	}
	q.finishRuns(r[1])
}

func requeueLinedMoves(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1, MaxInProgressPerKey: 1})
	other := q.start("other")
	r := q.starts(3, "a")
	q.wantBegun("at first", q.afterStart(time.Second), other)
	q.wantState("in line", r[0], store.PlaceInLine, store.AdmissionInLine)
	q.wantState("behind its key", r[2], store.PlaceBehindKey, store.AdmissionInLine)
	q.moved(r[0], "elsewhere", false)
	q.moved(r[2], "elsewhere", false)
	q.admitAll(q.afterStart(time.Second))
	q.checkKeys(boundedQueue)
	q.wantState("the next", r[1], store.PlaceInLine, store.AdmissionInLine)
	q.wantState("moved", r[0], store.PlaceGone, store.AdmissionNotNeeded)
	query := q.query(q.afterStart(time.Second))
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, nil, nil)
	if got := q.claim(query).Runs; len(got) != 2 {
		q.Errorf("claimed %v, want the two that have moved", describeClaims(got))
	}
	q.finishRuns(other)
	q.wantBegun("when there is room", q.afterStart(time.Second), r[1])
}

func requeueOutAndIn(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	by := q.afterStart(time.Hour)
	first := q.start("")
	r := q.start("k", func(w *store.StartWrite) { w.Run.Control, w.Place.StartBy = store.HasStartBy, by })
	stray := q.start("", withoutPlace)
	q.wantBegun("at first", q.afterStart(time.Second), first)
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
	q.wantState("back", r, store.PlaceNotArrived, store.AdmissionPending)
	if p := q.placeOf(r); p.Key != "k" || !p.StartBy.Equal(by) || p.Queue != boundedQueue {
		q.Errorf("its place is %+v", p)
	}
	if p := q.placeOf(stray); p == nil || !p.Root || p.Weight != 1 {
		q.Errorf("the place of a run that had none is %+v", p)
	}
	if n, err := q.store.QueueDepth(q.ctx, boundedQueue, 10); err != nil || n != 2 {
		q.Errorf("%d runs wait, %v; want 2", n, err)
	}
	q.wantBegun("while the first executes", q.afterStart(time.Second))
	q.finishRuns(first)
	q.wantBegun("when it has ended", q.afterStart(time.Second), r)
	q.finishRuns(r)
	q.wantBegun("then", q.afterStart(time.Second), stray)
}

func requeuePaused(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1, MaxInProgress: 1})
	r := q.starts(2, "")
	q.admitAll(q.afterStart(time.Second))
	q.controlExistingRuns(store.VerbPause, r[0]) // it counts as open
	q.admitAll(q.afterStart(time.Second))
	if u := q.queueInfo(boundedQueue).QueueUse; u != (store.QueueUse{InProgress: 1, Waiting: 1}) {
		q.Fatalf("the queue counts %+v", u)
	}
	q.prioritized(r[0], 1)
	q.moved(r[0], "elsewhere", false)
	if row := q.row(r[0]); row.Status != store.Paused || !row.WakeAt.IsZero() {
		q.Errorf("the moved run is %+v", row)
	}
	q.wantBegun("when it has moved", q.afterStart(time.Minute), r[1])
	q.controlExistingRuns(store.VerbResume, r[0])
	q.claimOne(q.query(q.afterStart(time.Minute)), r[0])
}

func requeueDelayed(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{})
	r := q.start("", func(w *store.StartWrite) {
		w.Run.WakeAt, w.Run.Deadline = q.afterStart(time.Hour), q.afterStart(2*time.Hour)
	})
	q.admitAll(q.afterStart(time.Second))
	q.moved(r, "elsewhere", false)
	q.prioritized(r, -1)
	q.moved(r, boundedQueue, true)
	if row := q.row(r); !row.WakeAt.Equal(q.afterStart(time.Hour)) || !row.Deadline.Equal(q.afterStart(2*time.Hour)) {
		q.Errorf("the delayed run is due at %v, and expires at %v", row.WakeAt, row.Deadline)
	}
	q.wantBegun("before it is due", q.afterStart(time.Minute))
	q.wantBegun("when it is due", q.afterStart(time.Hour), r)
}

func requeueChild(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxInProgress: 1})
	root := q.start("")
	q.wantBegun("the parent", q.afterStart(time.Second), root)
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
	if err := q.store.AdmitRuns(q.ctx, &store.AdmissionRequest{Queue: "elsewhere", Now: q.afterStart(time.Minute), CloseDurationAfterRewind: time.Minute}); err != nil {
		q.Fatal(err)
	}
	if u := q.queueInfo("elsewhere").QueueUse; u != (store.QueueUse{Executing: 2}) {
		q.Errorf("children that have moved count as %+v", u)
	}
}
