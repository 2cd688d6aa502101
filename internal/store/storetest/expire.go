package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var expiries = []test{
	{"only the dead worker's runs become claimable", expireDead},
	{"the pairs given", expireBounds},
	{"a worker that leaves is gone at once", expireSelf},
	{"nobody to expire", expireNobody},
}

func (b *fixture) endLeases(q store.ClaimQuery, workers ...uuid.UUID) int {
	b.Helper()
	n, err := b.store.EndLeases(b.ctx, workers, q)
	if err != nil {
		b.Fatalf("Expire: %v", err)
	}
	return n
}

// owned commits a running run of the worker. Its lease of half an hour ends before the leases of
// all queries in this file.
func (b *fixture) owned(worker uuid.UUID, name string) store.Run {
	b.Helper()
	r := b.newRunningRun(name)
	r.Owner, r.WakeAt = owner(worker), b.afterStart(30*time.Minute)
	wantOutcome(b, "start of "+name, b.commitStart(r).Outcome, store.Written)
	return r
}

func expireDead(b *fixture) {
	dead, alive := uuid.New(), uuid.New()
	kept := b.owned(alive, "alive's")
	waiting := b.owned(dead, "dead's, waiting")
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: waiting.UUID, Epoch: epochAt(1), Status: store.Waiting, WakeAt: b.afterStart(20 * time.Minute)})
	finished := b.owned(dead, "dead's, finished")
	b.commitOwnershipEnd(b.newCompletion(finished.UUID, epochAt(1)))
	one, two := b.owned(dead, "one"), b.owned(dead, "two")
	q := b.query(b.now)
	if n := b.endLeases(q, dead, uuid.New()); n != 2 {
		b.Errorf("freed %d runs, want 2", n)
	}
	got := b.claim(q)
	var claimed []uuid.UUID
	for _, c := range got.Runs {
		claimed = append(claimed, c.Run.UUID)
		if c.Run.Epoch != epochAt(2) || c.Run.Owner != owner(q.Worker) {
			b.Errorf("%s: epoch %s, owner %s, want 2 and %s", c.Run.Name, c.Run.Epoch, show(c.Run.Owner), q.Worker)
		}
	}
	wantUUIDs(b, "claimed after the expiry", claimed, []uuid.UUID{one.UUID, two.UUID})
	wantRun(b, "the living worker's run", b.row(kept.UUID), kept)
	wantOutcome(b, "a step of the dead worker", b.commitStep(b.completed(one.UUID, epochAt(1), "late"), false).Outcome, store.Fenced)
	if n := b.endLeases(q, dead); n != 0 {
		b.Errorf("a second expiry freed %d runs, want 0", n)
	}
}

// expireBounds checks that a store releases the dead worker's runs of the given pairs. It may
// release the worker's other runs too.
func expireBounds(b *fixture) {
	dead := uuid.New()
	other := b.newRunningRun("another workflow's")
	other.Owner, other.WakeAt, other.Workflow = owner(dead), b.afterStart(30*time.Minute), "other"
	b.commitStart(other)
	mine := b.owned(dead, "mine")
	q := b.query(b.now)
	if n := b.endLeases(q, dead); n != 1 && n != 2 {
		b.Errorf("freed %d runs, want 1, or 2", n)
	}
	if got := b.row(other.UUID); got.Status != store.Running || got.Epoch != other.Epoch || got.Owner != other.Owner {
		b.Errorf("another workflow's run: got %+v, want at most its wake time changed", got)
	}
	b.claimOne(q, mine.UUID)
}

func expireSelf(b *fixture) {
	mine := b.owned(b.worker, "mine")
	other := b.heartbeat()
	other.Worker.ID = uuid.New()
	b.renew(other)
	b.renew(b.heartbeat())
	q := b.query(b.now)
	q.Worker = b.worker
	if n := b.endLeases(q, b.worker); n != 1 {
		b.Errorf("freed %d runs, want 1", n)
	}
	if got := b.workers(); len(got) != 1 || got[0].ID != other.Worker.ID {
		b.Errorf("workers after one has left: got %v, want %s alone", got, other.Worker.ID)
	}
	b.claimOne(b.query(b.now), mine.UUID)
}

func expireNobody(b *fixture) {
	r := b.owned(b.worker, "mine")
	for name, workers := range map[string][]uuid.UUID{"none": nil, "a stranger": {uuid.New()}} {
		if n := b.endLeases(b.query(b.now), workers...); n != 0 {
			b.Errorf("%s: freed %d runs, want 0", name, n)
		}
	}
	wantRun(b, "the run", b.row(r.UUID), r)
}
