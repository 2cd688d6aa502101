package storetest

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var signals = []test{
	{"one that comes before the wait is kept", signalKept},
	{"first in, first out", signalOrder},
	{"a key is used once", signalKey},
	{"a replay is written, and is no second one", signalReplay},
	{"an ended run fences", signalEnded},
	{"a missing run fences", signalMissing},
	{"it wakes a waiting run", signalWakes},
	{"it is kept for a running one", signalMarks},
	{"a new or paused run does not start for it", signalLeaves},
	{"what nobody has received is counted, also when the run has ended", signalUnreceived},
	{"a key that was used is found when the run has ended", signalKeyEnded},
	{"every payload is kept bytewise", signalPayloads},
	{"every name and key is kept bytewise", signalNames},
	{"a large batch in any order", signalMany},
	{"a bad value fails all or nothing", signalBadValue},
	{"many senders: none lost, none twice", func(b *fixture) { pairSenders(b, b.store) }},
	{"against a park", func(b *fixture) { raceWake(b, b.store) }},
}

// message returns a signal whose payload contains its name and ID. It was created the given number
// of seconds after the beginning of the case.
func (b *fixture) message(run uuid.UUID, name string, second int) store.SignalWrite {
	id := uuid.Must(uuid.NewV7())
	return store.SignalWrite{
		Run: run, ID: id, Name: name, Payload: []byte(fmt.Sprintf(`"%s %s"`, name, id)), CreatedAt: b.afterStart(time.Duration(second) * time.Second),
	}
}

func (b *fixture) commitSignal(w store.SignalWrite) *store.SignalWrite {
	b.Helper()
	b.commit(&store.Batch{Signals: []*store.SignalWrite{&w}})
	return &w
}

// commitNewSignal commits a signal, which must be new.
func (b *fixture) commitNewSignal(run uuid.UUID, name string, second int) store.SignalWrite {
	b.Helper()
	w := b.message(run, name, second)
	wantOutcome(b, "signal "+name, b.commitSignal(w).Outcome, store.Written)
	return w
}

// wantExisting compares the existing signal that an adopted write returned.
func wantExisting(b *fixture, what string, got *store.SignalWrite, want store.SignalWrite) {
	b.Helper()
	if got == nil {
		b.Errorf("%s: no signal is attached", what)
		return
	}
	same := *got
	same.Outcome, same.ExistingSignal, same.RunState = want.Outcome, want.ExistingSignal, want.RunState
	wantFields(b, what+": the signal attached", same, want)
}

func signalKept(b *fixture) {
	r := b.commitRunningRun("")
	w := b.commitNewSignal(r.UUID, "paid", 0)
	wantSteps(b, "the history, which no signal changes", b.history(r.UUID))
	got := b.row(r.UUID)
	wantRun(b, "the run, which goes on", got, r)
	b.wantSignalReceived("the receive", b.commitReceive(b.receive(r, "wait", "paid")), w.Payload)
}

func signalOrder(b *fixture) {
	r := b.commitRunningRun("")
	var want []store.SignalWrite
	for i := range 30 {
		w := b.message(r.UUID, "paid", i/3) // the IDs order the three signals of one time
		if i%2 == 0 {
			w.ID = uuid.New()
		}
		want = append(want, w)
	}
	for _, i := range rand.Perm(len(want)) {
		b.commitSignal(want[i])
		b.commitNewSignal(r.UUID, "other", i)
	}
	slices.SortFunc(want, func(l, r store.SignalWrite) int {
		if c := l.CreatedAt.Compare(r.CreatedAt); c != 0 {
			return c
		}
		return bytes.Compare(l.ID[:], r.ID[:])
	})
	for i, w := range want {
		name := fmt.Sprint("wait-", i)
		b.wantSignalReceived(name, b.commitReceive(b.receive(r, name, "paid")), w.Payload)
	}
	b.wantWaiting("one more", b.commitReceive(b.receive(r, "one more", "paid")))
}

