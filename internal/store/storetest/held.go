package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var holds = []test{
	{"a held run comes back later each time, and is paused at the bound", holdBound},
	{"a new checkpoint starts the count of holds again", holdProgress},
	{"holds and lost leases are counted together", holdAndLoss},
	{"the reason is kept until something new is recorded", holdReason},
	{"a held run that is to be paused is paused, and that is no crash", holdPaused},
	{"a held run that is to be cancelled stays away", holdCancelled},
	{"a hold that is not counted is no crash, and never pauses the run", holdUncounted},
	{"a hold is fenced, and may be replayed", holdFenced},
	{"steps may be recorded with the hold of their run", holdWithStep},
	{"a held run comes back at its deadline at the latest", holdDeadline},
}

const rejected = "write the checkpoint of step \"a\": permission denied"

// hold releases a run as a run whose writes the database rejects. most is the MaxCrashes of the
// write.
func (b *fixture) hold(run uuid.UUID, epoch store.Epoch, at time.Time, most int) *store.OwnershipEnd {
	b.Helper()
	return b.commitOwnershipEnd(store.OwnershipEnd{UUID: run, Epoch: epoch, Status: store.Pending, Now: at, HoldsRun: true, HoldReason: rejected, MaxCrashes: most})
}

func holdBound(b *fixture) {
	const most = 7
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	q.MaxCrashes = most
	for i, away := range []time.Duration{1, 4, 16, 64, 256, 300} {
		got := b.claimOne(q, r.UUID)
		if got.Run.Status != store.Running || int(got.Run.Crashes) != i {
			b.Fatalf("claim %d: got %s with %d crashes, want running with %d", i, got.Run.Status, got.Run.Crashes, i)
		}
		w := b.hold(r.UUID, got.Run.Epoch, q.Now, most)
		wantOutcome(b, "the hold", w.Outcome, store.Written)
		row := b.row(r.UUID)
		if row.Status != store.Pending || int(row.Crashes) != i+1 || row.Owner.Valid || row.PauseOrHoldReason != rejected || w.RunState.Status != store.Pending {
			b.Fatalf("after hold %d: got %s, %d crashes, owner %s, reason %q, state %+v", i+1, row.Status, row.Crashes, show(row.Owner), row.PauseOrHoldReason, w.RunState)
		}
		if want := q.Now.Add(away * time.Second); !row.WakeAt.Equal(want) {
			b.Fatalf("after hold %d: it comes back %v later, want %v s", i+1, row.WakeAt.Sub(q.Now), int(away))
		}
		if early := b.claim(q); len(early.Runs) != 0 {
			b.Fatalf("it was claimed at once after hold %d", i+1)
		}
		q.Now = row.WakeAt
		q.LeaseUntil = q.Now.Add(time.Hour)
	}
	got := b.claimOne(q, r.UUID)
	w := b.hold(r.UUID, got.Run.Epoch, q.Now, most)
	row := b.row(r.UUID)
	if row.Status != store.Paused || row.Crashes != most || !row.WakeAt.IsZero() || row.Control != store.PausedItself || !row.PausedAt.Equal(q.Now) ||
		row.PauseOrHoldReason != store.HeldTooOftenReason(rejected, most) || w.RunState.Status != store.Paused {
		b.Errorf("after the last hold: %+v, state %+v", row, w.RunState)
	}
}

func holdProgress(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	for i, name := range []string{"a", "b", "c"} {
		got := b.claimOne(q, r.UUID)
		b.commitStep(b.completed(r.UUID, got.Run.Epoch, name), false)
		b.hold(r.UUID, got.Run.Epoch, q.Now, 2)
		row := b.row(r.UUID)
		if row.Status != store.Pending || row.Crashes != 1 {
			b.Fatalf("hold %d: got %s with %d crashes, want pending with 1", i, row.Status, row.Crashes)
		}
		q.Now = row.WakeAt
		q.LeaseUntil = q.Now.Add(time.Hour)
	}
}

func holdAndLoss(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	q.MaxCrashes = 3
	b.hold(r.UUID, b.claimOne(q, r.UUID).Run.Epoch, q.Now, 3)
	q.Now = b.row(r.UUID).WakeAt
	q.LeaseUntil = q.Now.Add(time.Hour)
	b.claimOne(q, r.UUID)
	q.Now, q.LeaseUntil = q.LeaseUntil, q.LeaseUntil.Add(time.Hour)
	got := b.claimOne(q, r.UUID).Run
	if got.Crashes != 2 || got.Status != store.Running {
		b.Fatalf("after a hold and a lost lease: %s with %d crashes, want running with 2", got.Status, got.Crashes)
	}
	b.hold(r.UUID, got.Epoch, q.Now, 3)
	if row := b.row(r.UUID); row.Status != store.Paused {
		b.Errorf("after another hold: %s, want paused", row.Status)
	}
}

func holdReason(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	b.hold(r.UUID, b.claimOne(q, r.UUID).Run.Epoch, q.Now, 0)
	again := func() store.Run {
		q.Now = b.row(r.UUID).WakeAt
		q.LeaseUntil = q.Now.Add(time.Hour)
		return b.claimOne(q, r.UUID).Run
	}
	got := again()
	if row := b.row(r.UUID); got.PauseOrHoldReason != rejected || row.PauseOrHoldReason != rejected {
		b.Errorf("claimed again, its reason is %q, and %q in the row", got.PauseOrHoldReason, row.PauseOrHoldReason)
	}
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: got.Epoch, Status: store.Pending, Now: q.Now, WakeAt: q.Now})
	if row := b.row(r.UUID); row.PauseOrHoldReason != rejected {
		b.Errorf("given back, its reason is %q", row.PauseOrHoldReason)
	}
	got = again()
	b.commitStep(b.completed(r.UUID, got.Epoch, "a"), false)
	if got = again(); got.PauseOrHoldReason != "" { // the lease was lost after a new checkpoint
		b.Errorf("after a new checkpoint its reason is %q", got.PauseOrHoldReason)
	}
	b.hold(r.UUID, got.Epoch, q.Now, 0)
	got = again()
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: got.Epoch, Status: store.Waiting, Now: q.Now})
	if row := b.row(r.UUID); row.PauseOrHoldReason != "" {
		b.Errorf("parked, its reason is %q", row.PauseOrHoldReason)
	}
}

