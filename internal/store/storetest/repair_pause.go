package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// pausedForRepair is the control bits of a run that a repair has paused.
const pausedForRepair = store.PausedItself | store.PausedForRepair

// forRepair executes a pause or a resume of a repair.
func (b *fixture) forRepair(verb store.ControlVerb, run uuid.UUID) store.ControlResult {
	b.Helper()
	o := b.newControlRequest(verb, run)
	o.Reason, o.Actor, o.ForRepair = "for a repair", "bob", true
	return b.controlRuns(o)[0]
}

func repairPauseOrPause(b *fixture) {
	for name, begin := range map[string]func() store.Run{
		"running": func() store.Run { return b.commitRunningRun("") },
		"pending": func() store.Run { return b.commitPendingRun("", b.afterStart(20*time.Minute)) },
	} {
		r := begin()
		was, paused := r.Status, store.Paused
		if was == store.Running {
			paused = store.Running
		}
		b.forRepair(store.VerbPause, r.UUID)
		b.wantBits(name+", for a repair", r.UUID, paused, pausedForRepair)
		b.forRepair(store.VerbPause, r.UUID)
		b.wantBits(name+", for a second repair", r.UUID, paused, pausedForRepair)
		b.forRepair(store.VerbResume, r.UUID)
		b.wantBits(name+", the repair has ended", r.UUID, was, 0)

		b.forRepair(store.VerbPause, r.UUID)
		o := b.newControlRequest(store.VerbPause, r.UUID)
		if got := b.controlRuns(o)[0]; got.ChangedCount+got.RequestedCount != 1 {
			b.Errorf("%s: a pause during the repair returned %+v", name, got)
		}
		b.wantBits(name+", by a person too", r.UUID, paused, store.PausedItself)
		if got := b.row(r.UUID); got.PauseOrHoldReason != o.Reason || got.PausedBy != o.Actor {
			b.Errorf("%s: paused by %q: %q", name, got.PausedBy, got.PauseOrHoldReason)
		}
		b.forRepair(store.VerbPause, r.UUID)
		b.forRepair(store.VerbResume, r.UUID)
		b.wantBits(name+", the second repair has ended", r.UUID, paused, store.PausedItself)
		b.controlExistingRuns(store.VerbResume, r.UUID)

		b.forRepair(store.VerbPause, r.UUID)
		b.controlExistingRuns(store.VerbResume, r.UUID)
		b.wantBits(name+", resumed by a person", r.UUID, was, 0)
	}
	begun := b.commitRunningRun("")
	start := b.row(begun.UUID)
	f := &store.FenceRequest{Run: begun.UUID, StateBefore: stateOf(start)}
	wantOutcome(b, "the fence", b.fence(f), store.Written)
	b.wantBits("after a fence", begun.UUID, store.Paused, pausedForRepair)
	b.forRepair(store.VerbResume, begun.UUID)
	b.wantBits("after the resume", begun.UUID, store.Pending, 0)

	byHand := b.commitPendingRun("", b.afterStart(20*time.Minute))
	b.controlExistingRuns(store.VerbPause, byHand.UUID)
	f = &store.FenceRequest{Run: byHand.UUID, StateBefore: stateOf(b.row(byHand.UUID))}
	wantOutcome(b, "the fence of a paused run", b.fence(f), store.Written)
	b.forRepair(store.VerbResume, byHand.UUID)
	b.wantBits("fenced and paused by hand", byHand.UUID, store.Paused, store.PausedItself)
}

// repairPauseAndHold holds a run that is to be paused for a repair: its end leaves the hold, also with the repair itself.
func repairPauseAndHold(b *fixture) {
	for name, end := range map[string]func(r store.Run){
		"given up": func(r store.Run) { b.forRepair(store.VerbResume, r.UUID) },
		"repaired": func(r store.Run) {
			row := b.row(r.UUID)
			p := b.liveRepairOf(row, 1)
			p.ResumeRequest.ForRepair = true
			b.wantRepaired(p)
		},
	} {
		r := b.commitRunningRun("")
		b.forRepair(store.VerbPause, r.UUID)
		b.holdForDrift(r.UUID, epochAt(1), "v2")
		b.wantBits(name+", held", r.UUID, store.Paused, pausedForRepair|store.HeldForDrift)
		end(r)
		b.wantBits(name, r.UUID, store.Paused, store.HeldForDrift)
		if got := b.claim(b.query(b.afterStart(30 * time.Minute))); len(got.Runs) != 0 {
			b.Errorf("%s: claimed %v", name, describeClaims(got.Runs))
		}
	}
}

// repairReleasesHold repairs two runs that are held for drift, one of which stays held.
func repairReleasesHold(b *fixture) {
	for _, keeps := range []bool{false, true} {
		r := b.commitRunningRun("")
		b.holdForDrift(r.UUID, epochAt(1), "v2")
		p := b.repairOf(b.row(r.UUID), 1)
		want := 0
		if keeps {
			p.Runs[0].Status, p.Runs[0].Control, p.Runs[0].WakeAt, want = store.Paused, store.HeldForDrift, time.Time{}, 1
		}
		b.wantRepaired(p)
		got := b.row(r.UUID)
		if all := b.divergences(r.UUID); len(all) != want || got.Status != p.Runs[0].Status || got.Control != p.Runs[0].Control || !keeps && (got.PauseOrHoldReason != "" || !got.PausedAt.IsZero()) {
			b.Errorf("stays held %t: %+v, with %+v", keeps, got, all)
		}
	}
}

func repairPauseExpires(b *fixture) {
	first, second := b.commitRunningRun("").UUID, b.commitRunningRun("").UUID
	do := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	expired := func(now time.Time, want ...uuid.UUID) {
		b.Helper()
		got, err := b.store.ExpiredRepairPauses(b.ctx, now, 10)
		do(err)
		slices.SortFunc(got, store.CompareUUIDsByShard)
		slices.SortFunc(want, store.CompareUUIDsByShard)
		if !slices.Equal(got, want) {
			b.Errorf("expired are %v, want %v", got, want)
		}
	}
	do(b.store.ExtendRepairPause(b.ctx, second, b.afterStart(time.Minute)))
	do(b.store.ExtendRepairPause(b.ctx, first, b.afterStart(2*time.Minute)))
	expired(b.afterStart(59 * time.Second))
	expired(b.afterStart(time.Minute), second)
	expired(b.afterStart(time.Hour), second, first)
	do(b.store.ExtendRepairPause(b.ctx, second, b.afterStart(3*time.Minute)))
	do(b.store.ExtendRepairPause(b.ctx, second, b.afterStart(time.Minute))) // of another repair, whose lease is shorter
	expired(b.afterStart(2*time.Minute), first)
	expired(b.afterStart(time.Hour), first, second)
	if got, err := b.store.ExpiredRepairPauses(b.ctx, b.afterStart(time.Hour), 1); err != nil || len(got) != 1 {
		b.Errorf("of two, one: %v, %v", got, err)
	}
	do(b.store.DeleteRepairPause(b.ctx, second, b.afterStart(2*time.Minute))) // it was extended
	expired(b.afterStart(time.Hour), first, second)
	do(b.store.DeleteRepairPause(b.ctx, second, b.afterStart(3*time.Minute)))
	expired(b.afterStart(time.Hour), first)
}
