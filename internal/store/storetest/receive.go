package storetest

import (
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/testsize"
)

var receives = []test{
	{"none is there: the run waits, until the time first given", receiveWaits},
	{"what is waited for is taken", receiveTakes},
	{"of its own run and name alone", receiveOwn},
	{"the next owner keeps the time", receiveTakenOver},
	{"the next attempt has its own time", receiveNextAttempt},
	{"an end is recorded as given when none is there", receiveTimeout},
	{"a signal that is there goes before the end", receiveSignalFirst},
	{"a signal that came after the time stays for another receive", receiveLate},
	{"the store stamps what it is sent, whatever its sender's time", receiveStamped},
	{"a wait that begins takes what is there", receiveBegins},
	{"a pause past the time makes a signal late", receivePaused},
	{"frozen timers keep it in time", receiveFrozen},
	{"an ended step takes nothing", receiveEnded},
	{"a replay takes nothing", receiveReplay},
	{"an older epoch, and what does not run, are fenced", receiveFenced},
	{"several in one batch", receiveSeveral},
	{"what was asked of the run is told", receiveAsked},
	{"a signal against the end of the wait", func(b *fixture) { raceTimeout(b, b.store) }},
}

// receive returns a receive that waits for the signal for an hour, at the run's epoch.
func (b *fixture) receive(r store.Run, step, signal string) *store.ReceiveWrite {
	s := b.startedMarker(r.UUID, r.Epoch, 1, step)
	s.Kind, s.NextAt = store.KindReceive, b.afterStart(time.Hour)
	return &store.ReceiveWrite{Step: s, Signal: signal}
}

// timeout returns the write that ends the wait of receive, with the same arguments, by its timeout.
func (b *fixture) timeout(r store.Run, step, signal string) *store.ReceiveWrite {
	w := b.receive(r, step, signal)
	w.Step.Status, w.Step.Error, w.Step.EndedAt = store.StepFailed, []byte(`"late"`), b.afterStart(2*time.Hour)
	return w
}

func (b *fixture) commitReceive(w *store.ReceiveWrite) *store.ReceiveWrite {
	b.Helper()
	b.commit(&store.Batch{Receives: []*store.ReceiveWrite{w}})
	return w
}

// wantSignalReceived checks that the receive took a signal with the payload, and compares its row with the
// returned one.
func (b *fixture) wantSignalReceived(what string, w *store.ReceiveWrite, payload []byte) {
	b.Helper()
	wantOutcome(b, what, w.Outcome, store.Written)
	if w.RecordedStep == nil {
		b.Errorf("%s: no row is attached", what)
		return
	}
	want := *w.RecordedStep
	want.Run, want.Name, want.Kind, want.Status, want.Attempt = w.Step.Run, w.Step.Name, w.Step.Kind, store.StepCompleted, w.Step.Attempt
	want.Epoch, want.Output, want.Error = w.Step.Epoch, payload, nil
	wantFields(b, what+": the row attached", *w.RecordedStep, want)
	b.wantRow(what, *w.RecordedStep)
}

// wantWaiting checks that the receive found no signal.
func (b *fixture) wantWaiting(what string, w *store.ReceiveWrite) {
	b.Helper()
	wantOutcome(b, what, w.Outcome, store.Written)
	wantRecorded(b, what, w.RecordedStep, w.Step)
	b.wantRow(what, w.Step)
}

// wantRow compares one checkpoint with the row in the history of its run.
func (b *fixture) wantRow(what string, want store.Step) {
	b.Helper()
	for _, s := range b.history(want.Run) {
		if s.Name == want.Name {
			wantFields(b, what+": its checkpoint", s, want)
			return
		}
	}
	b.Errorf("%s: there is no checkpoint %s", what, quoteName(want.Name))
}

func receiveWaits(b *fixture) {
	r := b.commitRunningRun("")
	first := b.receive(r, "wait", "paid")
	b.wantWaiting("first", b.commitReceive(first))
	b.wantWaiting("replayed", b.commitReceive(first))
	later := b.receive(r, "wait", "paid")
	later.Step.StartedAt, later.Step.NextAt = b.afterStart(time.Minute), b.afterStart(9*time.Hour)
	b.commitReceive(later)
	wantOutcome(b, "a later look", later.Outcome, store.Written)
	wantRecorded(b, "a later look", later.RecordedStep, first.Step)
	wantSteps(b, "history", b.history(r.UUID), first.Step)
	forever := b.receive(r, "forever", "paid")
	forever.Step.NextAt = time.Time{}
	b.wantWaiting("without a time", b.commitReceive(forever))
	wantRun(b, "the run, which no receive changes", b.row(r.UUID), r)
}

