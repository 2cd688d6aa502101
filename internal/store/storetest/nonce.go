package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// After a failover to a standby that lagged behind, or after a restore, two owners of a run can
// have the same epoch count, and one worker can own a run twice with the same count. Only the
// nonces distinguish these epochs.
var nonces = []test{
	{"a claim's epoch has the claim's nonce", nonceClaimed},
	{"a start's epoch has the start's nonce", nonceStarted},
	{"a step at another nonce is fenced", nonceStep},
	{"a step that another nonce wrote is not its own", nonceStepWritten},
	{"the end at another nonce is fenced", nonceEnd},
	{"an end that another nonce wrote is not its own", nonceEndWritten},
	{"a lease of another nonce is lost", nonceLease},
	{"a child of a parent at another nonce is fenced", nonceChild},
	{"a receive at another nonce takes no signal", nonceReceive},
	{"news of another nonce are not told", nonceNews},
}

// epochsWithOtherNonces returns epochs that have the same count as epochAt(count), but other nonces.
func epochsWithOtherNonces(count int32) []store.Epoch {
	return []store.Epoch{{Count: count}, {Count: count, Nonce: nonce + 1}, {Count: count, Nonce: nonce - 1<<31}, {Count: count, Nonce: 1<<32 - 1}}
}

// commitRunClaimedTwice returns a run that this case's worker owned from its start, and has claimed again since.
func (b *fixture) commitRunClaimedTwice() store.Run {
	b.Helper()
	r := b.commitRunningRun("")
	q := b.query(b.afterStart(2 * time.Hour))
	q.Worker = b.worker
	return b.claimOne(q, r.UUID).Run
}

func nonceClaimed(b *fixture) {
	r := b.commitPendingRun("", b.now)
	for i, nonce := range []uint32{nonce, 0, 1, 1<<32 - 1, 1 << 31} {
		q := b.query(b.afterStart(2 * time.Hour * time.Duration(i)))
		q.EpochNonce = nonce
		want := store.Epoch{Count: int32(i + 1), Nonce: nonce}
		if got := b.claimOne(q, r.UUID).Run.Epoch; got != want {
			b.Errorf("claimed: epoch %s, want %s", got, want)
		}
		if got := b.row(r.UUID).Epoch; got != want {
			b.Errorf("its row: epoch %s, want %s", got, want)
		}
		s := b.completed(r.UUID, want, want.String())
		wantOutcome(b, "a step at epoch "+want.String(), b.commitStep(s, false).Outcome, store.Written)
		b.wantRow("its epoch", s)
	}
}

func nonceStarted(b *fixture) {
	first := b.commitRunningRun("a name")
	again := first
	again.Epoch.Nonce++
	wantOutcome(b, "the same start", b.commitStart(again).Outcome, store.Written) // the store takes it for a repeated call; writes at its epoch are fenced
	wantRun(b, "the run", b.row(first.UUID), first)
	wantOutcome(b, "a step of the second start", b.commitStep(b.completed(first.UUID, again.Epoch, "second"), false).Outcome, store.Fenced)
	wantOutcome(b, "a step of the first start", b.commitStep(b.completed(first.UUID, first.Epoch, "first"), false).Outcome, store.Written)
}

func nonceStep(b *fixture) {
	r := b.commitRunClaimedTwice()
	marker, recorded := b.startedMarker(r.UUID, r.Epoch, 1, "marked"), b.completed(r.UUID, r.Epoch, "recorded")
	b.commitStep(marker, false)
	b.commitStep(recorded, false)
	want := store.RunState{Found: true, Status: store.Running, Epoch: r.Epoch}
	for _, epoch := range epochsWithOtherNonces(2) {
		batch := &store.Batch{}
		for _, name := range []string{"new", "marked", "recorded", "another"} {
			w := &store.StepWrite{Step: b.completed(r.UUID, epoch, name), RowExists: name == "marked"}
			what := "the step " + name + " at epoch " + epoch.String()
			b.commit(&store.Batch{Steps: []*store.StepWrite{w}})
			wantOutcome(b, what, w.Outcome, store.Fenced)
			wantState(b, what, w.RunState, want)
			if !w.RowExists {
				again := *w
				batch.Steps = append(batch.Steps, &again)
			}
		}
		for _, s := range []store.Step{b.startedMarker(r.UUID, epoch, 1, "begun"), b.backoff(r.UUID, epoch, 1, "tried")} {
			wantOutcome(b, "the step "+s.Name+" at epoch "+epoch.String(), b.commitStep(s, false).Outcome, store.Fenced)
		}
		b.commit(batch)
		for _, w := range batch.Steps {
			wantOutcome(b, "with others, the step "+w.Step.Name+" at epoch "+epoch.String(), w.Outcome, store.Fenced)
		}
	}
	wantSteps(b, "history", b.history(r.UUID), marker, recorded)
}

func nonceStepWritten(b *fixture) {
	r := b.commitRunClaimedTwice()
	late := b.completed(r.UUID, r.Epoch, "late")
	b.commitStep(late, false)
	b.commitOwnershipEnd(b.newCompletion(r.UUID, r.Epoch))
	for _, epoch := range append(epochsWithOtherNonces(2), r.Epoch) {
		late.Epoch = epoch
		want := store.Fenced
		if epoch == r.Epoch { // a repeated call, whose first result was lost
			want = store.Written
		}
		wantOutcome(b, "the step again at epoch "+epoch.String(), b.commitStep(late, false).Outcome, want)
	}
}

