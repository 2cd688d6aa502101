package storetest

import (
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func (b *fixture) wantUnreceived(what string, runs []uuid.UUID, want ...store.SignalCount) {
	b.Helper()
	got, err := b.store.CountUnreceivedSignals(b.ctx, runs)
	if err != nil || !slices.Equal(got, want) {
		b.Errorf("%s: %v signals wait (%v), want %v", what, got, err, want)
	}
}

func signalUnreceived(b *fixture) {
	one, two, none := b.commitRunningRun("one"), b.commitRunningRun("two"), b.commitRunningRun("none")
	all := []uuid.UUID{two.UUID, none.UUID, uuid.New(), one.UUID}
	b.wantUnreceived("before any", all)
	b.wantUnreceived("of no run", nil)
	b.commitNewSignal(one.UUID, "paid", 1)
	b.commitNewSignal(one.UUID, "paid", 2)
	b.commitNewSignal(one.UUID, "changed", 3)
	b.commitNewSignal(two.UUID, "paid", 1)
	b.wantUnreceived("sent", all, store.SignalCount{Run: two.UUID, Name: "paid", Count: 1},
		store.SignalCount{Run: one.UUID, Name: "changed", Count: 1}, store.SignalCount{Run: one.UUID, Name: "paid", Count: 2})
	b.commitReceive(b.receive(one, "wait", "paid"))
	b.commitReceive(b.receive(two, "wait", "paid"))
	b.commitOwnershipEnd(b.newCompletion(one.UUID, one.Epoch))
	b.wantUnreceived("received", all, store.SignalCount{Run: one.UUID, Name: "changed", Count: 1}, store.SignalCount{Run: one.UUID, Name: "paid", Count: 1})
}

// signalKeyEnded repeats a send with a key, as a sender does after a crash. The receiver may have
// ended in the meantime.
func signalKeyEnded(b *fixture) {
	r := b.commitRunningRun("r")
	first := b.message(r.UUID, "paid", 1)
	first.Key = "once"
	wantOutcome(b, "signal", b.commitSignal(first).Outcome, store.Written)
	b.commitReceive(b.receive(r, "wait", "paid"))
	b.commitOwnershipEnd(b.newCompletion(r.UUID, r.Epoch))
	again := b.message(r.UUID, "paid", 2)
	again.Key = "once"
	got := b.commitSignal(again)
	wantOutcome(b, "signal again", got.Outcome, store.AlreadyRecorded)
	wantExisting(b, "signal again", got.ExistingSignal, first)
	other := b.message(r.UUID, "paid", 3)
	other.Key = "another"
	wantOutcome(b, "another signal", b.commitSignal(other).Outcome, store.Fenced)
}
