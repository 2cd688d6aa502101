package storetest

import (
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// controlAt makes a control request at a time. A resume moves the timers.
func (q *queueFixture) controlAt(at time.Time, verb store.ControlVerb, runs ...uuid.UUID) {
	q.Helper()
	o := q.newControlRequest(verb, runs...)
	o.Now, o.ShiftTimers = at, verb == store.VerbResume
	q.controlRuns(o)
}

func admitShiftedTimers(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 1})
	deadline := func(w *store.StartWrite) { w.Run.Deadline = q.afterStart(time.Hour) }
	first, seen, unseen := q.start("", deadline), q.start("", deadline), q.start("", deadline)
	q.admitAll(q.afterStart(time.Second))
	q.controlAt(q.afterStart(10*time.Minute), store.VerbPause, seen)
	q.admitAll(q.afterStart(10 * time.Minute))
	q.wantState("paused in line", seen, store.PlaceNotArrived, store.AdmissionPending)
	q.controlAt(q.afterStart(20*time.Minute), store.VerbPause, unseen, first) // no admission sees this pause
	q.controlAt(q.afterStart(40*time.Minute), store.VerbResume, first, seen, unseen)
	q.checkCounts()
	if a := q.admitAll(q.afterStart(40 * time.Minute)); !a.NextPassAt.Equal(q.afterStart(80 * time.Minute)) {
		q.Errorf("the next pass is after %v, want the first deadline, 20 minutes later than it was", a.NextPassAt.Sub(q.now))
	}
	q.wantState("resumed where it was admitted", first, store.PlaceExecuting, store.AdmissionGranted)
	q.wantState("resumed outside of the line", seen, store.PlaceInLine, store.AdmissionInLine)
	q.wantState("resumed in line", unseen, store.PlaceInLine, store.AdmissionInLine)
	q.wantBegun("after the old deadlines", q.afterStart(70*time.Minute), first)
	q.wantBegun("at the first deadline", q.afterStart(80*time.Minute), unseen)
	q.wantBegun("before the second deadline", q.afterStart(89*time.Minute))
	q.wantBegun("at the second deadline", q.afterStart(90*time.Minute), seen)
	q.finishRuns(first, seen, unseen)
	q.admitAll(q.afterStart(90 * time.Minute))
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitEndedLeases(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 2, MaxInProgress: 2})
	r := q.starts(4, "a")
	q.admitAll(q.afterStart(time.Second))
	query := q.query(q.afterStart(time.Second))
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, nil, nil)
	if got := q.claim(query).Runs; len(got) != 2 {
		q.Fatalf("claimed %v, want two", describeClaims(got))
	}
	later := q.query(q.afterStart(2 * time.Second))
	later.LeaseUntil = q.afterStart(24 * time.Hour)
	if n := q.endLeases(later, query.Worker); n != 2 {
		q.Fatalf("%d leases ended, want 2", n)
	}
	q.admitAll(q.afterStart(2 * time.Second))
	for _, id := range r[:2] {
		q.wantState("of a dead worker", id, store.PlaceExecuting, store.AdmissionGranted)
	}
	q.wantBegun("after the end of the leases", q.afterStart(2*time.Second), r[0], r[1])
	q.finishRuns(r[0])
	q.wantBegun("when one has ended", q.afterStart(2*time.Second), r[2])
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{Executing: 2, InProgress: 2, Waiting: 1, WaitingForKey: use.WaitingForKey}) {
		q.Errorf("the queue counts %+v", use)
	}
}

// wantCounts compares the counts of a queue and its keys with the places of the runs.
func (q *queueFixture) wantCounts(queue string) {
	q.Helper()
	var want store.QueueUse
	for _, id := range q.runs {
		p := q.placeOf(id)
		if p == nil || p.Queue != queue {
			continue
		}
		countPlace(&want, p)
	}
	if got := q.queueInfo(queue).QueueUse; got != want {
		q.Fatalf("queue %q counts %+v, its places are %+v", queue, got, want)
	}
	q.checkKeys(queue)
}

