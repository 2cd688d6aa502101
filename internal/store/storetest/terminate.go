package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var terminations = []test{
	{"a tree in any states ends at once", terminateTree},
	{"its owners' writes are fenced", terminateFences},
	{"its owners hear of it", terminateNews},
	{"its owner hears of it, whichever runs it asks for", terminateChangesOfOne},
	{"the parent is woken", terminateWakes},
	{"it is recorded once", terminateOnce},
}

func terminateTree(b *fixture) {
	root := b.commitRunningRun("root")
	waiting, paused, asked, done, gone := b.commitRunningChild(root, "waiting"), b.commitPendingChild(root, "paused"), b.commitRunningChild(root, "asked"), b.commitRunningChild(root, "done"), b.child(root, "gone")
	beneath := b.commitRunningChild(done, "beneath")
	gone.Detached = true
	b.commitChild(gone, epochAt(1))
	b.commitStep(b.completed(waiting.UUID, epochAt(1), "charge"), false)
	b.commitOwnershipEnd(b.park(waiting, b.afterStart(time.Hour)))
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	b.controlExistingRuns(store.VerbCancel, asked.UUID)
	b.commitOwnershipEnd(b.childEnd(done))
	first, ended := b.row(asked.UUID), b.row(done.UUID)
	o := b.newControlRequest(store.VerbTerminate, root.UUID)
	o.Reason, o.Actor = "no code", "ann"
	b.wantAnswers("the termination", b.controlRuns(o), store.ControlResult{Found: true, Status: store.Running, ChangedCount: 6})
	for _, r := range []store.Run{root, waiting, paused, asked, gone, beneath} {
		got := b.row(r.UUID)
		if got.Status != store.Cancelled || got.Owner.Valid || !got.WakeAt.IsZero() || !got.EndedAt.Equal(o.Now) || string(got.Error) != string(o.Error) {
			b.Errorf("%s: %+v", quoteName(r.Name), got)
		}
		want := [2]string{o.Reason, o.Actor}
		if r.UUID == asked.UUID {
			want = [2]string{first.CancelReason, first.CancelledBy}
		}
		if want != [2]string{got.CancelReason, got.CancelledBy} {
			b.Errorf("%s: cancelled by %q for %q, want %q", quoteName(r.Name), got.CancelledBy, got.CancelReason, want)
		}
	}
	wantRun(b, "what had ended", b.row(done.UUID), ended)
	if got := b.claim(b.query(b.afterStart(1000 * time.Hour))); len(got.Runs) != 0 || !got.NextDue.IsZero() {
		b.Errorf("terminated: claimed %v, next %s", describeClaims(got.Runs), show(got.NextDue))
	}
}

func terminateFences(b *fixture) {
	r := b.commitRunningRun("r")
	b.controlExistingRuns(store.VerbTerminate, r.UUID)
	want := b.row(r.UUID)
	step := b.commitStep(b.completed(r.UUID, epochAt(1), "late"), false)
	wantOutcome(b, "a step", step.Outcome, store.Fenced)
	if step.RunState.Status != store.Cancelled || step.RunState.Epoch != epochAt(1) {
		b.Errorf("a step is told %+v", step.RunState)
	}
	wantOutcome(b, "an end", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1))).Outcome, store.Fenced)
	wantOutcome(b, "an end as cancelled", b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Cancelled, EndedAt: b.now}).Outcome, store.Fenced)
	wantOutcome(b, "a park", b.commitOwnershipEnd(b.park(r, time.Time{})).Outcome, store.Fenced)
	wantOutcome(b, "a child", b.commitChild(b.child(r, "kid"), epochAt(1)).Outcome, store.Fenced)
	signal := &store.SignalWrite{Run: r.UUID, ID: store.NewChildUUID(r.UUID), Name: "paid", CreatedAt: b.now}
	b.commit(&store.Batch{Signals: []*store.SignalWrite{signal}})
	wantOutcome(b, "a signal", signal.Outcome, store.Fenced)
	wantRun(b, "after all that", b.row(r.UUID), want)
}

func terminateNews(b *fixture) {
	r, other, foreign := b.commitRunningRun("r"), b.commitRunningRun("other"), b.commitRunningRun("foreign")
	b.controlExistingRuns(store.VerbTerminate, r.UUID, foreign.UUID)
	held := []store.Lease{{Run: r.UUID, Epoch: epochAt(1)}, {Run: other.UUID, Epoch: epochAt(1)}, {Run: foreign.UUID, Epoch: epochAt(2)}}
	for range 2 { // the notification is repeated as long as the worker asks about the lease
		got, err := b.store.OwnedRunChanges(b.ctx, b.worker, held)
		if err != nil || !slices.EqualFunc(got.EndedLeases, held[:1], sameLease) || len(got.ControlRequests) != 0 {
			b.Errorf("told %+v, %v, want %+v ended", got, err, held[0])
		}
	}
}

// terminateChangesOfOne reads the changes of one run only, as a worker does that could not
// renew one of its leases.
func terminateChangesOfOne(b *fixture) {
	r := b.commitRunningRun("r")
	b.commitRunningRun("other")
	b.commitRunningRun("another")
	b.controlExistingRuns(store.VerbTerminate, r.UUID)
	for range 2 {
		got := b.ownedRunChanges(b.worker, r.UUID)
		if len(got.EndedLeases) != 1 || got.EndedLeases[0].Run != r.UUID {
			b.Errorf("told %+v, want %s ended", got, r.UUID)
		}
		pulse, err := b.store.RenewLeases(b.ctx, store.Heartbeat{Worker: store.Worker{ID: b.worker, StartedAt: b.now}, Leases: []store.Lease{{Run: r.UUID, Epoch: epochAt(1)}}, LeaseUntil: b.afterStart(time.Minute)})
		if err != nil || !slices.Equal(pulse.LostRuns, []uuid.UUID{r.UUID}) {
			b.Errorf("renewed: %+v, %v, want %s lost", pulse, err, r.UUID)
		}
	}
}

func terminateWakes(b *fixture) {
	parent := b.commitRunningRun("parent")
	child := b.commitRunningChild(parent, "child")
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	o := b.newControlRequest(store.VerbTerminate, child.UUID)
	b.controlRuns(o)
	b.claimOne(b.query(o.Now), parent.UUID)
}

func terminateOnce(b *fixture) {
	r := b.commitRunningRun("r")
	first := b.newControlRequest(store.VerbTerminate, r.UUID)
	b.wantAnswers("once", b.controlRuns(first), store.ControlResult{Found: true, Status: store.Running, ChangedCount: 1})
	if !slices.Equal(first.ChangedRuns, []uuid.UUID{r.UUID}) || len(first.RequestedRuns) != 0 {
		b.Errorf("once: done %v, requested %v", first.ChangedRuns, first.RequestedRuns)
	}
	want := b.row(r.UUID)
	again := b.newControlRequest(store.VerbTerminate, r.UUID)
	again.Reason, again.Error = "another", []byte(`"other"`)
	b.wantAnswers("again", b.controlRuns(again), store.ControlResult{Found: true, Status: store.Cancelled, ControlBefore: store.CancelRequested})
	wantRun(b, "again", b.row(r.UUID), want)
	b.wantEvents("r lease lost", "r cancelled")
}
