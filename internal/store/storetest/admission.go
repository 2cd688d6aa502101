package storetest

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

var admissions = []test{
	{"no more runs execute than the bound allows", admitExecuting},
	{"higher priorities come first, and keys take turns", admitOrder},
	{"a run that waits gives its place to execute back, and stays open", admitOpen},
	{"one open run of a key at a time, in order of start", admitKeyOpen},
	{"no more runs begin than the rate allows", admitRate},
	{"no more runs begin than the rate allows when workers were busy", admitRateWhileBusy},
	{"a raised rate applies at once", admitRateRaised},
	{"an urgent run passes those of its key in line", admitUrgentOfKey},
	{"a clock that goes back delays no run, and wakes none too early", admitClockBack},
	{"nothing of a paused queue begins, and what has begun goes on", admitPaused},
	{"changed settings apply to those that wait behind their keys", admitSettings},
	{"a paused run gives its place back, and comes again", admitPausedRun},
	{"a cancelled run in line ends without a place", admitCancelled},
	{"a terminated run gives its place back", admitTerminated},
	{"a run in line expires without a place", admitExpired},
	{"a deadline that is set in line holds", admitDeadline},
	{"children need no place to be open", admitChildren},
	{"strays arrive, and are adopted", admitStrays},
	{"a deleted queue lets everything through", admitDeleted},
	{"a run that has to begin by a time keeps it when its queue is deleted", admitDeletedStartBy},
	{"a deleted queue does not let a run through that waits for its start key", admitDeletedUnreleased},
	{"a run that waits for its start key arrives in a queue that was set again", admitSetAgainUnreleased},
	{"runs of a queue without a row are let through", admitWithoutRow},
	{"those in line are counted once when their queue is deleted and set again", admitSetAgainInLine},
	{"what had begun before its queue was deleted counts when the queue is set again", admitSetAgain},
	{"idle runs that began before their queue had settings count", admitIdle},
	{"idle runs count by their keys when their queue is set again", admitIdleOfKey},
	{"idle runs count when their queue gets a bound on runs in progress", admitIdleBounded},
	{"a run that became idle in a deleted queue counts when the queue is set again", admitIdleOfDeletedQueue},
	{"a run that a process without the queue's row began counts although it is idle", admitIdleLate},
	{"a worker takes nothing from a queue that it leaves out", admitLeftOut},
	{"a worker without room takes runs that are cancelled or that expire", admitWithoutRoom},
	{"a run that has failed needs no place to execute its compensations", admitEnding},
	{"a claim begins no run of a paused queue", admitClaimsWhilePaused},
	{"a pause takes back what was admitted and is not claimed", admitPauseTakesBack},
	{"a lowered bound takes back what was admitted and is not claimed", admitLoweredTakesBack},
	{"a run that was admitted expires although no worker has room", admitLateWithoutRoom},
	{"a run whose function was never called has not begun", admitClaimedInVain},
	{"a fork that no worker has claimed has not begun", admitForkPaused},
	{"a resume that moves timers keeps places and lines", admitShiftedTimers},
	{"runs of a dead worker keep their places", admitEndedLeases},
	{"two admissions at once exceed no bound", admitTwice},
	{"counts equal places after random operations", admitRandom},
}

// queueFixture is a queue with settings, and its runs.
type queueFixture struct {
	*fixture
	runs         []uuid.UUID        // in the order of their starts
	queueDeleted bool               // the queue has no row, or was deleted
	departedRuns map[uuid.UUID]bool // runs that have ended and no place any more
}

const boundedQueue = "mail"

func (b *fixture) newQueueFixture(s store.QueueSettings) *queueFixture {
	b.Helper()
	b.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: s})
	return &queueFixture{fixture: b, departedRuns: make(map[uuid.UUID]bool)}
}

// start starts a run that is due a microsecond after the run before it.
func (q *queueFixture) start(key string, change ...func(*store.StartWrite)) uuid.UUID {
	q.Helper()
	w := q.newQueuedStart(fmt.Sprint("run-", len(q.runs)), boundedQueue, key)
	w.Run.WakeAt = q.afterStart(time.Duration(len(q.runs)) * time.Microsecond)
	for _, f := range change {
		f(w)
	}
	w.Run.CreatedAt = w.Run.WakeAt
	q.commit(&store.Batch{Starts: []*store.StartWrite{w}})
	wantOutcome(q.fixture, "start of "+w.Run.Name, w.Outcome, store.Written)
	q.runs = append(q.runs, w.Run.UUID)
	return w.Run.UUID
}

func (q *queueFixture) starts(n int, key string) (all []uuid.UUID) {
	q.Helper()
	for range n {
		all = append(all, q.start(key))
	}
	return all
}

func withPriority(n int16) func(*store.StartWrite) {
	return func(w *store.StartWrite) { w.Run.Priority, w.Place.Priority = n, n }
}

func withoutPlace(w *store.StartWrite) { w.Run.Admission, w.Place = store.AdmissionNotNeeded, nil }