func signalKey(b *fixture) {
	r, stranger := b.commitRunningRun(""), b.commitRunningRun("")
	first := b.message(r.UUID, "paid", 0)
	first.Key = "payment-1"
	wantOutcome(b, "the first", b.commitSignal(first).Outcome, store.Written)
	again := func(when string) {
		b.Helper()
		for what, change := range map[string]func(*store.SignalWrite){
			"the same again":                  func(w *store.SignalWrite) { w.Payload = first.Payload },
			"another payload":                 func(w *store.SignalWrite) { w.Payload = []byte(`"other"`) },
			"another name":                    func(w *store.SignalWrite) { w.Name = "refunded" },
			"a time before it":                func(w *store.SignalWrite) { w.CreatedAt = b.afterStart(-time.Hour) },
			"no payload, and everything else": func(w *store.SignalWrite) { w.Payload, w.Name = nil, "void" },
		} {
			second := b.message(r.UUID, "paid", 1)
			second.Key = first.Key
			change(&second)
			w := b.commitSignal(second)
			wantOutcome(b, what+", "+when, w.Outcome, store.AlreadyRecorded)
			wantExisting(b, what+", "+when, w.ExistingSignal, first)
		}
	}
	again("while it waits")
	b.wantSignalReceived("the receive", b.commitReceive(b.receive(r, "wait", "paid")), first.Payload)
	again("when it was taken")
	b.wantWaiting("a second receive", b.commitReceive(b.receive(r, "wait more", "paid")))
	elsewhere := b.message(stranger.UUID, "paid", 0)
	elsewhere.Key = first.Key
	wantOutcome(b, "the key in another run", b.commitSignal(elsewhere).Outcome, store.Written)
	for range 3 {
		b.commitNewSignal(r.UUID, "without", 0) // two signals without a key do not have the same key
	}
	one, two := b.message(r.UUID, "twice", 0), b.message(r.UUID, "twice", 1)
	one.Key, two.Key = "both", "both"
	b.commit(&store.Batch{Signals: []*store.SignalWrite{&one, &two}})
	winner, loser := &one, &two
	if one.Outcome != store.Written {
		winner, loser = loser, winner
	}
	wantOutcome(b, "one of two in a batch", winner.Outcome, store.Written)
	wantOutcome(b, "the other of two in a batch", loser.Outcome, store.AlreadyRecorded)
	want := *winner
	want.Outcome = loser.Outcome
	wantExisting(b, "the other of two in a batch", loser.ExistingSignal, want)
}

func signalReplay(b *fixture) {
	r := b.commitRunningRun("")
	plain, keyed := b.message(r.UUID, "paid", 0), b.message(r.UUID, "paid", 1)
	keyed.Key = "payment-1"
	batch := &store.Batch{Signals: []*store.SignalWrite{&plain, &keyed}}
	again := func(when string) {
		b.Helper()
		for _, w := range batch.Signals {
			w.Outcome, w.ExistingSignal, w.RunState = store.Fenced, &store.SignalWrite{}, store.RunState{Found: true} // results of an earlier try
		}
		b.commit(batch)
		for _, w := range batch.Signals {
			wantOutcome(b, "key "+quoteName(w.Key)+", "+when, w.Outcome, store.Written)
			if w.ExistingSignal != nil {
				b.Errorf("key %q, %s: a signal is attached to a written one", w.Key, when)
			}
		}
	}
	again("first")
	again("replayed")
	b.wantSignalReceived("the first receive", b.commitReceive(b.receive(r, "one", "paid")), plain.Payload)
	again("replayed when one was taken")
	b.wantSignalReceived("the second receive", b.commitReceive(b.receive(r, "two", "paid")), keyed.Payload)
	again("replayed when both were")
	b.wantWaiting("a third receive", b.commitReceive(b.receive(r, "three", "paid")))
	b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
	again("replayed after the run's end")
}

func signalEnded(b *fixture) {
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.commitRunningRun("")
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
		before := b.row(r.UUID)
		for _, key := range []string{"", "payment-1"} {
			w := b.message(r.UUID, "paid", 0)
			w.Key = key
			got := b.commitSignal(w)
			wantOutcome(b, "a signal to a run that is "+status.String(), got.Outcome, store.Fenced)
			wantState(b, status.String(), got.RunState, store.RunState{Found: true, Status: status, Epoch: epochAt(1)})
		}
		wantRun(b, "the run, "+status.String(), b.row(r.UUID), before)
	}
	r := b.commitRunningRun("")
	last, end := b.message(r.UUID, "paid", 0), b.newCompletion(r.UUID, epochAt(1))
	b.commit(&store.Batch{Signals: []*store.SignalWrite{&last}, OwnershipEnds: []*store.OwnershipEnd{&end}})
	wantOutcome(b, "a signal with the end", last.Outcome, store.Written)
	wantOutcome(b, "the end with a signal", end.Outcome, store.Written)
}

