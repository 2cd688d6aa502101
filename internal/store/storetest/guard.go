package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// The guards of package store are repeated in the SQL of each store. These cases compare every statement
// with them.
var guards = []test{
	{"an end that CancelForbids is fenced", guardCancel},
	{"no write changes an ended run", guardEnded},
	{"only a run that is IsOwnedAt the epoch takes writes", guardOwned},
}

// newOwnershipEnds are the writes that end an ownership, one for each status.
func (b *fixture) newOwnershipEnds(run uuid.UUID, epoch store.Epoch) []store.OwnershipEnd {
	all := []store.OwnershipEnd{
		{Status: store.Pending, WakeAt: b.now},
		{Status: store.Waiting, WakeAt: b.afterStart(time.Hour)},
		{Status: store.Paused, HoldReason: "by hand"},
		{Status: store.Pending, HoldsRun: true, HoldReason: "rejected"},
		{Status: store.Completed, Output: []byte(`"all"`), EndedAt: b.afterStart(time.Second)},
		{Status: store.Failed, Error: []byte(`"no"`), EndedAt: b.afterStart(time.Second)},
		{Status: store.Cancelled, Error: []byte(`"stop"`), EndedAt: b.afterStart(time.Second)},
		{Status: store.Expired, Error: []byte(`"late"`), EndedAt: b.afterStart(time.Second)},
	}
	for i := range all {
		all[i].UUID, all[i].Epoch, all[i].Now = run, epoch, b.afterStart(time.Second)
	}
	return all
}

// guardCancel commits each end alone, and in one batch with the park of another run, because a store may
// have another statement for that.
func guardCancel(b *fixture) {
	for _, verb := range []store.ControlVerb{0, store.VerbPause, store.VerbCancel} {
		for i := range b.newOwnershipEnds(uuid.UUID{}, epochAt(1)) {
			for _, beside := range []bool{false, true} {
				r := b.commitRunningRun("")
				if verb != 0 {
					b.controlExistingRuns(verb, r.UUID)
				}
				before := b.row(r.UUID)
				w := b.newOwnershipEnds(r.UUID, epochAt(1))[i]
				batch := &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&w}}
				if beside {
					batch.OwnershipEnds = append(batch.OwnershipEnds, &store.OwnershipEnd{UUID: b.commitRunningRun("").UUID, Epoch: epochAt(1), Status: store.Waiting, Now: b.now})
				}
				b.commit(batch)
				what := fmt.Sprintf("%s, held %t, after verb %d, beside a park %t", w.Status, w.HoldsRun, verb, beside)
				after := b.row(r.UUID)
				if w.CancelForbidsEnd(before.Control) {
					wantOutcome(b, what, w.Outcome, store.Fenced)
					wantRun(b, what, after, before)
					continue
				}
				wantOutcome(b, what, w.Outcome, store.Written)
				if after.Status == store.Running || before.Control&store.CancelRequested != 0 && after.Status.IsTerminal() && after.Status != store.Cancelled {
					b.Errorf("%s: the run became %s", what, after.Status)
				}
			}
		}
	}
}

