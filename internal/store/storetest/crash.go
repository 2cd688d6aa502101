package storetest

import (
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

var crashes = []test{
	{"lost leases are counted, and pause the run at the bound", crashBound},
	{"a new checkpoint starts the count again", crashProgress},
	{"a marker is no progress", crashMarker},
	{"leaving in order is no crash", crashOrderly},
	{"no bound", crashUnbounded},
	{"a bound of one", crashOne},
}

func crashBound(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	q.MaxCrashes = 3
	for crash := range int16(3) {
		got := b.claimOne(q, r.UUID)
		if got.Run.Status != store.Running || got.Run.Crashes != crash {
			b.Fatalf("claim %d: got %s with %d crashes, want running with %d", crash, got.Run.Status, got.Run.Crashes, crash)
		}
		if crash == 0 {
			b.commitStep(b.startedMarker(r.UUID, epochAt(1), 1, "deadly"), false)
		}
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	}
	got := b.claimOne(q, r.UUID)
	run := got.Run
	if run.Status != store.Paused || run.Crashes != 3 || run.PauseOrHoldReason != store.CrashedTooOftenReason(3) || run.Owner.Valid || !run.WakeAt.IsZero() || run.Epoch != epochAt(3) {
		b.Errorf("the claim after the third crash: got %s, %d crashes, reason %q, owner %s, wake %s, epoch %s;"+
			" want paused, 3, %q, NULL, no time, 3", run.Status, run.Crashes, run.PauseOrHoldReason, show(run.Owner), show(run.WakeAt), run.Epoch, store.CrashedTooOftenReason(3))
	}
	wantSteps(b, "a paused run's history", got.History)
	wantRun(b, "its row", b.row(r.UUID), run)
	q.Now = q.Now.Add(1000 * time.Hour)
	if again := b.claim(q); len(again.Runs) != 0 {
		b.Errorf("claimed after it was paused: %v", describeClaims(again.Runs))
	}
	wantOutcome(b, "a late finish of the last owner", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(3))).Outcome, store.Fenced)
}

func crashProgress(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	q.MaxCrashes = 2
	for i, name := range []string{"a", "b", "c", "d"} {
		got := b.claimOne(q, r.UUID)
		if got.Run.Status != store.Running {
			b.Fatalf("claim %d: got %s (%q), want running: each of its owners recorded a step", i, got.Run.Status, got.Run.PauseOrHoldReason)
		}
		b.commitStep(b.completed(r.UUID, got.Run.Epoch, name), false)
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	}
	for i := range 3 {
		if b.claimOne(q, r.UUID).Run.Status == store.Paused {
			return
		}
		if i == 2 {
			b.Error("it lost three leases in a row without a checkpoint, at a bound of 2, and is not paused")
		}
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	}
}

func crashMarker(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	q.MaxCrashes = 2
	for i := range 2 {
		got := b.claimOne(q, r.UUID)
		b.commitStep(b.startedMarker(r.UUID, got.Run.Epoch, int32(i+1), "deadly"), i > 0)
		b.commitStep(b.startedMarker(r.UUID, got.Run.Epoch, 1, string(rune('a'+i))), false)
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	}
	if got := b.claimOne(q, r.UUID); got.Run.Status != store.Paused {
		b.Errorf("the second crash in a step that only ever began: got %s, want paused", got.Run.Status)
	}
}

func crashOrderly(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	q.MaxCrashes = 1
	for i, status := range []store.Status{store.Waiting, store.Pending, store.Waiting, store.Pending} {
		got := b.claimOne(q, r.UUID)
		if got.Run.Status != store.Running || got.Run.Crashes != 0 {
			b.Fatalf("claim %d: got %s with %d crashes, want running with none", i, got.Run.Status, got.Run.Crashes)
		}
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: got.Run.Epoch, Status: status, WakeAt: q.Now})
	}
}

func crashUnbounded(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	for i := range int16(12) {
		if got := b.claimOne(q, r.UUID); got.Run.Status != store.Running || got.Run.Crashes != i {
			b.Fatalf("claim %d: got %s with %d crashes, want running with %d", i, got.Run.Status, got.Run.Crashes, i)
		}
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	}
}

func crashOne(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	q.MaxCrashes = 1
	b.claimOne(q, r.UUID)
	q.Now = q.LeaseUntil
	if got := b.claimOne(q, r.UUID); got.Run.Status != store.Paused || got.Run.Epoch != epochAt(1) {
		b.Errorf("after one crash: got %s at epoch %s, want paused at 1", got.Run.Status, got.Run.Epoch)
	}
}