func holdPaused(b *fixture) {
	r := b.commitRunningRun("")
	b.controlExistingRuns(store.VerbPause, r.UUID)
	before := b.row(r.UUID).PauseOrHoldReason
	w := b.hold(r.UUID, epochAt(1), b.now, 1)
	want := before
	if want == "" {
		want = rejected
	}
	if row := b.row(r.UUID); row.Status != store.Paused || row.Crashes != 0 || !row.WakeAt.IsZero() || row.PauseOrHoldReason != want || w.RunState.Status != store.Paused {
		b.Errorf("got %s, %d crashes, wake %s, reason %q, state %+v", row.Status, row.Crashes, show(row.WakeAt), row.PauseOrHoldReason, w.RunState)
	}
}

func holdCancelled(b *fixture) {
	r := b.commitRunningRun("")
	b.commitStep(b.completed(r.UUID, epochAt(1), "a"), false)
	b.controlExistingRuns(store.VerbCancel, r.UUID)
	b.hold(r.UUID, epochAt(1), b.now, 0)
	if row := b.row(r.UUID); row.Status != store.Pending || row.Control&store.CancelRequested == 0 || !row.WakeAt.Equal(b.now.Add(time.Second)) {
		b.Errorf("got %s, control %d, wake %s", row.Status, row.Control, show(row.WakeAt))
	}
}

func holdUncounted(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	for range 3 {
		got := b.claimOne(q, r.UUID)
		b.controlExistingRuns(store.VerbCancel, r.UUID)
		w := b.commitOwnershipEnd(store.OwnershipEnd{
			UUID: r.UUID, Epoch: got.Run.Epoch, Status: store.Pending, Now: q.Now, HoldsRun: true, HoldReason: "the key is missing", MaxCrashes: 1, NotCountedAsCrash: true,
		})
		wantOutcome(b, "the release", w.Outcome, store.Written)
		row, at := b.row(r.UUID), q.Now.Add(store.UncountedHoldDelay)
		if row.Status != store.Pending || row.Crashes != 0 || !row.WakeAt.Equal(at) || row.PauseOrHoldReason != "the key is missing" || row.Owner.Valid {
			b.Fatalf("the released run is %+v, want it due at %v without a crash", row, at)
		}
		q.Now = at
		q.LeaseUntil = q.Now.Add(time.Hour)
	}
}

func holdFenced(b *fixture) {
	r := b.commitRunningRun("")
	wantOutcome(b, "another epoch's hold", b.hold(r.UUID, epochAt(2), b.now, 0).Outcome, store.Fenced)
	for range 2 {
		wantOutcome(b, "the hold, and its replay", b.hold(r.UUID, epochAt(1), b.now, 1).Outcome, store.Written)
	}
	if row := b.row(r.UUID); row.Status != store.Paused || row.Crashes != 1 {
		b.Errorf("got %s with %d crashes, want paused with 1", row.Status, row.Crashes)
	}
}

func holdWithStep(b *fixture) {
	r := b.commitRunningRun("")
	step := &store.StepWrite{Step: b.completed(r.UUID, epochAt(1), "a")}
	hold := &store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, Now: b.now, HoldsRun: true, HoldReason: rejected}
	b.commit(&store.Batch{Steps: []*store.StepWrite{step}, OwnershipEnds: []*store.OwnershipEnd{hold}})
	wantOutcome(b, "the step", step.Outcome, store.Written)
	wantOutcome(b, "the hold", hold.Outcome, store.Written)
	wantSteps(b, "its history", b.history(r.UUID), step.Step)
}

// holdDeadline checks that a deadline shortens a hold, unless the deadline had already passed: the
// run has then handled its deadline before it was held.
func holdDeadline(b *fixture) {
	for _, c := range []struct {
		name                   string
		deadline, then, wanted time.Duration // then is another deadline, which is set while the run is held
	}{
		{"a deadline before the end of the hold", 300 * time.Millisecond, 0, 300 * time.Millisecond},
		{"a deadline after it", time.Minute, 0, time.Second},
		{"a deadline that is over", -time.Millisecond, 0, time.Second},
		{"a deadline that comes while it is held", 0, 300 * time.Millisecond, 300 * time.Millisecond},
		{"a later one", 300 * time.Millisecond, time.Minute, 300 * time.Millisecond},
	} {
		r := b.commitPendingRun("", b.now)
		got := b.claimOne(b.query(b.now), r.UUID)
		if c.deadline != 0 {
			wantOutcome(b, c.name, b.setDeadline(r.UUID, b.afterStart(c.deadline)).Outcome, store.Written)
		}
		b.hold(r.UUID, got.Run.Epoch, b.now, 0)
		if c.then != 0 {
			wantOutcome(b, c.name, b.setDeadline(r.UUID, b.afterStart(c.then)).Outcome, store.Written)
		}
		if row := b.row(r.UUID); !row.WakeAt.Equal(b.afterStart(c.wanted)) {
			b.Errorf("%s: it comes back %v later, want %v", c.name, row.WakeAt.Sub(b.now), c.wanted)
		}
	}
}
