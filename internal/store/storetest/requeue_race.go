package storetest

import (
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func requeueUnreleased(b *fixture) {
	b.changeQueue(store.QueueChangeRequest{Name: "elsewhere"})
	r := b.unreleased("waits")
	b.moved(r.UUID, "elsewhere", true)
	b.prioritized(r.UUID, 1)
	b.controlExistingRuns(store.VerbPause, r.UUID)
	b.controlExistingRuns(store.VerbResume, r.UUID)
	begins := func(at time.Time) (got []uuid.UUID) {
		for more := true; more; {
			a := &store.AdmissionRequest{Queue: "elsewhere", Now: at, CloseDurationAfterRewind: time.Minute}
			if err := b.store.AdmitRuns(b.ctx, a); err != nil {
				b.Fatal(err)
			}
			more = a.HasMoreWork
		}
		query := b.query(at)
		query.QueueRules = store.NewQueueClaimRules([]string{"elsewhere"}, nil, nil)
		for _, c := range b.claim(query).Runs {
			got = append(got, c.Run.UUID)
		}
		return got
	}
	if got := begins(b.afterStart(time.Second)); len(got) != 0 {
		b.Errorf("a run that is not released was claimed")
	}
	plans := 0
	_ = b.store.UpdateStartKeyRow(b.ctx, &store.StartKeyChangeRequest{Key: foldKey, Plan: func(s store.StartKeySnapshot) *store.StartKeyWrite {
		if plans++; plans > 1 {
			return nil
		}
		return &store.StartKeyWrite{Row: *s.Row, Release: &store.DelayedRunRelease{RunUUID: r.UUID, Queue: r.Queue, Lane: store.ClaimLaneOf(r.Queue, r.Workflow, r.Version, 0), WakeAt: b.now}}
	}})
	if row := b.row(r.UUID); !row.WakeAt.IsZero() {
		b.Errorf("a release for another queue has changed the run: %+v", row)
	}
	r.Queue, r.Priority, r.Admission = "elsewhere", 1, store.AdmissionPending
	if err := b.releaseFold(r, time.Time{}, nil); err != nil {
		b.Fatal(err)
	}
	if got := begins(b.afterStart(time.Minute)); !slices.Equal(got, []uuid.UUID{r.UUID}) {
		b.Errorf("claimed %v, want the released run", got)
	}
}

// checkKeys compares the counts of the keys of a queue with those of the queue.
func (q *queueFixture) checkKeys(queue string) {
	q.Helper()
	info := q.queueInfo(queue)
	var sum store.QueueUse
	for _, k := range info.Keys {
		sum.Executing, sum.InProgress, sum.Waiting, sum.WaitingForKey = sum.Executing+k.Executing, sum.InProgress+k.InProgress, sum.Waiting+k.Waiting, sum.WaitingForKey+k.WaitingForKey
		if k.Executing < 0 || k.InProgress < 0 || k.Waiting < 0 || k.WaitingForKey < 0 {
			q.Errorf("key %q of queue %q counts %+v", k.Key, queue, k.QueueUse)
		}
	}
	if len(info.Keys) > 0 && sum.WaitingForKey != info.WaitingForKey || sum.Executing > info.Executing || sum.InProgress > info.InProgress || sum.Waiting > info.Waiting {
		q.Errorf("the keys of queue %q count %+v, and the queue %+v", queue, sum, info.QueueUse)
	}
}

func requeueRace(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 4, MaxInProgressPerKey: 2})
	q.changeQueue(store.QueueChangeRequest{Name: "elsewhere", Settings: store.QueueSettings{MaxInProgress: 3}})
	for i := range 30 {
		q.start([]string{"a", "b", "c"}[i%3])
	}
	at := q.afterStart(time.Second)
	admit := func(queue string) bool {
		a := &store.AdmissionRequest{Queue: queue, Now: at, CloseDurationAfterRewind: time.Minute}
		if err := q.store.AdmitRuns(q.ctx, a); err != nil && !errors.Is(err, store.ErrUnavailable) {
			q.Errorf("Admit: %v", err)
		}
		return a.HasMoreWork || a.QueueLocked
	}
	var mu sync.Mutex
	claimed := make(map[uuid.UUID]string) // the queues in which the runs were claimed
	claim := func() {
		query := q.query(at)
		query.Limit, query.QueueRules = 2, store.NewQueueClaimRules([]string{boundedQueue, "elsewhere"}, nil, nil)
		got, err := q.store.Claim(q.ctx, query)
		if err != nil {
			q.Errorf("Claim: %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, c := range got.Runs {
			if claimed[c.Run.UUID] != "" {
				q.Errorf("run %s was claimed twice", c.Run.UUID)
			}
			claimed[c.Run.UUID] = c.Run.Queue
		}
	}
	var wg sync.WaitGroup
	for n := range 2 {
		wg.Go(func() {
			for i := range q.runs {
				id, p := q.runs[(i*7+n*11)%len(q.runs)], int16(i%5-2)
				q.requeue(&store.MoveRunRequest{Run: id, Queue: []string{"elsewhere", boundedQueue}[(i+n)%2], NeedsPlace: true, Priority: &p})
			}
		})
		wg.Go(func() {
			for range 15 {
				admit(boundedQueue)
				admit("elsewhere")
			}
		})
	}
	wg.Go(func() {
		for range 10 {
			claim()
		}
	})
	wg.Wait()
	all := q.runs
	for left := len(all); left > 0; {
		for more := true; more; {
			more = admit(boundedQueue)
			more = admit("elsewhere") || more
		}
		wants := make(map[string]store.QueueUse)
		for _, id := range all {
			p := q.placeOf(id)
			if p == nil {
				continue
			}
			want := wants[p.Queue]
			switch p.State {
			case store.PlaceExecuting:
				want.Executing++
			case store.PlaceInLine, store.PlaceBehindKey:
				want.Waiting++
			}
			if p.Root && p.HasBegun {
				want.InProgress++
			}
			wants[p.Queue] = want
		}
		for _, queue := range []string{boundedQueue, "elsewhere"} {
			want := wants[queue]
			got := q.queueInfo(queue).QueueUse
			got.WaitingForKey = 0
			if got != want {
				q.Fatalf("queue %q counts %+v, its places are %+v", queue, got, want)
			}
			q.checkKeys(queue)
		}
		claim()
		mu.Lock()
		if len(claimed) == 0 {
			q.Fatalf("%d runs are left that never begin", left)
		}
		for id, queue := range claimed {
			if row := q.row(id); row.Queue != queue {
				q.Errorf("run %s moved from queue %q to %q although it had begun", id, queue, row.Queue)
			}
			q.finishRuns(id)
			left--
		}
		clear(claimed)
		mu.Unlock()
	}
}