// admitAll makes passes until there is nothing more to do at the time, and checks the counts.
func (q *queueFixture) admitAll(at time.Time) (last store.AdmissionRequest) {
	q.Helper()
	for range 1000 {
		last = store.AdmissionRequest{Queue: boundedQueue, Now: at, CloseDurationAfterRewind: time.Minute}
		if err := q.store.AdmitRuns(q.ctx, &last); err != nil {
			q.Fatalf("Admit: %v", err)
		}
		if !last.HasMoreWork && !last.QueueLocked {
			q.checkCounts()
			return last
		}
	}
	q.Fatalf("the admission never ends: %+v", last)
	return last
}

// checkCounts compares the counts of the queue with the places of its runs.
func (q *queueFixture) checkCounts() {
	q.Helper()
	var want store.QueueUse
	rows := q.get(q.names()...)
	for i, id := range q.runs {
		if q.departedRuns[id] {
			continue
		}
		p := q.placeOf(id)
		if p == nil {
			q.departedRuns[id] = rows[i] != nil && rows[i].Status.IsTerminal()
			continue
		}
		countPlace(&want, p)
	}
	if info := q.queueInfo(boundedQueue); info != nil && info.QueueUse != want {
		q.Fatalf("the queue counts %+v, its places are %+v", info.QueueUse, want)
	}
}

// countPlace counts a place as the queue does.
func countPlace(use *store.QueueUse, p *store.QueuedRun) {
	switch p.State {
	case store.PlaceExecuting:
		use.Executing++
	case store.PlaceInLine:
		use.Waiting++
	case store.PlaceBehindKey:
		use.Waiting++
		use.WaitingForKey++
	}
	if p.Root && p.HasBegun {
		use.InProgress++
	}
}

// names returns the references of the runs for get.
func (q *queueFixture) names() (all []string) {
	for _, id := range q.runs {
		all = append(all, id.String())
	}
	return all
}

// liveRuns returns the runs that have not ended.
func (q *queueFixture) liveRuns() (ids []uuid.UUID) {
	q.Helper()
	for _, row := range q.get(q.names()...) {
		if !row.Status.IsTerminal() {
			ids = append(ids, row.UUID)
		}
	}
	return ids
}

// claimRuns claims what it can.
func (q *queueFixture) claimRuns(at time.Time) (ids []uuid.UUID) {
	q.Helper()
	query := q.query(at)
	if !q.queueDeleted {
		query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, nil, nil)
	}
	for _, c := range q.claim(query).Runs {
		ids = append(ids, c.Run.UUID)
	}
	return ids
}

// wantBegun admits and claims, and compares the claimed runs, which may have any order.
func (q *queueFixture) wantBegun(what string, at time.Time, want ...uuid.UUID) {
	q.Helper()
	q.admitAll(at)
	got := q.claimRuns(at)
	slices.SortFunc(got, store.CompareUUIDsByShard)
	want = slices.Clone(want)
	slices.SortFunc(want, store.CompareUUIDsByShard)
	if !slices.Equal(got, want) {
		names := func(ids []uuid.UUID) (n []int) {
			for _, id := range ids {
				n = append(n, slices.Index(q.runs, id))
			}
			slices.Sort(n)
			return n
		}
		q.Fatalf("%s: runs %v begin, want %v", what, names(got), names(want))
	}
}

func (q *queueFixture) finishRuns(ids ...uuid.UUID) {
	q.Helper()
	for _, id := range ids {
		wantOutcome(q.fixture, "end", q.commitOwnershipEnd(q.newCompletion(id, q.row(id).Epoch)).Outcome, store.Written)
	}
}

// parkRuns makes running runs wait until the time, or for an event.
func (q *queueFixture) parkRuns(at time.Time, ids ...uuid.UUID) {
	q.Helper()
	for _, id := range ids {
		wantOutcome(q.fixture, "wait", q.commitOwnershipEnd(q.park(q.row(id), at)).Outcome, store.Written)
	}
}

func (q *queueFixture) wantState(what string, id uuid.UUID, want store.PlaceState, admission store.AdmissionState) {
	q.Helper()
	p := q.placeOf(id)
	if p == nil {
		p = &store.QueuedRun{}
	}
	if p.State != want || want != store.PlaceGone && p.Admission != admission {
		q.Errorf("%s: the place is in state %d at admission %d, want %d at %d", what, p.State, p.Admission, want, admission)
	}
}