func signalMissing(b *fixture) {
	id, _ := store.NewRootIdentity("")
	w := b.commitSignal(b.message(id, "paid", 0))
	wantOutcome(b, "a signal to no run", w.Outcome, store.Fenced)
	wantState(b, "a signal to no run", w.RunState, store.RunState{})
}

func signalWakes(b *fixture) {
	for _, wakeAt := range []time.Time{{}, b.afterStart(5 * time.Hour)} {
		r := b.commitRunningRun("")
		b.commitReceive(b.receive(r, "wait", "paid"))
		b.commitOwnershipEnd(b.park(r, wakeAt))
		if got := b.claim(b.query(b.afterStart(2 * time.Hour))); len(got.Runs) != 0 {
			b.Fatalf("claimed before the signal: %v", describeClaims(got.Runs))
		}
		w := b.commitNewSignal(r.UUID, "paid", 0)
		b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
		r.Epoch = epochAt(2)
		b.wantSignalReceived("the receive", b.commitReceive(b.receive(r, "wait", "paid")), w.Payload)
		b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(2)))
	}
	child := b.commitRunningChild(b.commitRunningRun(""), "charge")
	b.commitOwnershipEnd(b.park(child, time.Time{}))
	b.commitNewSignal(child.UUID, "paid", 0)
	b.claimOne(b.query(b.afterStart(time.Minute)), child.UUID)
}

func signalMarks(b *fixture) {
	for _, wakeAt := range []time.Time{{}, b.afterStart(5 * time.Hour)} {
		r := b.commitRunningRun("")
		b.commitNewSignal(r.UUID, "paid", 0)
		b.commitOwnershipEnd(b.park(r, wakeAt))
		if got := b.row(r.UUID); got.Status != store.Waiting || !got.WakeAt.Equal(b.park(r, wakeAt).Now) {
			b.Errorf("parked after a signal: %s, wakes at %s, want waiting, at once", got.Status, show(got.WakeAt))
		}
		b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
		r.Epoch = epochAt(2)
		b.commitOwnershipEnd(b.park(r, wakeAt))
		if got := b.row(r.UUID); !got.WakeAt.Equal(wakeAt) {
			b.Errorf("parked again: wakes at %s, want %s", show(got.WakeAt), show(wakeAt))
		}
	}
	r := b.commitRunningRun("") // receives no signal, gets a signal, and parks, all in one batch
	rec, w, park := b.receive(r, "wait", "paid"), b.message(r.UUID, "paid", 0), b.park(r, time.Time{})
	b.commit(&store.Batch{Receives: []*store.ReceiveWrite{rec}, Signals: []*store.SignalWrite{&w}, OwnershipEnds: []*store.OwnershipEnd{&park}})
	b.wantWaiting("a receive before the signal of its batch", rec)
	b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID)
}

func signalLeaves(b *fixture) {
	later := b.commitPendingRun("later", b.afterStart(50*time.Hour))
	paused := b.commitRunningRun("paused")
	b.commitOwnershipEnd(b.park(paused, time.Time{}))
	b.controlExistingRuns(store.VerbPause, paused.UUID)
	for _, r := range []store.Run{later, paused} {
		before := b.row(r.UUID)
		b.commitNewSignal(r.UUID, "paid", 0)
		wantRun(b, "the run, "+r.Name, b.row(r.UUID), before)
	}
	b.controlExistingRuns(store.VerbResume, paused.UUID)
	b.claimOne(b.query(b.afterStart(time.Minute)), paused.UUID)
	paused.Epoch = epochAt(2)
	if rec := b.commitReceive(b.receive(paused, "wait", "paid")); rec.RecordedStep == nil || rec.RecordedStep.Status != store.StepCompleted {
		b.Error("what was sent to a paused run is not received when it was resumed")
	}
}

