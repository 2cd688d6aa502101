package storetest

import (
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// liveRepairOf returns the repair of a run that is paused, which keeps the given checkpoints, and resumes it.
func (b *fixture) liveRepairOf(r store.Run, number int32, keep ...string) *store.RepairRequest {
	b.Helper()
	p := b.repairOf(r, number, keep...)
	p.Runs[0].Status, p.Runs[0].Control, p.Runs[0].WakeAt = store.Paused, r.Control, time.Time{}
	p.ResumeRequest = &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{r.UUID}, Now: p.Now}
	return p
}

func repairResumes(b *fixture) {
	r := b.commitRunningRun("")
	kid, behind := b.childOf(r, "kid"), b.childOf(r, "behind")
	b.commitStep(b.completed(r.UUID, epochAt(1), "first"), false)
	wantOutcome(b, "the deadline", b.setDeadline(r.UUID, b.afterStart(5*time.Hour)).Outcome, store.Written)
	b.controlExistingRuns(store.VerbPause, r.UUID)
	for _, id := range []uuid.UUID{r.UUID, kid.UUID, behind.UUID} {
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: id, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now})
	}
	f := &store.FenceRequest{Run: r.UUID, StateBefore: stateOf(b.row(r.UUID))}
	wantOutcome(b, "the fence", b.fence(f), store.Written)
	row := b.row(r.UUID)
	p := b.liveRepairOf(row, 1, "first")
	p.Runs[0].DetachedChildren = []uuid.UUID{behind.UUID}
	p.ResumeRequest.Runs = append(p.ResumeRequest.Runs, behind.UUID)
	b.wantRepaired(p)
	for what, id := range map[string]uuid.UUID{"the run": r.UUID, "its child": kid.UUID, "the child that stays behind": behind.UUID} {
		if got := b.row(id); got.Status != store.Pending || got.Control != 0 || !got.WakeAt.Equal(p.Now) || got.PauseOrHoldReason != "" || got.PausedBy != "" {
			b.Errorf("%s is %+v", what, got)
		}
	}
	if got := b.row(r.UUID); !got.Deadline.Equal(b.afterStart(5 * time.Hour)) {
		b.Errorf("the deadline is %v", got.Deadline)
	}
	if g := b.generations(r.UUID); len(g) != 1 || g[0].Run.Status != store.Superseded {
		b.Errorf("the generations are %+v", g)
	}
	b.wantRepaired(p) // its reply was lost
	if got := b.row(r.UUID); got.Status != store.Pending {
		b.Errorf("repeated: the run is %v", got.Status)
	}
}

// A deadline that was set after the worker planned when it retries its run ends the wait for the retry.
func repairWaitsAtMostUntilTheDeadline(b *fixture) {
	for _, deadline := range []time.Duration{time.Minute, 10 * time.Hour, 0} {
		r := b.commitRunningRun("")
		at, want := time.Time{}, b.afterStart(6*time.Hour)
		if deadline > 0 {
			at = b.afterStart(deadline)
		}
		p := b.repairOf(r, 1)
		p.Runs[0].Status, p.Runs[0].WakeAt = store.Waiting, want
		wantOutcome(b, "the deadline", b.setDeadline(r.UUID, at).Outcome, store.Written)
		b.wantRepaired(p)
		if deadline == time.Minute {
			want = at
		}
		if got := b.row(r.UUID); got.Status != store.Waiting || !got.WakeAt.Equal(want) || !got.Deadline.Equal(at) {
			b.Errorf("deadline after %v: the run is %v, wakes at %v, deadline %v; want that it wakes at %v", deadline, got.Status, got.WakeAt, got.Deadline, want)
		}
	}
}

func repairStaysPaused(b *fixture) {
	r := b.commitRunningRun("")
	b.controlExistingRuns(store.VerbPause, r.UUID)
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now})
	before := b.row(r.UUID)
	p := b.liveRepairOf(before, 1)
	p.ResumeRequest = nil
	b.wantRepaired(p)
	if got := b.row(r.UUID); got.Status != store.Paused || got.Control != before.Control || got.PauseOrHoldReason != before.PauseOrHoldReason || got.PausedBy != before.PausedBy || !got.PausedAt.Equal(before.PausedAt) {
		b.Errorf("the run is %+v, and was %+v", got, before)
	}
	b.controlExistingRuns(store.VerbResume, r.UUID)
	b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
}
