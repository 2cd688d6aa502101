package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var runs = []test{
	{"each way to end an ownership", runEnds},
	{"a trace replaces the row's unless empty", runTrace},
	{"an older epoch is fenced", runOldEpoch},
	{"what does not run is fenced", runNotRunning},
	{"a replay is written", runReplay},
	{"the first end stays", runFirstEnd},
	{"a finished run is never due", runNeverDue},
}

func runEnds(b *fixture) {
	for _, w := range []store.OwnershipEnd{
		{Status: store.Completed, Output: []byte(`"all"`), EndedAt: b.afterStart(time.Second)},
		{Status: store.Failed, Error: []byte(`"no"`), EndedAt: b.afterStart(time.Second)},
		{Status: store.Cancelled, Error: []byte(`"stop"`), HoldReason: "by hand", EndedAt: b.afterStart(time.Second)},
		{Status: store.Waiting, WakeAt: b.afterStart(time.Hour)},
		{Status: store.Waiting},
		{Status: store.Pending, WakeAt: b.now},
		{Status: store.Paused, HoldReason: "it's 100 % broken"},
	} {
		r := b.commitRunningRun("")
		w.UUID, w.Epoch = r.UUID, epochAt(1)
		b.commitStep(b.completed(r.UUID, epochAt(1), "charge"), false)
		wantOutcome(b, w.Status.String(), b.commitOwnershipEnd(w).Outcome, store.Written)
		r.Status, r.Output, r.Error, r.PauseOrHoldReason, r.WakeAt, r.EndedAt, r.Owner = w.Status, w.Output, w.Error, w.HoldReason, w.WakeAt, w.EndedAt, uuid.NullUUID{}
		got := b.row(r.UUID)
		if w.Status == store.Paused {
			r.Control, r.PausedAt = store.PausedItself, got.PausedAt
		}
		wantRun(b, w.Status.String(), got, r)
		wantSteps(b, w.Status.String(), b.history(r.UUID), b.completed(r.UUID, epochAt(1), "charge"))
	}
}

func runTrace(b *fixture) {
	for given, want := range map[string]string{"": "first", "second": "second"} {
		r := b.newRunningRun("")
		r.Trace = "first"
		b.commitStart(r)
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Waiting, Trace: given})
		if got := b.row(r.UUID).Trace; got != want {
			b.Errorf("trace %q over \"first\": got %q, want %q", given, got, want)
		}
	}
}

func runOldEpoch(b *fixture) {
	r := b.commitPendingRun("", b.now)
	b.claimOne(b.query(b.now), r.UUID)
	b.claimOne(b.query(b.afterStart(2*time.Hour)), r.UUID)
	before := b.row(r.UUID)
	for _, epoch := range []store.Epoch{{}, epochAt(1), epochAt(3)} {
		for what, w := range map[string]store.OwnershipEnd{
			"a finish": b.newCompletion(r.UUID, epoch),
			"a park":   {UUID: r.UUID, Epoch: epoch, Status: store.Waiting, WakeAt: b.afterStart(time.Hour), Now: b.now},
		} {
			what = fmt.Sprintf("%s at epoch %s of a run at 2", what, epoch)
			w := b.commitOwnershipEnd(w)
			wantOutcome(b, what, w.Outcome, store.Fenced)
			wantState(b, what, w.RunState, store.RunState{Found: true, Status: store.Running, Epoch: epochAt(2)})
		}
	}
	wantRun(b, "the run", b.row(r.UUID), before)
	wantOutcome(b, "the owner's finish", b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(2))).Outcome, store.Written)
}

func runNotRunning(b *fixture) {
	id, _ := store.NewRootIdentity("")
	w := b.commitOwnershipEnd(b.newCompletion(id, epochAt(1)))
	wantOutcome(b, "no run", w.Outcome, store.Fenced)
	wantState(b, "no run", w.RunState, store.RunState{})
	for _, status := range []store.Status{store.Pending, store.Waiting, store.Paused, store.Failed, store.Cancelled} {
		r := b.commitRunningRun("")
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status})
		before := b.row(r.UUID)
		w := b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
		wantOutcome(b, status.String(), w.Outcome, store.Fenced)
		wantState(b, status.String(), w.RunState, releasedRunState(status))
		wantRun(b, "the run, "+status.String(), b.row(r.UUID), before)
	}
}

// releasedRunState returns the state of a run that got the given status at epoch 1.
func releasedRunState(status store.Status) store.RunState {
	state := store.RunState{Found: true, Status: status, Epoch: epochAt(1)}
	if status == store.Paused {
		state.Control = store.PausedItself
	}
	return state
}

func runReplay(b *fixture) {
	for _, w := range []*store.OwnershipEnd{
		{Status: store.Completed, Output: []byte(`"all"`), EndedAt: b.now},
		{Status: store.Waiting, WakeAt: b.afterStart(time.Hour)},
		{Status: store.Pending, WakeAt: b.afterStart(time.Hour)},
		{Status: store.Paused, HoldReason: "by hand"},
	} {
		r := b.commitRunningRun("")
		w.UUID, w.Epoch, w.Now = r.UUID, epochAt(1), b.now
		for _, when := range []string{"first", "replayed"} {
			w.Outcome, w.RunState = store.Fenced, store.RunState{Found: true} // results of an earlier try
			b.commit(&store.Batch{OwnershipEnds: []*store.OwnershipEnd{w}})
			wantOutcome(b, w.Status.String()+", "+when, w.Outcome, store.Written)
		}
	}
	parked := b.commitRunningRun("")
	park := store.OwnershipEnd{UUID: parked.UUID, Epoch: epochAt(1), Status: store.Waiting, WakeAt: b.afterStart(time.Minute)}
	b.commitOwnershipEnd(park)
	b.claimOne(b.query(b.afterStart(time.Minute)), parked.UUID)
	w := b.commitOwnershipEnd(park)
	wantOutcome(b, "a park replayed after the next claim", w.Outcome, store.Fenced)
	wantState(b, "a park replayed after the next claim", w.RunState, store.RunState{Found: true, Status: store.Running, Epoch: epochAt(2)})
}

func runFirstEnd(b *fixture) {
	r := b.commitRunningRun("")
	b.commitOwnershipEnd(b.newCompletion(r.UUID, epochAt(1)))
	first := b.row(r.UUID)
	second := b.newCompletion(r.UUID, epochAt(1))
	second.Output = []byte(`"other"`)
	for _, w := range []store.OwnershipEnd{
		second,
		{UUID: r.UUID, Epoch: epochAt(1), Status: store.Failed, Error: []byte(`"no"`), EndedAt: b.now},
		{UUID: r.UUID, Epoch: epochAt(1), Status: store.Pending, WakeAt: b.now},
		{UUID: r.UUID, Epoch: epochAt(1), Status: store.Cancelled, EndedAt: b.now},
	} {
		got := b.commitOwnershipEnd(w)
		wantOutcome(b, w.Status.String()+" after completed", got.Outcome, store.Fenced)
		wantState(b, w.Status.String()+" after completed", got.RunState, store.RunState{Found: true, Status: store.Completed, Epoch: epochAt(1)})
	}
	wantRun(b, "the run", b.row(r.UUID), first)
}

func runNeverDue(b *fixture) {
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired, store.Paused, store.Waiting} {
		r := b.commitRunningRun("")
		b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status})
	}
	got := b.claim(b.query(b.afterStart(1000 * time.Hour)))
	if len(got.Runs) != 0 || !got.NextDue.IsZero() {
		b.Errorf("got %v, next %s, want nothing due, ever", describeClaims(got.Runs), show(got.NextDue))
	}
}