func admitExecuting(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(5, "")
	if got := q.claimRuns(q.afterStart(time.Second)); len(got) > 0 {
		q.Fatalf("%v were claimed without a place", got)
	}
	q.wantBegun("at first", q.afterStart(time.Second), r[0], r[1])
	q.wantBegun("while they execute", q.afterStart(time.Second))
	q.wantState("in line", r[2], store.PlaceInLine, store.AdmissionInLine)
	if before := q.placeOf(r[4]).RunsAhead; before != 2 {
		q.Errorf("%d runs are before the last of three in line", before)
	}
	q.finishRuns(r[0])
	q.wantBegun("when one has ended", q.afterStart(time.Second), r[2])
	q.finishRuns(r[1], r[2])
	q.wantBegun("when two have ended", q.afterStart(time.Second), r[3], r[4])
	q.finishRuns(r[3], r[4])
	q.admitAll(q.afterStart(2 * time.Second))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitOrder(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	large := q.starts(20, "large")
	q.admitAll(q.afterStart(time.Second))
	small := q.start("small")
	urgent := q.start("large", withPriority(2))
	var order []uuid.UUID
	for range 6 {
		q.admitAll(q.afterStart(time.Second))
		got := q.claimRuns(q.afterStart(time.Second))
		if len(got) != 1 {
			q.Fatalf("%d runs execute at once", len(got))
		}
		q.finishRuns(got...)
		order = append(order, got...)
	}
	if order[0] != large[0] || order[1] != urgent || slices.Index(order, small) < 0 {
		q.Errorf("%v began: want the first, the urgent one, and soon the one of the small key", order)
	}
}

func admitOpen(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1, MaxInProgress: 2})
	r := q.starts(4, "")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	q.parkRuns(q.afterStart(time.Minute), r[0])
	q.wantBegun("while the first sleeps", q.afterStart(time.Second), r[1])
	q.parkRuns(time.Time{}, r[1])
	q.wantBegun("while two are open", q.afterStart(time.Second))
	q.wantState("asleep", r[0], store.PlaceNotArrived, store.AdmissionPending)
	a := q.admitAll(q.afterStart(10 * time.Second)) // when the searches for idle runs are over
	if !a.NextPassAt.Equal(q.afterStart(time.Minute)) {
		q.Errorf("the next pass is at %v, want the time at which the first is due", a.NextPassAt)
	}
	q.wantBegun("when it is due", q.afterStart(time.Minute), r[0])
	q.finishRuns(r[0])
	q.wantBegun("when it has ended", q.afterStart(time.Minute), r[2])
	q.finishRuns(r[2])
	q.wantBegun("when the next has ended", q.afterStart(time.Minute), r[3])
}

func admitKeyOpen(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxInProgressPerKey: 1})
	a, c := q.starts(testsize.Of(30, 8), "a"), q.starts(2, "c")
	other, at := c[0], q.afterStart(time.Second)
	for i, id := range a {
		want := []uuid.UUID{id}
		if i < len(c) {
			want = append(want, c[i])
		}
		q.wantBegun(fmt.Sprint("order ", i), at, want...)
		if i == 0 {
			q.parkRuns(q.afterStart(time.Minute), other)
			q.wantBegun("while one of the other key sleeps", q.afterStart(time.Second))
			at = q.afterStart(time.Minute)
			q.wantBegun("when it wakes", at, other)
			q.finishRuns(other)
		}
		q.finishRuns(id)
	}
}

func admitRate(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{Rate: store.Rate{Count: 2, Period: time.Second, Burst: 1}})
	r := q.starts(3, "")
	q.wantBegun("at first", q.afterStart(time.Second), r[0])
	a := q.admitAll(q.afterStart(time.Second))
	if !a.NextPassAt.Equal(q.afterStart(1500 * time.Millisecond)) {
		q.Errorf("the next pass is %v later, want half a second", a.NextPassAt.Sub(q.afterStart(time.Second)))
	}
	q.wantBegun("too early", q.afterStart(1499*time.Millisecond))
	q.wantBegun("in time", q.afterStart(1500*time.Millisecond), r[1])
	q.parkRuns(q.afterStart(1600*time.Millisecond), r[1])
	q.wantBegun("what has begun takes no rate", q.afterStart(1600*time.Millisecond), r[1])
	q.wantBegun("a clock that goes back", q.afterStart(0))
	q.wantBegun("later", q.afterStart(time.Minute), r[2])
}

func admitPaused(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{})
	begun := q.start("")
	q.wantBegun("at first", q.afterStart(time.Second), begun)
	q.parkRuns(q.afterStart(2*time.Second), begun)
	if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Now: q.now}); err != nil {
		q.Fatal(err)
	}
	fresh := q.start("")
	q.wantBegun("in a paused queue", q.afterStart(2*time.Second), begun)
	if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: boundedQueue, Resume: true}); err != nil {
		q.Fatal(err)
	}
	q.wantBegun("when it is resumed", q.afterStart(2*time.Second), fresh)
}

func admitSettings(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxInProgressPerKey: 1})
	a, c := q.starts(3, "a"), q.starts(3, "c")
	q.wantBegun("at first", q.afterStart(time.Second), a[0], c[0])
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue, Settings: store.QueueSettings{MaxInProgressPerKey: 2}})
	q.wantBegun("when two may be open", q.afterStart(time.Second), a[1], c[1])
	q.changeQueue(store.QueueChangeRequest{Name: boundedQueue})
	q.wantBegun("without a bound", q.afterStart(time.Second), a[2], c[2])
}

func admitTwice(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 3})
	q.starts(60, "")
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 5 {
				if err := q.store.AdmitRuns(q.ctx, &store.AdmissionRequest{Queue: boundedQueue, Now: q.afterStart(time.Second), CloseDurationAfterRewind: time.Minute}); err != nil {
					q.Errorf("Admit: %v", err)
				}
			}
		})
	}
	wg.Wait()
	q.wantBegun("after concurrent passes", q.afterStart(time.Second), q.runs[:3]...)
}
