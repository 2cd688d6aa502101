package storetest

import (
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var ownedRunChangeTests = []test{
	{"nothing is asked, and nobody was woken", ownedRunChangesNone},
	{"what is asked is told until the run leaves", ownedRunChangesAsked},
	{"what is asked no more is told no more", ownedRunChangesResumed},
	{"what woke a run is told once", ownedRunChangesWoken},
	{"who was told parks as it likes", ownedRunChangesParks},
	{"of the worker's own runs, at their epochs", ownedRunChangesOwn},
	{"many runs", ownedRunChangesMany},
}

// ownedRunChanges returns the changes to the worker's runs, which it holds at epoch 1.
func (b *fixture) ownedRunChanges(worker uuid.UUID, held ...uuid.UUID) store.OwnedRunChanges {
	b.Helper()
	var leases []store.Lease
	for _, id := range held {
		leases = append(leases, store.Lease{Run: id, Epoch: epochAt(1)})
	}
	got, err := b.store.OwnedRunChanges(b.ctx, worker, leases)
	if err != nil {
		b.Fatalf("OwnedRunChanges: %v", err)
	}
	return got
}

func (b *fixture) wantOwnedRunChanges(what string, got store.OwnedRunChanges, asked []store.PendingControl, woken ...uuid.UUID) {
	b.Helper()
	order := func(l, r store.PendingControl) int { return slices.Compare(l.Run[:], r.Run[:]) }
	slices.SortFunc(got.ControlRequests, order)
	slices.SortFunc(asked, order)
	if !slices.Equal(got.ControlRequests, asked) {
		b.Errorf("%s: asked %+v, want %+v", what, got.ControlRequests, asked)
	}
	wantUUIDs(b, what+": woken", got.Woken, woken)
}

func ownedRunChangesNone(b *fixture) {
	r := b.commitRunningRun("")
	b.wantOwnedRunChanges("a run", b.ownedRunChanges(b.worker, r.UUID), nil)
	b.wantOwnedRunChanges("no run", b.ownedRunChanges(b.worker), nil)
	b.wantOwnedRunChanges("a missing run", b.ownedRunChanges(b.worker, uuid.New()), nil)
}

func ownedRunChangesAsked(b *fixture) {
	paused, cancelled, parent, quiet := b.commitRunningRun(""), b.commitRunningRun(""), b.commitRunningRun(""), b.commitRunningRun("")
	child := b.commitRunningChild(parent, "charge")
	held := []uuid.UUID{paused.UUID, cancelled.UUID, parent.UUID, child.UUID, quiet.UUID}
	b.controlExistingRuns(store.VerbPause, paused.UUID, parent.UUID)
	b.controlExistingRuns(store.VerbCancel, cancelled.UUID)
	want := []store.PendingControl{
		{Run: paused.UUID, Epoch: epochAt(1), Control: store.PausedItself},
		{Run: cancelled.UUID, Epoch: epochAt(1), Control: store.CancelRequested},
		{Run: parent.UUID, Epoch: epochAt(1), Control: store.PausedItself},
		{Run: child.UUID, Epoch: epochAt(1), Control: store.PausedByAncestor},
	}
	for _, when := range []string{"first", "again"} {
		b.wantOwnedRunChanges(when, b.ownedRunChanges(b.worker, held...), slices.Clone(want))
	}
	b.controlExistingRuns(store.VerbCancel, paused.UUID)
	want[0].Control = store.CancelRequested
	b.wantOwnedRunChanges("asked for more", b.ownedRunChanges(b.worker, held...), slices.Clone(want))
	b.commitOwnershipEnd(b.park(parent, time.Time{}))
	b.commitOwnershipEnd(b.newCompletion(child.UUID, epochAt(1)))
	b.wantOwnedRunChanges("two have left", b.ownedRunChanges(b.worker, held...), slices.Clone(want[:2]))
}

func ownedRunChangesResumed(b *fixture) {
	r := b.commitRunningRun("")
	b.controlExistingRuns(store.VerbPause, r.UUID)
	b.controlExistingRuns(store.VerbResume, r.UUID)
	b.wantOwnedRunChanges("resumed", b.ownedRunChanges(b.worker, r.UUID), nil)
}

func ownedRunChangesWoken(b *fixture) {
	signalled, parent, quiet := b.commitRunningRun(""), b.commitRunningRun(""), b.commitRunningRun("")
	child := b.commitRunningChild(parent, "charge")
	held := []uuid.UUID{signalled.UUID, parent.UUID, quiet.UUID}
	for _, when := range []string{"first", "second"} {
		b.commitNewSignal(signalled.UUID, "paid", 0)
		b.commitNewSignal(signalled.UUID, "paid", 0)
		woken := []uuid.UUID{signalled.UUID}
		if when == "first" {
			b.commitOwnershipEnd(b.childEnd(child))
			woken = append(woken, parent.UUID)
		}
		b.wantOwnedRunChanges(when, b.ownedRunChanges(b.worker, held...), nil, woken...)
		b.wantOwnedRunChanges(when+", once more", b.ownedRunChanges(b.worker, held...), nil)
	}
	b.controlExistingRuns(store.VerbPause, signalled.UUID)
	b.commitNewSignal(signalled.UUID, "paid", 0)
	both := []store.PendingControl{{Run: signalled.UUID, Epoch: epochAt(1), Control: store.PausedItself}}
	b.wantOwnedRunChanges("both", b.ownedRunChanges(b.worker, held...), both, signalled.UUID)
	b.wantOwnedRunChanges("both, once more", b.ownedRunChanges(b.worker, held...), both)
}

func ownedRunChangesParks(b *fixture) {
	r := b.commitRunningRun("")
	b.commitNewSignal(r.UUID, "paid", 0)
	b.ownedRunChanges(b.worker, r.UUID)
	b.commitOwnershipEnd(b.park(r, b.afterStart(time.Hour)))
	if got := b.row(r.UUID); !got.WakeAt.Equal(b.afterStart(time.Hour)) {
		b.Errorf("parked after the news: wakes at %s, want as given", show(got.WakeAt))
	}
}

func ownedRunChangesOwn(b *fixture) {
	stranger := uuid.New()
	theirs := b.owned(stranger, "theirs")
	b.commitNewSignal(theirs.UUID, "paid", 0)
	b.controlExistingRuns(store.VerbPause, theirs.UUID)
	b.wantOwnedRunChanges("another's run", b.ownedRunChanges(b.worker), nil)
	b.wantOwnedRunChanges("another's run, thought to be held", b.ownedRunChanges(b.worker, theirs.UUID), nil)
	b.wantOwnedRunChanges("its owner's", b.ownedRunChanges(stranger, theirs.UUID), []store.PendingControl{{Run: theirs.UUID, Epoch: epochAt(1), Control: store.PausedItself}}, theirs.UUID)

	lost := b.commitPendingRun("lost", b.now)
	first := b.query(b.now)
	b.claimOne(first, lost.UUID)
	second := b.query(first.LeaseUntil)
	for _, c := range b.claim(second).Runs {
		if c.Run.UUID == lost.UUID && c.Run.Epoch != epochAt(2) {
			b.Fatalf("claimed again at epoch %s, want 2", c.Run.Epoch)
		}
	}
	b.controlExistingRuns(store.VerbCancel, lost.UUID)
	b.commitNewSignal(lost.UUID, "paid", 0)
	b.wantOwnedRunChanges("a run that was lost", b.ownedRunChanges(first.Worker, lost.UUID), nil)
	b.wantOwnedRunChanges("its new owner's, as it once held it", b.ownedRunChanges(second.Worker, lost.UUID), nil)
	got, err := b.store.OwnedRunChanges(b.ctx, second.Worker, []store.Lease{{Run: lost.UUID, Epoch: epochAt(2)}})
	if err != nil {
		b.Fatalf("OwnedRunChanges: %v", err)
	}
	b.wantOwnedRunChanges("its new owner's", got, []store.PendingControl{{Run: lost.UUID, Epoch: epochAt(2), Control: store.CancelRequested}}, lost.UUID)
}

func ownedRunChangesMany(b *fixture) {
	batch := &store.Batch{}
	var held, woken, paused []uuid.UUID
	var asked []store.PendingControl
	for i := range 300 {
		r := b.newRunningRun("")
		batch.Starts = append(batch.Starts, &store.StartWrite{Run: r})
		held = append(held, r.UUID)
		if i%3 == 0 {
			woken = append(woken, r.UUID)
			w := b.message(r.UUID, "paid", 0)
			batch.Signals = append(batch.Signals, &w)
		}
		if i%5 == 0 {
			paused = append(paused, r.UUID)
			asked = append(asked, store.PendingControl{Run: r.UUID, Epoch: epochAt(1), Control: store.PausedItself})
		}
	}
	b.commit(&store.Batch{Starts: batch.Starts})
	b.commit(&store.Batch{Signals: batch.Signals})
	b.controlExistingRuns(store.VerbPause, paused...)
	b.wantOwnedRunChanges("many", b.ownedRunChanges(b.worker, held...), slices.Clone(asked), woken...)
	b.wantOwnedRunChanges("many, once more", b.ownedRunChanges(b.worker, held...), asked)
}
