package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var drifts = []test{
	{"a run is paused with its reason, and the divergence is recorded", driftHolds},
	{"the divergence of a version replaces its earlier one", driftRepeated},
	{"a hold is fenced, and may be replayed", driftFenced},
	{"a run that is paused or cancelled is held too", driftWithControl},
	{"a resume releases the run, also if it was paused meanwhile", driftResumed},
	{"a resume of the parent does not release the run", driftBelowParent},
	{"a version that has not diverged claims the run, once", driftClaimed},
	{"a run that needs a place in its queue becomes due instead", driftInQueue},
	{"the histories of many runs are read at once", driftHistories},
	{"divergences are kept while the run is held or running", driftDeleted},
	{"a version that diverged does not claim the run again while others live", driftNotClaimedAgain},
}

// holdForDrift holds a run for drift.
func (b *fixture) holdForDrift(run uuid.UUID, epoch store.Epoch, version string) *store.OwnershipEnd {
	b.Helper()
	return b.commitOwnershipEnd(store.OwnershipEnd{
		UUID: run, Epoch: epoch, Status: store.Pending, Now: b.afterStart(time.Minute), HoldsRun: true, HoldReason: "it is renamed", MaxCrashes: 3,
		Divergence: &store.Divergence{Version: version, At: b.afterStart(time.Minute), Call: "a/b", Detail: "renamed by " + version},
	})
}

func (b *fixture) divergences(run uuid.UUID) []store.Divergence {
	b.Helper()
	all, err := b.store.Divergences(b.ctx, run)
	if err != nil {
		b.Fatal(err)
	}
	return all
}

// heldRunsAmong returns which of the runs a version may claim.
func (b *fixture) heldRunsAmong(version string, of ...uuid.UUID) []uuid.UUID {
	b.Helper()
	all, err := b.store.RunsHeldForDrift(b.ctx, version, b.query(b.now).Filter, uuid.Nil, 1000)
	if err != nil {
		b.Fatal(err)
	}
	if !slices.IsSortedFunc(all, func(l, r uuid.UUID) int { return slices.Compare(l[:], r[:]) }) {
		b.Errorf("the runs are not in order: %v", all)
	}
	return slices.DeleteFunc(all, func(id uuid.UUID) bool { return !slices.Contains(of, id) })
}

func (b *fixture) claimHeld(run uuid.UUID) *store.Run {
	b.Helper()
	return b.claimHeldBy(b.query(b.afterStart(2*time.Minute)), run)
}

func (b *fixture) claimHeldBy(q store.ClaimQuery, run uuid.UUID) *store.Run {
	b.Helper()
	before := b.row(run)
	row, err := b.store.ClaimRunHeldForDrift(b.ctx, &before, store.DivergedVersionsOf(b.divergences(run)), q)
	if err != nil {
		b.Fatal(err)
	}
	return row
}

func driftHolds(b *fixture) {
	r := b.commitRunningRun("")
	w := b.holdForDrift(r.UUID, r.Epoch, "v2")
	wantOutcome(b, "the hold", w.Outcome, store.Written)
	row := b.row(r.UUID)
	if row.Status != store.Paused || row.Control != store.HeldForDrift || row.PauseOrHoldReason != "it is renamed" || row.Owner.Valid || !row.WakeAt.IsZero() ||
		row.Crashes != 0 || !row.PausedAt.Equal(b.afterStart(time.Minute)) || w.RunState != stateOf(row) {
		b.Errorf("got %+v, state %+v", row, w.RunState)
	}
	want := []store.Divergence{{Version: "v2", At: b.afterStart(time.Minute), Call: "a/b", Detail: "renamed by v2"}}
	if got := b.divergences(r.UUID); !slices.EqualFunc(got, want, sameDivergence) {
		b.Errorf("got %+v", got)
	}
	q := b.query(b.afterStart(time.Hour))
	if got := b.claim(q); len(got.Runs) != 0 {
		b.Error("a claim took it")
	}
}