func receiveTakes(b *fixture) {
	r := b.commitRunningRun("")
	b.commitReceive(b.receive(r, "wait", "paid"))
	one, two := b.commitNewSignal(r.UUID, "paid", 0), b.commitNewSignal(r.UUID, "paid", 1)
	later := b.receive(r, "wait", "paid")
	later.Step.StartedAt, later.Step.NextAt, later.Step.EndedAt = b.afterStart(time.Minute), b.afterStart(9*time.Hour), b.afterStart(time.Minute)
	b.wantSignalReceived("the one that waited", b.commitReceive(later), one.Payload)
	if got := later.RecordedStep; got != nil && (!got.StartedAt.Equal(b.now) || !got.EndedAt.Equal(b.afterStart(time.Minute))) {
		b.Errorf("it began to wait at %s and ended at %s, want %s and %s", show(got.StartedAt), show(got.EndedAt), show(b.now), show(b.afterStart(time.Minute)))
	}
	b.wantSignalReceived("one that never waited", b.commitReceive(b.receive(r, "next", "paid")), two.Payload)
	b.wantWaiting("one more", b.commitReceive(b.receive(r, "more", "paid")))
}

func receiveOwn(b *fixture) {
	r, other := b.commitRunningRun("r"), b.commitRunningRun("other")
	child := b.commitRunningChild(r, "child")
	b.commitNewSignal(r.UUID, "other", 0)
	b.commitNewSignal(r.UUID, "paid ", 0)
	b.commitNewSignal(r.UUID, "", 0)
	b.commitNewSignal(other.UUID, "paid", 0)
	b.commitNewSignal(child.UUID, "paid", 0)
	b.wantWaiting("the receive", b.commitReceive(b.receive(r, "wait", "paid")))
}

func receiveTakenOver(b *fixture) {
	r := b.commitPendingRun("", b.now)
	b.claimOne(b.query(b.now), r.UUID)
	r.Epoch = epochAt(1)
	first := b.commitReceive(b.receive(r, "wait", "paid"))
	b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
	r.Epoch = epochAt(2)
	second := b.receive(r, "wait", "paid")
	second.Step.StartedAt, second.Step.NextAt = b.afterStart(2*time.Hour), b.afterStart(9*time.Hour)
	b.commitReceive(second)
	wantOutcome(b, "the next owner's look", second.Outcome, store.Written)
	if got := second.RecordedStep; got == nil || got.Status != store.StepStarted || !got.NextAt.Equal(first.Step.NextAt) || !got.StartedAt.Equal(first.Step.StartedAt) {
		b.Errorf("the next owner's look: got %+v, want it started with the times of the first", got)
	}
	w := b.commitNewSignal(r.UUID, "paid", 0)
	b.wantSignalReceived("the next owner's second look", b.commitReceive(second), w.Payload)
}

func receiveNextAttempt(b *fixture) {
	r := b.commitRunningRun("")
	b.commitReceive(b.receive(r, "wait", "paid"))
	next := b.receive(r, "wait", "paid")
	next.Step.Attempt, next.Step.NextAt = 2, b.afterStart(5*time.Hour)
	b.wantWaiting("the next attempt", b.commitReceive(next))
	last := b.receive(r, "wait", "paid")
	last.Step.Attempt, last.Step.NextAt = 3, time.Time{}
	b.wantWaiting("the last attempt, without a time", b.commitReceive(last))
	w := b.commitNewSignal(r.UUID, "paid", 0)
	b.wantSignalReceived("the last attempt", b.commitReceive(last), w.Payload)
}

func receiveTimeout(b *fixture) {
	r := b.commitRunningRun("")
	b.commitReceive(b.receive(r, "failed", "paid"))
	b.commitReceive(b.receive(r, "completed", "paid"))
	failed, completed, at := b.timeout(r, "failed", "paid"), b.timeout(r, "completed", "paid"), b.timeout(r, "at once", "paid")
	completed.Step.Status, completed.Step.Output, completed.Step.Error = store.StepCompleted, []byte(`"default"`), nil
	for _, w := range []*store.ReceiveWrite{failed, completed, at} {
		b.wantWaiting(w.Step.Name, b.commitReceive(w))
	}
	b.commitNewSignal(r.UUID, "paid", 0)
	for _, w := range []*store.ReceiveWrite{failed, completed, at} {
		late := b.commitReceive(b.receive(r, w.Step.Name, "paid"))
		wantOutcome(b, "a look after it has "+w.Step.Name, late.Outcome, store.AlreadyRecorded)
		wantRecorded(b, "a look after it has "+w.Step.Name, late.RecordedStep, w.Step)
	}
}