// guardEnded tries every write of a worker and every control request on a run with each terminal status.
func guardEnded(b *fixture) {
	for i, end := range b.newOwnershipEnds(uuid.UUID{}, epochAt(1)) {
		if !end.Status.IsTerminal() {
			continue
		}
		r := b.commitRunningRun("")
		end = b.newOwnershipEnds(r.UUID, epochAt(1))[i]
		b.commitStep(b.startedMarker(r.UUID, epochAt(1), 1, "begun"), false)
		b.commitOwnershipEnd(end)
		row, history := b.row(r.UUID), b.history(r.UUID)
		what := "a run that is " + end.Status.String()

		child := b.child(r, "kid")
		begun := b.completed(r.UUID, epochAt(1), "begun")
		begun.Attempt = 2
		batches := map[string]*store.Batch{
			"a step":         {Steps: []*store.StepWrite{{Step: b.completed(r.UUID, epochAt(1), "late")}}},
			"a known step":   {Steps: []*store.StepWrite{{Step: begun, RowExists: true}}},
			"a receive":      {Receives: []*store.ReceiveWrite{{Step: b.completed(r.UUID, epochAt(1), "receive"), Signal: "go"}}},
			"a child":        {Starts: []*store.StartWrite{{Run: child, ParentEpoch: epochAt(1)}}},
			"a signal to it": {Signals: []*store.SignalWrite{{Run: r.UUID, ID: uuid.Must(uuid.NewV7()), Name: "go", CreatedAt: b.now}}},
		}
		for _, w := range b.newOwnershipEnds(r.UUID, epochAt(1)) {
			if w.Status != end.Status {
				batches[fmt.Sprintf("%s, held %t", w.Status, w.HoldsRun)] = &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&w}}
			}
		}
		for name, batch := range batches {
			b.commit(batch)
			for _, got := range allOutcomes(batch) {
				wantOutcome(b, name+" of "+what, got, store.Fenced)
			}
		}
		for _, verb := range []store.ControlVerb{store.VerbPause, store.VerbResume, store.VerbCancel, store.VerbTerminate} {
			b.controlExistingRuns(verb, r.UUID)
		}
		for _, claimed := range b.claim(b.query(b.afterStart(1000 * time.Hour))).Runs {
			b.Errorf("%s: claimed %s", what, claimed.Run.UUID)
		}
		pulse := b.renew(b.heartbeat(store.Lease{Run: r.UUID, Epoch: epochAt(1)}))
		if len(pulse.LostRuns) != 1 {
			b.Errorf("%s: its lease was extended", what)
		}
		wantRun(b, what, b.row(r.UUID), row)
		wantSteps(b, what, b.history(r.UUID), history...)
	}
}

// guardOwned tries the writes of an owner in every state that is not terminal, at each epoch.
func guardOwned(b *fixture) {
	for _, status := range []store.Status{store.Pending, store.Running, store.Waiting, store.Paused} {
		for _, epoch := range []store.Epoch{{}, epochAt(1), epochAt(2), {Count: 1, Nonce: nonce + 1}} {
			r := b.commitRunningRun("")
			if status != store.Running {
				b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: status})
			}
			before := b.row(r.UUID)
			state := store.RunState{Found: true, Status: before.Status, Epoch: before.Epoch, Control: before.Control}
			want := store.Fenced
			if state.IsOwnedAt(epoch) {
				want = store.Written
			}
			end := b.newCompletion(r.UUID, epoch)
			for name, batch := range map[string]*store.Batch{
				"a step":    {Steps: []*store.StepWrite{{Step: b.completed(r.UUID, epoch, "step")}}},
				"a receive": {Receives: []*store.ReceiveWrite{{Step: b.completed(r.UUID, epoch, "receive"), Signal: "go"}}},
				"a child":   {Starts: []*store.StartWrite{{Run: b.child(r, "kid"), ParentEpoch: epoch}}},
			} {
				b.commit(batch)
				wantOutcome(b, fmt.Sprintf("%s at %s of a run that is %s", name, epoch, status), allOutcomes(batch)[0], want)
			}
			wantOutcome(b, fmt.Sprintf("the end at %s of a run that is %s", epoch, status), b.commitOwnershipEnd(end).Outcome, want)
		}
	}
}

// allOutcomes returns the outcomes of all items of a batch.
func allOutcomes(batch *store.Batch) (all []store.WriteOutcome) {
	for _, w := range batch.Starts {
		all = append(all, w.Outcome)
	}
	for _, w := range batch.Steps {
		all = append(all, w.Outcome)
	}
	for _, w := range batch.Receives {
		all = append(all, w.Outcome)
	}
	for _, w := range batch.Signals {
		all = append(all, w.Outcome)
	}
	for _, w := range batch.OwnershipEnds {
		all = append(all, w.Outcome)
	}
	return all
}