func sameDivergence(l, r store.Divergence) bool {
	same := l.At.Equal(r.At)
	l.At, r.At = time.Time{}, time.Time{}
	return same && l == r
}

func driftRepeated(b *fixture) {
	r := b.commitRunningRun("")
	b.holdForDrift(r.UUID, r.Epoch, "v2")
	again := b.claimHeld(r.UUID)
	if again == nil || again.Status != store.Running {
		b.Fatalf("got %+v", again)
	}
	wantOutcome(b, "the second hold", b.holdForDrift(r.UUID, again.Epoch, "v2").Outcome, store.Written)
	third := b.claimHeld(r.UUID)
	wantOutcome(b, "the third hold", b.holdForDrift(r.UUID, third.Epoch, "v1").Outcome, store.Written)
	if got := b.divergences(r.UUID); len(got) != 2 || got[0].Version != "v1" || got[1].Version != "v2" {
		b.Errorf("got %+v", got)
	}
}

func driftFenced(b *fixture) {
	r := b.commitRunningRun("")
	late := b.holdForDrift(r.UUID, r.Epoch.Next(7), "v2")
	wantOutcome(b, "a hold of another epoch", late.Outcome, store.Fenced)
	if got := b.divergences(r.UUID); len(got) != 0 {
		b.Errorf("it was recorded: %+v", got)
	}
	b.holdForDrift(r.UUID, r.Epoch, "v2")
	wantOutcome(b, "the same hold again", b.holdForDrift(r.UUID, r.Epoch, "v2").Outcome, store.Written)
}

func driftWithControl(b *fixture) {
	paused, cancelled := b.commitRunningRun(""), b.commitRunningRun("")
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	b.controlExistingRuns(store.VerbCancel, cancelled.UUID)
	b.holdForDrift(paused.UUID, paused.Epoch, "v2")
	b.holdForDrift(cancelled.UUID, cancelled.Epoch, "v2")
	if row := b.row(paused.UUID); row.Status != store.Paused || row.Control != store.PausedItself|store.HeldForDrift {
		b.Errorf("paused: %+v", row)
	}
	if row := b.row(cancelled.UUID); row.Status != store.Paused || row.Control != store.CancelRequested|store.HeldForDrift {
		b.Errorf("cancelled: %+v", row)
	}
	if got := b.heldRunsAmong("v1", paused.UUID, cancelled.UUID); !slices.Equal(got, []uuid.UUID{cancelled.UUID}) {
		b.Errorf("held: %v", got)
	}
	if row := b.claimHeld(paused.UUID); row != nil {
		b.Errorf("a paused run was claimed: %+v", row)
	}
	if row := b.claimHeld(cancelled.UUID); row == nil || row.Control != store.CancelRequested {
		b.Errorf("got %+v", row)
	}
}

func driftResumed(b *fixture) {
	r := b.commitRunningRun("")
	b.holdForDrift(r.UUID, r.Epoch, "v2")
	b.controlExistingRuns(store.VerbPause, r.UUID)
	if row := b.row(r.UUID); row.Status != store.Paused || row.Control != store.PausedItself|store.HeldForDrift {
		b.Errorf("paused: %+v", row)
	}
	b.controlExistingRuns(store.VerbResume, r.UUID)
	if row := b.row(r.UUID); row.Status != store.Pending || row.Control != 0 || row.WakeAt.IsZero() || row.PauseOrHoldReason != "" {
		b.Errorf("resumed: %+v", row)
	}
}