func receiveSignalFirst(b *fixture) {
	r := b.commitRunningRun("")
	b.commitReceive(b.receive(r, "wait", "paid"))
	w := b.commitNewSignal(r.UUID, "paid", 0)
	b.wantSignalReceived("the end of the wait", b.commitReceive(b.timeout(r, "wait", "paid")), w.Payload)
	w = b.commitNewSignal(r.UUID, "paid", 1)
	b.wantSignalReceived("an end at once", b.commitReceive(b.timeout(r, "none", "paid")), w.Payload)
}

func receiveEnded(b *fixture) {
	r := b.commitRunningRun("")
	first := b.commitNewSignal(r.UUID, "paid", 0)
	taken := b.commitReceive(b.receive(r, "taken", "paid"))
	b.wantSignalReceived("the first", taken, first.Payload)
	row := *taken.RecordedStep
	late := b.commitReceive(b.timeout(r, "late", "paid"))
	second := b.commitNewSignal(r.UUID, "paid", 1)
	for _, change := range []func(*store.ReceiveWrite){
		func(w *store.ReceiveWrite) { w.Step.Attempt = 2 },
		func(w *store.ReceiveWrite) {
			w.Step.Attempt, w.Step.Status, w.Step.Error = 2, store.StepFailed, []byte(`"no"`)
		},
	} {
		one, two := b.receive(r, "taken", "paid"), b.receive(r, "late", "paid")
		change(one)
		change(two)
		wantOutcome(b, "over a taken one", b.commitReceive(one).Outcome, store.AlreadyRecorded)
		wantRecorded(b, "over a taken one", one.RecordedStep, row)
		wantOutcome(b, "over a late one", b.commitReceive(two).Outcome, store.AlreadyRecorded)
		wantRecorded(b, "over a late one", two.RecordedStep, late.Step)
	}
	b.wantSignalReceived("what none of them took", b.commitReceive(b.receive(r, "next", "paid")), second.Payload)
}

// receiveReplay repeats receives whose results were lost. The store returns the recorded row, and
// takes no further signal.
func receiveReplay(b *fixture) {
	r := b.commitRunningRun("")
	first, second := b.commitNewSignal(r.UUID, "paid", 0), b.commitNewSignal(r.UUID, "paid", 1)
	w := b.commitReceive(b.receive(r, "wait", "paid"))
	b.wantSignalReceived("the first", w, first.Payload)
	row := *w.RecordedStep
	late := b.commitReceive(b.timeout(r, "late", "never"))
	for range 2 {
		for _, w := range []*store.ReceiveWrite{w, late} {
			w.Outcome, w.RecordedStep = store.Fenced, &store.Step{}
			if b.commitReceive(w); w.Outcome != store.Written && w.Outcome != store.AlreadyRecorded {
				b.Errorf("%s, replayed: got %s, want written or adopted", w.Step.Name, outcomeWords[w.Outcome])
			}
		}
		wantRecorded(b, "replayed", w.RecordedStep, row)
		wantRecorded(b, "late, replayed", late.RecordedStep, late.Step)
	}
	b.wantSignalReceived("what the replay did not take", b.commitReceive(b.receive(r, "next", "paid")), second.Payload)
}

func receiveFenced(b *fixture) {
	id, _ := store.NewRootIdentity("")
	w := b.commitReceive(b.receive(store.Run{UUID: id, Epoch: epochAt(1)}, "wait", "paid"))
	wantOutcome(b, "no run", w.Outcome, store.Fenced)
	wantState(b, "no run", w.RunState, store.RunState{})
	r := b.commitPendingRun("", b.now)
	b.claimOne(b.query(b.now), r.UUID)
	b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
	message := b.commitNewSignal(r.UUID, "paid", 0)
	for _, r.Epoch = range []store.Epoch{epochAt(1), epochAt(3)} {
		for _, w := range []*store.ReceiveWrite{b.receive(r, "wait", "paid"), b.timeout(r, "wait", "none")} {
			what := fmt.Sprintf("epoch %s of a run at 2, %s", r.Epoch, w.Step.Status)
			wantOutcome(b, what, b.commitReceive(w).Outcome, store.Fenced)
			wantState(b, what, w.RunState, store.RunState{Found: true, Status: store.Running, Epoch: epochAt(2)})
		}
	}
	wantSteps(b, "history", b.history(r.UUID))
	r.Epoch = epochAt(2)
	taken := b.commitReceive(b.receive(r, "wait", "paid"))
	b.wantSignalReceived("the owner's", taken, message.Payload)
	r.Epoch = epochAt(1)
	wantOutcome(b, "a superseded one's of what was taken", b.commitReceive(b.receive(r, "wait", "paid")).Outcome, store.Fenced)
	for _, status := range []store.Status{store.Pending, store.Waiting, store.Paused, store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.commitRunningRun("")
		b.commitNewSignal(r.UUID, "paid", 0)
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status, EndedAt: b.now})
		w := b.commitReceive(b.receive(r, "wait", "paid"))
		wantOutcome(b, "a run that is "+status.String(), w.Outcome, store.Fenced)
		wantState(b, status.String(), w.RunState, releasedRunState(status))
		wantSteps(b, status.String(), b.history(r.UUID))
	}
}

