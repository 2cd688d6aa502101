package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var suspects = []test{
	{"a claim that takes no suspect passes them by", suspectPassed},
	{"one at a time, before the others and within the limit", suspectOne},
	{"a checkpoint clears it", suspectCleared},
	{"it leaves memory with a new checkpoint and is none any more", suspectParked},
	{"its pause does not hold up others", suspectPaused},
	{"an expired lease counts too", suspectExpired},
}

// suspects commits n runs that have lost SuspectAfterCrashes-1 leases. At the time of the returned query,
// an hour after their last claim, they lose another lease.
func (b *fixture) suspects(n int) (all []uuid.UUID, q store.ClaimQuery) {
	b.Helper()
	for range n {
		all = append(all, b.commitPendingRun("", b.now).UUID)
	}
	q = b.query(b.now)
	for range store.SuspectAfterCrashes {
		if got := b.claim(q).Runs; len(got) != n {
			b.Fatalf("claimed %d runs, want %d, none of which is a suspect yet", len(got), n)
		}
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	}
	return all, q
}

func suspectPassed(b *fixture) {
	b.suspects(3)
	_, q := b.suspects(0)
	q.Now, q.LeaseUntil, q.MaxSuspects = b.afterStart(10*time.Hour), b.afterStart(11*time.Hour), 0
	clean := b.commitPendingRun("clean", b.afterStart(9*time.Hour)) // due later than all of them
	q.Limit = 1
	b.claimOne(q, clean.UUID)
	if got := b.claim(q); len(got.Runs) != 0 {
		b.Errorf("claimed %v, want no suspect", describeClaims(got.Runs))
	}
}

func suspectOne(b *fixture) {
	all, q := b.suspects(3)
	clean := []uuid.UUID{b.commitPendingRun("", q.Now).UUID, b.commitPendingRun("", q.Now).UUID}
	var taken []uuid.UUID
	for i, want := range []int{1, 1 + len(clean), 1} { // the limit of the first claim is one; for the last one only suspects are left
		q.Limit = want
		got := b.claim(q).Runs
		suspects := 0
		for _, c := range got {
			taken = append(taken, c.Run.UUID)
			if c.Run.Crashes >= store.SuspectAfterCrashes {
				suspects++
			}
		}
		if suspects != 1 || len(got) != want {
			b.Errorf("claim %d: took %v with %d suspects, want %d with 1", i, describeClaims(got), suspects, want)
		}
	}
	wantUUIDs(b, "taken", taken, append(clean, all...))
}

func suspectCleared(b *fixture) {
	all, q := b.suspects(1)
	run := b.claimOne(q, all[0]).Run
	b.commitStep(b.completed(run.UUID, run.Epoch, "progress"), false)
	for range 2 { // at the latest, the second claim takes the checkpoint into account
		q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
		run = b.claimOne(q, run.UUID).Run
		if run.Status != store.Running || run.Crashes == 0 {
			b.Fatalf("got %s with %d crashes, want running, and the lost lease counted", run.Status, run.Crashes)
		}
		if run.Crashes == 1 {
			return
		}
	}
	b.Errorf("%d crashes are counted after a checkpoint, want the count to start again", run.Crashes)
}

// suspectParked checks that runs that crashed twice are claimed together again, if each of them has left memory with a new checkpoint. A run
// that has left memory without one is still a suspect.
func suspectParked(b *fixture) {
	all, q := b.suspects(3)
	q.Limit = 1
	for i := range all {
		run := b.claim(q).Runs[0].Run
		if run.Crashes != store.SuspectAfterCrashes {
			b.Fatalf("claim %d: %d crashes, want %d", i, run.Crashes, store.SuspectAfterCrashes)
		}
		if i > 0 {
			b.commitStep(b.completed(run.UUID, run.Epoch, "progress"), false)
		}
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: run.UUID, Epoch: run.Epoch, Status: store.Waiting, WakeAt: q.Now.Add(time.Minute), Now: q.Now})
	}
	q.Now, q.LeaseUntil, q.Limit, q.MaxSuspects = q.Now.Add(2*time.Minute), q.LeaseUntil.Add(2*time.Minute), 10, 0
	got := b.claim(q).Runs
	if len(got) != 2 {
		b.Errorf("claimed %v, want the two that have a new checkpoint", describeClaims(got))
	}
	for i := range got {
		if got[i].Run.Crashes != 0 {
			b.Errorf("%d crashes since the checkpoint, want none", got[i].Run.Crashes)
		}
	}
}

func suspectPaused(b *fixture) {
	all, q := b.suspects(1)
	clean := b.commitPendingRun("clean", q.Now)
	q.MaxCrashes, q.Limit = store.SuspectAfterCrashes, 1
	got := make(map[uuid.UUID]store.Status)
	for range 2 {
		for _, c := range b.claim(q).Runs {
			got[c.Run.UUID] = c.Run.Status
		}
	}
	if got[all[0]] != store.Paused || got[clean.UUID] != store.Running {
		b.Errorf("the suspect is %s, the clean one %s, want paused and running", got[all[0]], got[clean.UUID])
	}
}

func suspectExpired(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	for crash := range int16(3) {
		got := b.claimOne(q, r.UUID)
		if got.Run.Crashes != crash {
			b.Errorf("claim %d: %d crashes, want %d", crash, got.Run.Crashes, crash)
		}
		q.Now = q.Now.Add(time.Minute)
		if n := b.endLeases(store.ClaimQuery{Worker: uuid.New(), Now: q.Now, LeaseUntil: q.LeaseUntil}, q.Worker); n != 1 {
			b.Fatalf("freed %d runs, want 1", n)
		}
	}
}