func signalPayloads(b *fixture) {
	r := b.commitRunningRun("")
	for name, payload := range oddPayloads() {
		w := b.message(r.UUID, name, 0)
		w.Payload, w.Key = payload, name
		wantOutcome(b, name, b.commitSignal(w).Outcome, store.Written)
		wantOutcome(b, name+", replayed", b.commitSignal(w).Outcome, store.Written)
		second := w
		second.ID = uuid.New()
		wantExisting(b, name, b.commitSignal(second).ExistingSignal, w)
		b.wantSignalReceived(name, b.commitReceive(b.receive(r, "wait for "+name, name)), payload)
	}
}

func signalNames(b *fixture) {
	r := b.commitRunningRun("")
	batch := &store.Batch{}
	for _, name := range oddNames() {
		w := b.message(r.UUID, name, 0)
		w.Key, w.Payload = name, []byte("the signal "+name)
		batch.Signals = append(batch.Signals, &w)
	}
	b.commit(batch)
	for _, w := range batch.Signals {
		wantOutcome(b, "signal "+quoteName(w.Name), w.Outcome, store.Written)
		if w.Key != "" {
			second := b.message(r.UUID, "", 0)
			second.Key = w.Key
			wantOutcome(b, "the key "+quoteName(w.Key)+" again", b.commitSignal(second).Outcome, store.AlreadyRecorded)
		}
		b.wantSignalReceived("signal "+quoteName(w.Name), b.commitReceive(b.receive(r, w.Name, w.Name)), w.Payload)
	}
}

func signalMany(b *fixture) {
	var runs []store.Run
	batch := &store.Batch{}
	for i := range 20 {
		r := b.commitRunningRun("")
		runs = append(runs, r)
		for j := range 15 {
			w := b.message(r.UUID, "paid", j)
			batch.Signals = append(batch.Signals, &w)
		}
		switch i % 4 {
		case 1:
			b.commitOwnershipEnd(b.park(r, time.Time{}))
		case 2:
			b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
		}
	}
	rand.Shuffle(len(batch.Signals), func(i, j int) { batch.Signals[i], batch.Signals[j] = batch.Signals[j], batch.Signals[i] })
	b.commit(batch)
	for _, w := range batch.Signals {
		want := store.Written
		if i := slices.IndexFunc(runs, func(r store.Run) bool { return r.UUID == w.Run }); i%4 == 2 {
			want = store.Fenced
		}
		wantOutcome(b, "a signal", w.Outcome, want)
	}
	if got := b.claim(b.query(b.afterStart(time.Minute))); len(got.Runs) != 5 {
		b.Errorf("claimed %d runs, want the 5 that waited", len(got.Runs))
	}
	for j := range 15 {
		name := fmt.Sprint("wait-", j)
		rec := b.commitReceive(b.receive(runs[0], name, "paid"))
		if rec.RecordedStep == nil || rec.RecordedStep.Status != store.StepCompleted {
			b.Errorf("receive %d of the first run took nothing", j)
		}
	}
}

func signalBadValue(b *fixture) {
	r := b.commitRunningRun("")
	for _, bad := range []string{"a\x00b", "\xff"} {
		for place, spoil := range map[string]func(*store.SignalWrite){
			"a name": func(w *store.SignalWrite) { w.Name = bad },
			"a key":  func(w *store.SignalWrite) { w.Key = bad },
		} {
			good, spoiled := b.message(r.UUID, "good", 0), b.message(r.UUID, "spoiled", 0)
			spoil(&spoiled)
			err := b.store.Commit(b.ctx, &store.Batch{Signals: []*store.SignalWrite{&good, &spoiled}})
			if err != nil && !errors.Is(err, store.ErrBadData) {
				b.Errorf("%q as %s: got %v, want ErrBadData or success", bad, place, err)
			}
			rec := b.commitReceive(b.receive(r, uuid.NewString(), "good"))
			if taken := rec.RecordedStep.Status == store.StepCompleted; taken != (err == nil) {
				b.Errorf("%q as %s: Commit returned %v, and the good signal is there: %v", bad, place, err, taken)
			}
		}
	}
}