func receiveSeveral(b *fixture) {
	r, other := b.commitRunningRun("r"), b.commitRunningRun("other")
	want := map[string]bool{string(b.commitNewSignal(r.UUID, "paid", 0).Payload): true, string(b.commitNewSignal(r.UUID, "paid", 1).Payload): true}
	third := b.commitNewSignal(r.UUID, "paid", 2)
	sold := b.commitNewSignal(r.UUID, "sold", 0)
	batch := &store.Batch{Receives: []*store.ReceiveWrite{
		b.receive(r, "b", "paid"), b.receive(other, "c", "paid"), b.receive(r, "c", "sold"), b.receive(r, "a", "paid"),
	}}
	b.commit(batch)
	for _, w := range []*store.ReceiveWrite{batch.Receives[0], batch.Receives[3]} {
		wantOutcome(b, w.Step.Name, w.Outcome, store.Written)
		if w.RecordedStep == nil || !want[string(w.RecordedStep.Output)] {
			b.Errorf("%s: got %+v, want one of the two oldest, not taken by the other", w.Step.Name, w.RecordedStep)
			continue
		}
		delete(want, string(w.RecordedStep.Output))
	}
	b.wantWaiting("another run's", batch.Receives[1])
	b.wantSignalReceived("another name's", batch.Receives[2], sold.Payload)
	two := []*store.ReceiveWrite{b.receive(r, "d", "paid"), b.receive(r, "e", "paid")}
	b.commit(&store.Batch{Receives: two})
	if two[0].RecordedStep.Status != store.StepCompleted {
		two[0], two[1] = two[1], two[0]
	}
	b.wantSignalReceived("one of two for one signal", two[0], third.Payload)
	b.wantWaiting("the other of two for one signal", two[1])
}

func receiveAsked(b *fixture) {
	for verb, bit := range map[store.ControlVerb]store.ControlBits{store.VerbPause: store.PausedItself, store.VerbCancel: store.CancelRequested} {
		r := b.commitRunningRun("")
		b.controlExistingRuns(verb, r.UUID)
		w := b.commitNewSignal(r.UUID, "paid", 0)
		taken := b.commitReceive(b.receive(r, "taken", "paid"))
		b.wantSignalReceived("a receive of a run of which something is asked", taken, w.Payload)
		waits := b.commitReceive(b.receive(r, "waits", "paid"))
		b.wantWaiting("a second one", waits)
		for _, w := range []*store.ReceiveWrite{taken, waits} {
			if w.RunState.Control != bit {
				b.Errorf("%s: it is told of %d, want %d", w.Step.Name, w.RunState.Control, bit)
			}
		}
	}
}

// raceTimeout sends a signal while a wait ends. The checkpoint records exactly one of the two, and
// the signal is either taken or still waiting.
func raceTimeout(b *fixture, s store.Store) {
	other := b.through(s)
	for i := range testsize.Of(200, 50) {
		r := b.commitRunningRun("")
		b.commitReceive(b.receive(r, "wait", "paid"))
		end, w := b.timeout(r, "wait", "paid"), b.message(r.UUID, "paid", 0)
		b.together(2, func(i int) error {
			if i == 0 {
				return b.deliver(&store.Batch{Receives: []*store.ReceiveWrite{end}})
			}
			return other.deliver(&store.Batch{Signals: []*store.SignalWrite{&w}})
		})
		wantOutcome(b, "the signal", w.Outcome, store.Written)
		after := b.commitReceive(b.receive(r, "next", "paid"))
		if end.RecordedStep != nil && end.RecordedStep.Status == store.StepCompleted {
			b.wantSignalReceived("the end of the wait", end, w.Payload)
			wantOutcome(b, "the next", after.Outcome, store.Written)
			if after.RecordedStep == nil || after.RecordedStep.Status != store.StepStarted {
				b.Fatalf("round %d: the signal was taken twice", i)
			}
			continue
		}
		b.wantWaiting("the end of the wait", end)
		b.wantSignalReceived("the next", after, w.Payload)
	}
}