// requeueAgainstAll moves runs and changes their priorities while others pause, resume, cancel and claim them, and
// pause and delete the queues.
func requeueAgainstAll(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 4, MaxInProgressPerKey: 2})
	queues := []string{boundedQueue, "elsewhere"}
	settings := map[string]store.QueueSettings{boundedQueue: {MaxExecuting: 4, MaxInProgressPerKey: 2}, "elsewhere": {MaxInProgress: 3}}
	q.changeQueue(store.QueueChangeRequest{Name: queues[1], Settings: settings[queues[1]]})
	for i := range 24 {
		q.start([]string{"a", "b", "c"}[i%3])
	}
	at := q.afterStart(time.Second)
	failed := func(what string, err error) bool {
		if err != nil && !errors.Is(err, store.ErrUnavailable) && !errors.Is(err, store.ErrLocked) {
			q.Errorf("%s: %v", what, err)
		}
		return err != nil
	}
	admit := func(queue string) bool {
		a := &store.AdmissionRequest{Queue: queue, Now: at, CloseDurationAfterRewind: time.Minute}
		return failed("Admit", q.store.AdmitRuns(q.ctx, a)) || a.HasMoreWork || a.QueueLocked
	}
	claim := func() (got []uuid.UUID) {
		query := q.query(at)
		query.QueueRules = store.NewQueueClaimRules(queues, nil, nil)
		result, err := q.store.Claim(q.ctx, query)
		failed("Claim", err)
		for _, c := range result.Runs {
			got = append(got, c.Run.UUID)
		}
		return got
	}
	var wg sync.WaitGroup
	repeatedly := func(seed uint64, f func(x *rand.Rand, id uuid.UUID)) {
		wg.Go(func() {
			x := rand.New(rand.NewPCG(seed, 3))
			for range 20 {
				f(x, q.runs[x.IntN(len(q.runs))])
			}
		})
	}
	repeatedly(1, func(x *rand.Rand, id uuid.UUID) {
		p := int16(x.IntN(5) - 2)
		failed("MoveRun", q.store.MoveRun(q.ctx, &store.MoveRunRequest{Run: id, Queue: queues[x.IntN(2)], NeedsPlace: true, Priority: &p, Now: at}))
	})
	repeatedly(2, func(x *rand.Rand, id uuid.UUID) {
		o := q.newControlRequest([]store.ControlVerb{store.VerbPause, store.VerbResume, store.VerbPause, store.VerbResume, store.VerbCancel, store.VerbTerminate}[x.IntN(6)], id)
		o.Now = at
		failed("Control", q.store.ControlRuns(q.ctx, o))
	})
	repeatedly(3, func(x *rand.Rand, _ uuid.UUID) { admit(queues[x.IntN(2)]) })
	repeatedly(4, func(x *rand.Rand, _ uuid.UUID) {
		name := queues[x.IntN(2)]
		switch x.IntN(4) {
		case 0:
			_, err := q.store.DeleteQueue(q.ctx, store.DeleteOrResetRequest{Name: name, Now: q.now})
			failed("DeleteQueue", err)
		case 1:
			failed("ChangeQueue", q.store.ChangeQueue(q.ctx, store.QueueChangeRequest{Name: name, Settings: settings[name], Now: at}))
		default:
			_, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: name, Now: at, Resume: x.IntN(2) == 0})
			failed("PauseQueue", err)
		}
	})
	repeatedly(5, func(x *rand.Rand, _ uuid.UUID) {
		if x.IntN(5) == 0 {
			claim()
		}
	})
	wg.Wait()
	for _, name := range queues {
		q.changeQueue(store.QueueChangeRequest{Name: name, Settings: settings[name], Now: at})
		if _, err := q.store.PauseQueue(q.ctx, store.QueuePauseRequest{Name: name, Resume: true}); err != nil {
			q.Fatal(err)
		}
	}
	for began := time.Now(); ; {
		live := slices.DeleteFunc(slices.Clone(q.runs), func(id uuid.UUID) bool { return q.row(id).Status.IsTerminal() })
		for _, id := range live {
			switch row := q.row(id); {
			case row.Status == store.Paused:
				q.controlAt(at, store.VerbResume, id)
			case row.Status == store.Running && row.Control&store.CancelRequested != 0:
				end := q.newCompletion(id, row.Epoch)
				end.Status, end.Output = store.Cancelled, nil
				wantOutcome(q.fixture, "the cancelled end", q.commitOwnershipEnd(end).Outcome, store.Written)
			case row.Status == store.Running && row.Control&store.PausedMask == 0:
				q.finishRuns(id)
			case row.Status == store.Running:
				q.controlAt(at, store.VerbResume, id)
			}
		}
		at = at.Add(2 * time.Second)
		for more := true; more; {
			more = admit(queues[0])
			more = admit(queues[1]) || more
		}
		for _, name := range queues {
			q.wantCounts(name)
		}
		switch {
		case len(live) == 0:
			for _, name := range queues {
				if use := q.queueInfo(name).QueueUse; use != (store.QueueUse{}) {
					q.Errorf("queue %q is empty and counts %+v", name, use)
				}
			}
			return
		case time.Since(began) > 20*time.Second: // runs that entered a queue without settings are looked for each store.StrayCheckInterval
			q.Fatalf("%d runs never end, such as %+v with the place %+v", len(live), q.row(live[0]), q.placeOf(live[0]))
		}
		claim()
	}
}
