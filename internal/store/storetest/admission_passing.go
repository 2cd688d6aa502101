package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// claimsWithoutRoom claims what a worker takes that executes as many runs of the queue as it may.
func (q *queueBed) claimsWithoutRoom(at time.Time) (claimed []store.ClaimedRun) {
	q.Helper()
	query := q.query(at)
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, []string{boundedQueue}, nil)
	return q.claim(query).Runs
}

func admitWithoutRoom(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 5})
	r := q.starts(5, "")
	q.begins("at first", q.in(time.Second), r...)
	asleep, admitted, seen, dead, other := r[0], r[1], r[2], r[3], r[4]
	q.waits(q.in(time.Hour), asleep)
	q.waits(q.in(2*time.Second), admitted, other)
	q.admit(q.in(2 * time.Second)) // both are admitted again
	q.waits(q.in(time.Hour), seen)
	late := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.in(3 * time.Second) })
	q.ordered(store.VerbCancel, asleep, admitted, seen, dead)
	at := q.in(2 * time.Hour) // the leases are over
	q.wantState("cancelled where it was admitted", admitted, store.PlaceExecuting, store.AdmissionBypassed)
	q.wantState("cancelled before an admission has seen that it waits", seen, store.PlaceExecuting, store.AdmissionBypassed)
	q.admit(at)
	q.wantState("cancelled while it slept", asleep, store.PlacePassing, store.AdmissionBypassed)
	q.wantState("expiring", late, store.PlacePassing, store.AdmissionBypassed)
	query := q.query(at)
	query.QueueRules = store.NewExpiredClaimRules([]string{boundedQueue})
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
		end := q.finish(id, q.row(id).Epoch)
		end.Status, end.Output = store.Cancelled, nil
		wantOutcome(q.bed, "the cancelled end", q.commitRun(end).Outcome, store.Written)
	}
	q.ends(late, other)
	q.admit(at)
	if use := q.queueInfo(boundedQueue).QueueUse; use != (store.QueueUse{}) {
		q.Errorf("an empty queue counts %+v", use)
	}
}

func admitEnding(b *bed) {
	q := b.bounded(store.QueueSettings{MaxExecuting: 2})
	r := q.starts(3, "")
	failed, asleep, next := r[0], r[1], r[2]
	q.begins("at first", q.in(time.Second), failed, asleep)
	end := b.completed(failed, q.row(failed).Epoch, store.EndRecordName)
	end.Kind, end.Status, end.Error = store.KindFailure, store.StepFailed, []byte(`{"message":"no"}`)
	wantOutcome(b, "the record of the end", b.commitStep(end, false).Outcome, store.Written)
	q.waits(q.in(3*time.Second), failed, asleep) // a compensation has failed, and is called again later
	full := q.starts(1, "")[0]
	q.begins("while both wait", q.in(2*time.Second), next, full)
	q.admit(q.in(3 * time.Second))
	q.wantState("ending", failed, store.PlacePassing, store.AdmissionBypassed)
	q.wantState("asleep before", asleep, store.PlaceInLine, store.AdmissionInLine)
	q.checkCounts()
	claimed := q.claimsWithoutRoom(q.in(3 * time.Second))
	if len(claimed) != 1 || claimed[0].Run.UUID != failed || !claimed[0].BypassesQueue {
		q.Errorf("a worker without room claims %+v, want the run that ends", claimed)
	}
}

// claimsWhilePaused claims what a worker takes that knows of the pause of the queue.
func (q *queueBed) claimsWhilePaused(at time.Time) (claimed []uuid.UUID) {
	q.Helper()
	query := q.query(at)
	query.QueueRules = store.NewQueueClaimRules([]string{boundedQueue}, nil, []string{boundedQueue})
	for _, c := range q.claim(query).Runs {
		claimed = append(claimed, c.Run.UUID)
	}
	return claimed
}

func admitClaimsWhilePaused(b *bed) {
	q := b.bounded(store.QueueSettings{})
	r := q.starts(2, "")
	q.begins("at first", q.in(time.Second), r...)
	q.waits(q.in(2*time.Second), r[0])
	late := q.start("", func(w *store.StartWrite) { w.Run.Deadline = q.in(time.Second) })
	fresh := q.starts(2, "")
	q.admit(q.in(2 * time.Second))
	at := q.in(2 * time.Hour) // the lease of r[1] is over
	want := []uuid.UUID{r[0], r[1], late}
	got := q.claimsWhilePaused(at)
	slices.SortFunc(got, store.CompareUUIDs)
	slices.SortFunc(want, store.CompareUUIDs)
	if !slices.Equal(got, want) {
		q.Errorf("claimed %v in a paused queue, want what has begun and what passes: %v", got, want)
	}
	if got := q.claims(at); len(got) != len(fresh) {
		q.Errorf("claimed %v when the queue is resumed, want %v", got, fresh)
	}
}
