package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// claimsWithoutRoom claims what a worker takes that executes as many runs of the queue as it may.
func (q *queueFixture) claimsWithoutRoom(at time.Time) (claimed []store.ClaimedRun) {
	q.Helper()
	query := q.query(at)
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, []string{boundedQueue}, nil)
	return q.claim(query).Runs
}

func admitWithoutRoom(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 5})
	r := q.starts(5, "")
	q.wantBegun("at first", q.afterStart(time.Second), r...)
	asleep, admitted, seen, dead, other := r[0], r[1], r[2], r[3], r[4]
	q.parkRuns(q.afterStart(time.Hour), asleep)
	q.parkRuns(q.afterStart(2*time.Second), admitted, other)
	q.admitAll(q.afterStart(2 * time.Second)) // both are admitted again
	q.parkRuns(q.afterStart(time.Hour), seen)
	late := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.afterStart(3 * time.Second) })
	q.controlExistingRuns(store.VerbCancel, asleep, admitted, seen, dead)
	at := q.afterStart(2 * time.Hour) // the leases are over
	q.wantState("cancelled where it was admitted", admitted, store.PlaceExecuting, store.AdmissionBypassed)
	q.wantState("cancelled before an admission has seen that it waits", seen, store.PlaceExecuting, store.AdmissionBypassed)
	q.admitAll(at)
	q.wantState("cancelled while it slept", asleep, store.PlaceBypassed, store.AdmissionBypassed)
	q.wantState("expiring", late, store.PlaceBypassed, store.AdmissionBypassed)
	query := q.query(at)
	query.QueueRules = store.NewClaimRulesForExpiredRuns([]string{boundedQueue})
	if expired := q.claim(query).Runs; len(expired) != 1 || expired[0].Run.UUID != late || !expired[0].BypassesQueue {
		q.Errorf("a worker without a slot claims %+v, want the run that was never executed and whose time is over", expired)
	}
	got := map[uuid.UUID]bool{late: true}
	for _, c := range q.claimsWithoutRoom(at) {
		if got[c.Run.UUID] = true; !c.BypassesQueue {
			q.Errorf("the claimed run %s does not pass", c.Run.Name)
		}
	}
	want := map[uuid.UUID]bool{asleep: true, admitted: true, seen: true, dead: true, late: true}
	for _, id := range q.runs {
		if got[id] != want[id] {
			q.Errorf("run %d: a worker without room claims it: %v, want %v", slices.Index(q.runs, id), got[id], want[id])
		}
	}
	q.checkCounts()
	rest := q.claim(q.query(at)).Runs
	if len(rest) != 1 || rest[0].Run.UUID != other || rest[0].BypassesQueue {
		q.Errorf("a worker with room claims %+v, want the run that was not cancelled", rest)
	}
	for _, id := range []uuid.UUID{asleep, admitted, seen, dead} {
		end := q.newCompletion(id, q.row(id).Epoch)
		end.Status, end.Output = store.Cancelled, nil
		wantOutcome(q.fixture, "the cancelled end", q.commitOwnershipEnd(end).Outcome, store.Written)
	}
	q.finishRuns(late, other)
	q.admitAll(at)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitEnding(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(3, "")
	failed, asleep, next := r[0], r[1], r[2]
	q.wantBegun("at first", q.afterStart(time.Second), failed, asleep)
	end := b.completed(failed, q.row(failed).Epoch, store.EndRecordName)
	end.Kind, end.Status, end.Error = store.KindRunEnd, store.StepFailed, []byte(`{"message":"no"}`)
	wantOutcome(b, "the record of the end", b.commitStep(end, false).Outcome, store.Written)
	q.parkRuns(q.afterStart(3*time.Second), failed, asleep) // a compensation has failed, and is called again later
	full := q.starts(1, "")[0]
	q.wantBegun("while both wait", q.afterStart(2*time.Second), next, full)
	q.admitAll(q.afterStart(3 * time.Second))
	q.wantState("ending", failed, store.PlaceBypassed, store.AdmissionBypassed)
	q.wantState("asleep before", asleep, store.PlaceInLine, store.AdmissionInLine)
	q.checkCounts()
	claimed := q.claimsWithoutRoom(q.afterStart(3 * time.Second))
	if len(claimed) != 1 || claimed[0].Run.UUID != failed || !claimed[0].BypassesQueue {
		q.Errorf("a worker without room claims %+v, want the run that ends", claimed)
	}
}

// claimsWhilePaused claims what a worker takes that knows of the pause of the queue.
func (q *queueFixture) claimsWhilePaused(at time.Time) (claimed []uuid.UUID) {
	q.Helper()
	query := q.query(at)
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, nil, []string{boundedQueue})
	for _, c := range q.claim(query).Runs {
		claimed = append(claimed, c.Run.UUID)
	}
	return claimed
}

func admitClaimsWhilePaused(b *fixture) {
	q := b.newQueueFixture(store.QueueSettings{})
	r := q.starts(2, "")
	q.wantBegun("at first", q.afterStart(time.Second), r...)
	q.parkRuns(q.afterStart(2*time.Second), r[0])
	late := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.afterStart(time.Second) })
	fresh := q.starts(2, "")
	q.admitAll(q.afterStart(2 * time.Second))
	at := q.afterStart(2 * time.Hour) // the lease of r[1] is over
	want := []uuid.UUID{r[0], r[1], late}
	got := q.claimsWhilePaused(at)
	slices.SortFunc(got, store.CompareUUIDsByShard)
	slices.SortFunc(want, store.CompareUUIDsByShard)
	if !slices.Equal(got, want) {
		q.Errorf("claimed %v in a paused queue, want what has begun and what passes: %v", got, want)
	}
	if got := q.claimRuns(at); len(got) != len(fresh) {
		q.Errorf("claimed %v when the queue is resumed, want %v", got, fresh)
	}
}