func nonceEnd(b *fixture) {
	r := b.commitRunClaimedTwice()
	before := b.row(r.UUID)
	for _, epoch := range epochsWithOtherNonces(2) {
		for what, w := range map[string]store.OwnershipEnd{
			"a finish":  b.newCompletion(r.UUID, epoch),
			"a park":    {UUID: r.UUID, Epoch: epoch, Status: store.Waiting, WakeAt: b.afterStart(time.Hour)},
			"giving it": {UUID: r.UUID, Epoch: epoch, Status: store.Pending, WakeAt: b.now},
			"a pause":   {UUID: r.UUID, Epoch: epoch, Status: store.Paused, HoldReason: "broken"},
		} {
			what += " at epoch " + epoch.String()
			w := b.commitOwnershipEnd(w)
			wantOutcome(b, what, w.Outcome, store.Fenced)
			wantState(b, what, w.RunState, store.RunState{Found: true, Status: store.Running, Epoch: r.Epoch})
		}
	}
	wantRun(b, "the run", b.row(r.UUID), before)
}

func nonceEndWritten(b *fixture) {
	finished, paused := b.commitRunClaimedTwice(), b.commitRunningRun("")
	b.commitOwnershipEnd(b.newCompletion(finished.UUID, finished.Epoch))
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	b.commitOwnershipEnd(store.OwnershipEnd{UUID: paused.UUID, Epoch: paused.Epoch, Status: store.Pending, WakeAt: b.now})
	for _, epoch := range append(epochsWithOtherNonces(2), finished.Epoch) {
		want := store.Fenced
		if epoch == finished.Epoch { // a repeated call, whose first result was lost
			want = store.Written
		}
		wantOutcome(b, "the same end at epoch "+epoch.String(), b.commitOwnershipEnd(b.newCompletion(finished.UUID, epoch)).Outcome, want)
		epoch.Count = 1
		left := store.OwnershipEnd{UUID: paused.UUID, Epoch: epoch, Status: store.Pending, WakeAt: b.now}
		wantOutcome(b, "leaving what was paused at epoch "+epoch.String(), b.commitOwnershipEnd(left).Outcome, want)
	}
}

func nonceLease(b *fixture) {
	r := b.commitRunClaimedTwice()
	before := b.row(r.UUID)
	for _, epoch := range epochsWithOtherNonces(2) {
		if got := b.renew(b.heartbeat(store.Lease{Run: r.UUID, Epoch: epoch})); !slices.Equal(got.LostRuns, []uuid.UUID{r.UUID}) {
			b.Errorf("a lease of epoch %s: lost %v, want it lost", epoch, got.LostRuns)
		}
	}
	wantRun(b, "the run", b.row(r.UUID), before)
	if got := b.renew(b.heartbeat(store.Lease{Run: r.UUID, Epoch: r.Epoch})); len(got.LostRuns) != 0 {
		b.Errorf("the lease of the run's epoch is lost")
	}
}

func nonceChild(b *fixture) {
	parent := b.commitRunClaimedTwice()
	want := store.RunState{Found: true, Status: store.Running, Epoch: parent.Epoch}
	adopted := b.child(parent, "adopted")
	b.commitChild(adopted, parent.Epoch)
	for _, epoch := range epochsWithOtherNonces(2) {
		child := b.child(parent, "charge")
		w := b.commitChild(child, epoch)
		wantOutcome(b, "a child at epoch "+epoch.String(), w.Outcome, store.Fenced)
		wantState(b, "a child at epoch "+epoch.String(), w.RunState, want)
		if rows := b.get(child.UUID.String()); rows[0] != nil {
			b.Errorf("the child at epoch %s is there", epoch)
		}
		second := b.child(parent, "adopted")
		wantOutcome(b, "a child that is there, at epoch "+epoch.String(), b.commitChild(second, epoch).Outcome, store.Fenced)
	}
}

func nonceReceive(b *fixture) {
	r := b.commitRunClaimedTwice()
	owned := r.Epoch
	message := b.commitNewSignal(r.UUID, "paid", 0)
	for _, r.Epoch = range epochsWithOtherNonces(2) {
		for _, w := range []*store.ReceiveWrite{b.receive(r, "wait", "paid"), b.timeout(r, "wait", "none")} {
			what := "a receive at epoch " + r.Epoch.String()
			wantOutcome(b, what, b.commitReceive(w).Outcome, store.Fenced)
			wantState(b, what, w.RunState, store.RunState{Found: true, Status: store.Running, Epoch: owned})
		}
	}
	wantSteps(b, "history", b.history(r.UUID))
	r.Epoch = owned
	b.wantSignalReceived("the owner's", b.commitReceive(b.receive(r, "wait", "paid")), message.Payload)
	for _, r.Epoch = range epochsWithOtherNonces(2) {
		wantOutcome(b, "what was received, at epoch "+r.Epoch.String(), b.commitReceive(b.receive(r, "wait", "paid")).Outcome, store.Fenced)
	}
}

func nonceNews(b *fixture) {
	r := b.commitRunClaimedTwice()
	b.controlExistingRuns(store.VerbPause, r.UUID)
	b.commitNewSignal(r.UUID, "paid", 0)
	told := func(epoch store.Epoch) store.OwnedRunChanges {
		got, err := b.store.OwnedRunChanges(b.ctx, b.worker, []store.Lease{{Run: r.UUID, Epoch: epoch}})
		if err != nil {
			b.Fatalf("OwnedRunChanges: %v", err)
		}
		return got
	}
	for _, epoch := range epochsWithOtherNonces(2) {
		b.wantOwnedRunChanges("at epoch "+epoch.String(), told(epoch), nil)
	}
	b.wantOwnedRunChanges("the owner's", told(r.Epoch), []store.PendingControl{{Run: r.UUID, Epoch: r.Epoch, Control: store.PausedItself}}, r.UUID)
}