func driftBelowParent(b *fixture) {
	parent := b.commitRunningRun("")
	child := b.childOf(parent, "kid")
	b.controlExistingRuns(store.VerbPause, parent.UUID)
	b.holdForDrift(child.UUID, child.Epoch, "v2")
	b.controlExistingRuns(store.VerbResume, parent.UUID)
	if row := b.row(child.UUID); row.Status != store.Paused || row.Control != store.HeldForDrift {
		b.Errorf("got %+v", row)
	}
	if row := b.claimHeld(child.UUID); row == nil || row.Status != store.Running || row.Control != 0 {
		b.Errorf("claimed: %+v", row)
	}
}

func driftClaimed(b *fixture) {
	r, own := b.commitRunningRun(""), b.commitRunningRun("")
	b.holdForDrift(r.UUID, r.Epoch, "v2")
	b.holdForDrift(own.UUID, own.Epoch, "v1")
	if got := b.heldRunsAmong("v1", r.UUID, own.UUID); !slices.Equal(got, []uuid.UUID{r.UUID}) {
		b.Errorf("got %v", got)
	}
	q := b.query(b.afterStart(2 * time.Minute))
	row := b.claimHeldBy(q, r.UUID)
	if row == nil || row.Status != store.Running || row.Epoch.Count != r.Epoch.Count+1 || row.Epoch.Nonce != q.EpochNonce || row.Owner.UUID != q.Worker || row.PauseOrHoldReason != "" ||
		row.Control != 0 || !row.WakeAt.Equal(q.LeaseUntil) || !row.PausedAt.IsZero() {
		b.Errorf("got %+v", row)
	}
	if again := b.claimHeld(r.UUID); again != nil {
		b.Errorf("claimed twice: %+v", again)
	}
	if got := b.heldRunsAmong("v1", r.UUID); len(got) != 0 {
		b.Errorf("still held: %v", got)
	}
	filter := store.NewClaimFilter([]string{"another"}, nil)
	if got, err := b.store.RunsHeldForDrift(b.ctx, "v3", filter, uuid.Nil, 10); err != nil || len(got) != 0 {
		b.Errorf("another workflow: %v, %v", got, err)
	}
}

func driftInQueue(b *fixture) {
	r := b.commitRunningRun("")
	r2 := b.newRunningRun("")
	r2.Admission = store.AdmissionGranted
	b.commitStart(r2)
	b.holdForDrift(r2.UUID, r2.Epoch, "v2")
	row := b.claimHeld(r2.UUID)
	if row == nil || row.Status != store.Pending || row.Owner.Valid || row.Epoch != r2.Epoch || row.Control != 0 || !row.WakeAt.Equal(b.afterStart(2*time.Minute)) {
		b.Errorf("got %+v", row)
	}
	if row := b.claimHeld(r.UUID); row != nil {
		b.Errorf("a run that is not held was claimed: %+v", row)
	}
}

func driftDeleted(b *fixture) {
	held, running, over := b.commitRunningRun(""), b.commitRunningRun(""), b.commitRunningRun("")
	for _, r := range []store.Run{held, running, over} {
		b.holdForDrift(r.UUID, r.Epoch, "v2")
	}
	b.claimHeld(running.UUID)
	b.controlExistingRuns(store.VerbResume, over.UUID)
	if err := b.store.DeleteDivergences(b.ctx); err != nil {
		b.Fatal(err)
	}
	if h, r, o := b.divergences(held.UUID), b.divergences(running.UUID), b.divergences(over.UUID); len(h) != 1 || len(r) != 1 || len(o) != 0 {
		b.Errorf("held %v, running %v, resumed %v", h, r, o)
	}
}

// driftNotClaimedAgain checks claims of a run on which v2 has diverged and which v1 has continued: v2 does not claim it while a worker of
// v1 or v3 lives. v3, which has not diverged on it, does.
func driftNotClaimedAgain(b *fixture) {
	sees := func(own string, live ...string) *store.VersionClaimRules {
		var known store.KnownVersions
		for i, v := range live {
			known.Sightings = append(known.Sightings, store.VersionSighting{Workflow: "flow", Version: v, FirstSeen: b.afterStart(time.Duration(i) * time.Hour), LastSeen: b.afterStart(10 * time.Hour)})
		}
		return store.NewVersionClaimRules(own, known, nil, b.afterStart(10*time.Hour))
	}
	claim := func(own string, live ...string) []store.ClaimedRun {
		q := b.query(b.afterStart(10 * time.Hour))
		q.Versions = sees(own, live...)
		return b.claim(q).Runs
	}
	begin := func(name string) store.Run {
		r := b.newRunningRun(name)
		r.Version = "v2"
		b.commitStart(r)
		b.holdForDrift(r.UUID, r.Epoch, "v2")
		q := b.query(b.afterStart(2 * time.Minute))
		q.Versions = sees("v1", "v1", "v2")
		got := b.claimHeldBy(q, r.UUID)
		if got == nil || got.Version != "v1" {
			b.Fatalf("claimed %+v", got)
		}
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: got.Epoch, Status: store.Pending, WakeAt: b.afterStart(time.Hour), Now: b.afterStart(3 * time.Minute)})
		return r
	}
	r := begin("again")
	if got := claim("v2", "v1", "v2"); len(got) != 0 {
		b.Errorf("v2 claimed %v while v1 lives", describeClaims(got))
	}
	if got := claim("v2", "v2", "v3"); len(got) != 0 {
		b.Errorf("v2 claimed %v while v3 lives", describeClaims(got))
	}
	if got := b.divergences(r.UUID); len(got) != 1 || got[0].ContinuedBy != "v1" {
		b.Errorf("the divergences are %+v", got)
	}
	if err := b.store.DeleteDivergences(b.ctx); err != nil || len(b.divergences(r.UUID)) != 1 {
		b.Errorf("deleted: %v, %v", b.divergences(r.UUID), err)
	}
	got := claim("v3", "v1", "v2", "v3")
	if len(got) != 1 || got[0].Run.UUID != r.UUID || got[0].Run.Version != "v3" {
		b.Fatalf("v3 claimed %v", describeClaims(got))
	}
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: got[0].Run.Epoch, Status: store.Pending, WakeAt: b.afterStart(2 * time.Hour), Now: b.afterStart(10 * time.Hour)})
	if got := claim("v2", "v2", "v1", "v3"); len(got) != 0 {
		b.Errorf("v2 claimed %v after v3", describeClaims(got))
	}
	if got = claim("v2", "v2"); len(got) != 1 || got[0].Run.UUID != r.UUID {
		b.Fatalf("v2, which lives alone, claimed %v", describeClaims(got))
	}
	b.holdForDrift(r.UUID, got[0].Run.Epoch, "v2")
	if all := b.divergences(r.UUID); len(all) != 1 || all[0].ContinuedBy != "" {
		b.Errorf("held again: %+v", all)
	}
	if held := b.heldRunsAmong("v1", r.UUID); len(held) != 1 {
		b.Errorf("held again: v1 finds %v", held)
	}
}

func driftHistories(b *fixture) {
	first, second, none := b.commitRunningRun(""), b.commitRunningRun(""), b.commitRunningRun("")
	for _, r := range []store.Run{first, second} {
		for _, name := range []string{"b", "a"} {
			b.commitStep(b.completed(r.UUID, r.Epoch, name), false)
		}
	}
	got, err := b.store.Histories(b.ctx, []uuid.UUID{second.UUID, none.UUID, first.UUID})
	if err != nil {
		b.Fatal(err)
	}
	of := make(map[uuid.UUID]string)
	for i := range got {
		of[got[i].Run] += got[i].Name
		if i > 0 && got[i].Run != got[i-1].Run && of[got[i].Run] != got[i].Name {
			b.Error("the checkpoints of a run do not follow one another")
		}
	}
	if len(of) != 2 || of[first.UUID] != "ab" || of[second.UUID] != "ab" {
		b.Errorf("got %v", of)
	}
}
