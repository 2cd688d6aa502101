package storetest

import (
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

var controls = []test{
	{"a checkpoint is written, and told what is asked", controlStep},
	{"a run to be cancelled neither completes nor fails", controlFinish},
	{"a paused run may end", controlPausedEnd},
	{"a park becomes what was asked for", controlPark},
	{"a cancelled park goes on, to undo", controlCancelledPark},
	{"a cancelled park between compensations stays", controlBegunCancelPark},
	{"what was resumed parks as it likes", controlResumedPark},
	{"a claim tells what is asked", controlClaim},
	{"a dead run that was to pause is paused", controlDead},
	{"a dead run that was to pause with its parent is paused", controlDeadChild},
	{"an expired run that was to pause is paused", controlExpired},
	{"a crash pause is a pause of its own", controlCrash},
	{"a crash pause leaves a cancel asked for", controlCrashCancelled},
	{"what is set aside can be resumed", controlSetAside},
	{"a renewal extends what is asked to leave", controlRenew},
}

// bitsSetByVerb contains, for each verb, the control bits that the verb sets on a run that it names.
var bitsSetByVerb = map[store.ControlVerb]store.ControlBits{store.VerbPause: store.PausedItself, store.VerbCancel: store.CancelRequested}

func controlStep(b *fixture) {
	for verb, bit := range bitsSetByVerb {
		r := b.commitRunningRun("")
		b.commitStep(b.startedMarker(r.UUID, epochAt(1), 1, "begun"), false)
		recorded := b.completed(r.UUID, epochAt(1), "recorded")
		wantState(b, "nothing asked", b.commitStep(recorded, false).RunState, store.RunState{})
		b.controlExistingRuns(verb, r.UUID)
		for i, s := range []store.Step{
			b.completed(r.UUID, epochAt(1), "begun"), b.completed(r.UUID, epochAt(1), "new"), b.startedMarker(r.UUID, epochAt(1), 1, "marker"), b.backoff(r.UUID, epochAt(1), 1, "backoff"),
		} {
			what := fmt.Sprintf("verb %d, %s", verb, s.Name)
			w := b.commitStep(s, i == 0)
			wantOutcome(b, what, w.Outcome, store.Written)
			wantState(b, what, w.RunState, store.RunState{Found: true, Status: store.Running, Epoch: epochAt(1), Control: bit})
			b.wantRow(what, s)
		}
		second := recorded
		second.Attempt = 2
		w := b.commitStep(second, false)
		wantOutcome(b, "a second writer", w.Outcome, store.AlreadyRecorded)
		wantRecorded(b, "a second writer", w.RecordedStep, recorded)
		wantOutcome(b, "another epoch", b.commitStep(b.completed(r.UUID, epochAt(2), "late"), false).Outcome, store.Fenced)
		batch := &store.Batch{}
		bystander := b.commitRunningRun("")
		for i := range 20 {
			of := []uuid.UUID{r.UUID, bystander.UUID}[i%2]
			batch.Steps = append(batch.Steps, &store.StepWrite{Step: b.completed(of, epochAt(1), fmt.Sprint("many-", i))})
		}
		b.commit(batch)
		for _, w := range batch.Steps {
			wantOutcome(b, w.Step.Name, w.Outcome, store.Written)
			if want := bit; w.Step.Run == r.UUID && w.RunState.Control != want || w.Step.Run != r.UUID && w.RunState.Control != 0 {
				b.Errorf("verb %d, %s: told of %d", verb, w.Step.Name, w.RunState.Control)
			}
		}
	}
}

func controlFinish(b *fixture) {
	r := b.commitRunningRun("")
	b.controlExistingRuns(store.VerbCancel, r.UUID)
	before := b.row(r.UUID)
	for _, status := range []store.Status{store.Completed, store.Failed, store.Expired} {
		w := b.newCompletion(r.UUID, epochAt(1))
		w.Status = status
		got := b.commitOwnershipEnd(w)
		wantOutcome(b, status.String(), got.Outcome, store.Fenced)
		wantState(b, status.String(), got.RunState, store.RunState{Found: true, Status: store.Running, Epoch: epochAt(1), Control: store.CancelRequested})
	}
	wantRun(b, "the run, which stays as it was", b.row(r.UUID), before)
	wantOutcome(b, "a compensation", b.commitStep(b.completed(r.UUID, epochAt(1), "undo"), false).Outcome, store.Written)
	end := store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(1), Status: store.Cancelled, Error: []byte(`"stop"`), EndedAt: b.now}
	for _, when := range []string{"first", "replayed"} {
		wantOutcome(b, "cancelled, "+when, b.commitOwnershipEnd(end).Outcome, store.Written)
	}
	want := before
	want.Status, want.Owner, want.WakeAt, want.Error, want.EndedAt = store.Cancelled, uuid.NullUUID{}, time.Time{}, end.Error, end.EndedAt
	got := b.row(r.UUID)
	want.PauseOrHoldReason = got.PauseOrHoldReason
	wantRun(b, "the run, cancelled", got, want)
	child := b.commitRunningChild(b.commitRunningRun(""), "charge")
	parent := child.Parent.UUID
	b.commitOwnershipEnd(b.park(store.Run{UUID: parent, Epoch: epochAt(1)}, time.Time{}))
	b.controlExistingRuns(store.VerbCancel, child.UUID)
	wantOutcome(b, "a child's end", b.commitOwnershipEnd(b.childEnd(child)).Outcome, store.Fenced)
	if got := b.row(parent); got.Status != store.Waiting || !got.WakeAt.IsZero() {
		b.Errorf("a fenced end woke the parent: %s, wakes at %s", got.Status, show(got.WakeAt))
	}
}

func controlPausedEnd(b *fixture) {
	for _, status := range []store.Status{store.Completed, store.Failed, store.Cancelled, store.Expired} {
		r := b.commitRunningRun("")
		b.controlExistingRuns(store.VerbPause, r.UUID)
		w := b.newCompletion(r.UUID, epochAt(1))
		w.Status = status
		for _, when := range []string{"first", "replayed"} {
			wantOutcome(b, status.String()+", "+when, b.commitOwnershipEnd(w).Outcome, store.Written)
		}
		if got := b.row(r.UUID); got.Status != status || got.Owner.Valid || !got.WakeAt.IsZero() {
			b.Errorf("got %s, owner %s, wake %s, want %s without either", got.Status, show(got.Owner), show(got.WakeAt), status)
		}
	}
}

func controlPark(b *fixture) {
	for _, w := range []store.OwnershipEnd{
		{Status: store.Waiting, WakeAt: b.afterStart(time.Minute)}, {Status: store.Waiting}, {Status: store.Pending, WakeAt: b.now},
	} {
		r := b.commitRunningRun("")
		child := b.commitRunningChild(r, "charge")
		b.controlExistingRuns(store.VerbPause, r.UUID)
		b.commitNewSignal(r.UUID, "paid", 0) // a wake-up does not undo the pause
		for id, bits := range map[uuid.UUID]store.ControlBits{r.UUID: store.PausedItself, child.UUID: store.PausedByAncestor} {
			want := b.row(id)
			w.UUID, w.Epoch = id, epochAt(1)
			wantOutcome(b, w.Status.String(), b.commitOwnershipEnd(w).Outcome, store.Written)
			want.Status, want.Control, want.Owner, want.WakeAt = store.Paused, bits, uuid.NullUUID{}, time.Time{}
			wantRun(b, w.Status.String()+" when asked to pause", b.row(id), want)
		}
	}
	if got := b.claim(b.query(b.afterStart(1000 * time.Hour))); len(got.Runs) != 0 || !got.NextDue.IsZero() {
		b.Errorf("paused: claimed %v, next %s, want nothing, ever", describeClaims(got.Runs), show(got.NextDue))
	}
}

func controlCancelledPark(b *fixture) {
	for _, w := range []store.OwnershipEnd{
		{Status: store.Waiting, WakeAt: b.afterStart(90 * time.Hour)}, {Status: store.Waiting}, {Status: store.Pending, WakeAt: b.afterStart(time.Second)},
	} {
		for _, paused := range []bool{false, true} {
			r := b.commitRunningRun("")
			if paused {
				b.controlExistingRuns(store.VerbPause, r.UUID)
			}
			b.controlExistingRuns(store.VerbCancel, r.UUID)
			w.UUID, w.Epoch, w.Now = r.UUID, epochAt(1), b.afterStart(time.Second)
			wantOutcome(b, w.Status.String(), b.commitOwnershipEnd(w).Outcome, store.Written)
			got := b.row(r.UUID)
			if got.Status != store.Pending || got.Control != store.CancelRequested || got.Owner.Valid || !got.WakeAt.Equal(w.Now) {
				b.Errorf("%s when to be cancelled: got %s with %d, owner %s, wake %s, want pending with %d, NULL, %s",
					w.Status, got.Status, got.Control, show(got.Owner), show(got.WakeAt), store.CancelRequested, show(w.Now))
			}
			b.commitOwnershipEnd(w) // the outcome of the repeated write does not matter
			wantRun(b, w.Status.String()+", replayed", b.row(r.UUID), got)
			claimed := b.claimOne(b.query(w.Now), r.UUID).Run
			if claimed.Control != store.CancelRequested || claimed.Epoch != epochAt(2) {
				b.Errorf("claimed with %d at epoch %s, want %d at 2", claimed.Control, claimed.Epoch, store.CancelRequested)
			}
			wantOutcome(b, "its end", b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(2), Status: store.Cancelled, EndedAt: b.now}).Outcome, store.Written)
		}
	}
}

// controlBegunCancelPark parks runs that execute the compensations of a cancel. They stay parked until they are due or woken.
func controlBegunCancelPark(b *fixture) {
	due := b.afterStart(time.Hour)
	for _, woken := range []bool{false, true} {
		r := b.commitRunningRun("")
		b.controlExistingRuns(store.VerbCancel, r.UUID)
		if woken {
			b.commitNewSignal(r.UUID, "paid", 0)
		}
		w := b.park(r, due)
		w.CancelBegun = true
		want := b.row(r.UUID)
		want.Status, want.Owner, want.WakeAt = store.Waiting, uuid.NullUUID{}, due
		if woken {
			want.WakeAt = w.Now
		}
		for _, when := range []string{"first", "replayed"} {
			wantOutcome(b, "the park, "+when, b.commitOwnershipEnd(w).Outcome, store.Written)
			wantRun(b, "parked, "+when, b.row(r.UUID), want)
		}
		if got := b.claim(b.query(want.WakeAt.Add(-time.Second))); len(got.Runs) != 0 || !got.NextDue.Equal(want.WakeAt) {
			b.Errorf("parked: claimed %v, next %s, want nothing, next %s", describeClaims(got.Runs), show(got.NextDue), show(want.WakeAt))
		}
		if claimed := b.claimOne(b.query(want.WakeAt), r.UUID).Run; claimed.Control != store.CancelRequested {
			b.Errorf("claimed with %d, want %d", claimed.Control, store.CancelRequested)
		}
		wantOutcome(b, "its end", b.commitOwnershipEnd(store.OwnershipEnd{UUID: r.UUID, Epoch: epochAt(2), Status: store.Cancelled, EndedAt: b.now}).Outcome, store.Written)
	}
}

func controlResumedPark(b *fixture) {
	r := b.commitRunningRun("")
	b.controlExistingRuns(store.VerbPause, r.UUID)
	b.controlExistingRuns(store.VerbResume, r.UUID)
	park := b.park(r, b.afterStart(time.Hour))
	wantOutcome(b, "the park", b.commitOwnershipEnd(park).Outcome, store.Written)
	if got := b.row(r.UUID); got.Status != store.Waiting || got.Control != 0 || !got.WakeAt.Equal(park.WakeAt) && !got.WakeAt.Equal(park.Now) {
		b.Errorf("got %s with %d, wake %s, want waiting without, as given", got.Status, got.Control, show(got.WakeAt))
	}
}

func controlClaim(b *fixture) {
	r := b.commitRunningRun("")
	b.commitStep(b.completed(r.UUID, epochAt(1), "charge"), false)
	b.commitOwnershipEnd(b.park(r, time.Time{}))
	o := b.controlExistingRuns(store.VerbCancel, r.UUID)
	q := b.query(o.Now)
	got := b.claimOne(q, r.UUID)
	r.Status, r.Epoch, r.Owner, r.WakeAt = store.Running, epochAt(2), owner(q.Worker), q.LeaseUntil
	r.Control, r.CancelReason, r.CancelledBy, r.CancelledAt = store.CancelRequested, o.Reason, o.Actor, o.Now
	wantRun(b, "the run claimed", got.Run, r)
	wantRun(b, "its row", b.row(r.UUID), r)
	wantSteps(b, "its history", got.History, b.completed(r.UUID, epochAt(1), "charge"))
}

// wantPausedByClaim checks that a claim pauses a run whose pause was requested and whose owner is gone.
func (b *fixture) wantPausedByClaim(q store.ClaimQuery, before store.Run) {
	b.Helper()
	for _, c := range b.claim(q).Runs { // the claim may return the run as paused
		if c.Run.UUID == before.UUID && c.Run.Status != store.Paused {
			b.Errorf("a run that was to pause is %s by a claim", c.Run.Status)
		}
	}
	want, got := before, b.row(before.UUID)
	want.Status, want.Owner, want.WakeAt, want.Crashes = store.Paused, uuid.NullUUID{}, time.Time{}, got.Crashes
	wantRun(b, "its row", got, want)
	if got := b.claim(b.query(b.afterStart(1000 * time.Hour))); len(got.Runs) != 0 {
		b.Errorf("claimed when it was paused: %v", describeClaims(got.Runs))
	}
	b.controlExistingRuns(store.VerbResume, before.UUID)
	if got := b.claimOne(b.query(b.afterStart(time.Minute)), before.UUID).Run; got.Status != store.Running || got.Epoch != before.Epoch.Next(nonce) {
		b.Errorf("resumed and claimed: %s at epoch %s, want running at %s", got.Status, got.Epoch, before.Epoch.Next(nonce))
	}
}

func controlDead(b *fixture) {
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	b.claimOne(q, r.UUID)
	b.controlExistingRuns(store.VerbPause, r.UUID)
	before := b.row(r.UUID)
	if !before.WakeAt.Equal(q.LeaseUntil) {
		b.Errorf("asked to pause, its lease ends at %s, want %s", show(before.WakeAt), show(q.LeaseUntil))
	}
	next := b.query(q.LeaseUntil)
	next.MaxCrashes = 1 // the reason of the pause is the request, not the number of crashes
	b.wantPausedByClaim(next, before)
}

func controlDeadChild(b *fixture) {
	parent := b.commitRunningRun("parent")
	child := b.commitRunningChild(parent, "charge")
	b.controlExistingRuns(store.VerbPause, parent.UUID)
	b.claim(b.query(b.afterStart(2 * time.Hour)))
	b.wantBits("the parent", parent.UUID, store.Paused, store.PausedItself)
	b.wantBits("the child", child.UUID, store.Paused, store.PausedByAncestor)
	b.controlExistingRuns(store.VerbResume, parent.UUID)
	if got := b.claim(b.query(b.afterStart(time.Minute))); len(got.Runs) != 2 {
		b.Errorf("resumed: claimed %v, want both", describeClaims(got.Runs))
	}
}

func controlExpired(b *fixture) {
	dead := uuid.New()
	r := b.owned(dead, "dead's")
	b.controlExistingRuns(store.VerbPause, r.UUID)
	q := b.query(b.now)
	if n := b.endLeases(q, dead); n != 1 {
		b.Errorf("freed %d runs, want 1", n)
	}
	b.wantPausedByClaim(q, b.row(r.UUID))
}

// commitPausedAfterCrash returns a run at epoch 1 that was paused because of its crashes. Unless the verb is zero,
// the run was controlled with it before the crash.
func (b *fixture) commitPausedAfterCrash(verb store.ControlVerb) store.Run {
	b.Helper()
	r := b.commitPendingRun("", b.now)
	q := b.query(b.now)
	b.claimOne(q, r.UUID)
	if verb != 0 {
		b.controlExistingRuns(verb, r.UUID)
	}
	q.Now, q.MaxCrashes = q.LeaseUntil, 1
	if got := b.claimOne(q, r.UUID).Run; got.Status != store.Paused {
		b.Fatalf("after its crash it is %s, want paused", got.Status)
	}
	return b.row(r.UUID)
}

func controlCrash(b *fixture) {
	r := b.commitPausedAfterCrash(0)
	if r.Control != store.PausedItself || r.PauseOrHoldReason == "" || r.Crashes != 1 || r.PausedBy != "" {
		b.Errorf("paused for its crashes with %d, %q, by %q, %d crashes, want %d, a reason, nobody, 1",
			r.Control, r.PauseOrHoldReason, r.PausedBy, r.Crashes, store.PausedItself)
	}
	o := b.controlExistingRuns(store.VerbResume, r.UUID)
	want := r
	want.Status, want.Control, want.Crashes, want.PauseOrHoldReason, want.WakeAt, want.PausedAt = store.Pending, 0, 0, "", o.Now, time.Time{}
	wantRun(b, "resumed", b.row(r.UUID), want)
	q := b.query(o.Now)
	q.MaxCrashes = 1
	if got := b.claimOne(q, r.UUID).Run; got.Status != store.Running || got.Crashes != 0 || got.Epoch != epochAt(2) {
		b.Errorf("resumed and claimed: %s with %d crashes at epoch %s, want running with none at 2", got.Status, got.Crashes, got.Epoch)
	}
}

// controlCrashCancelled checks that a run whose compensations crash is paused too. After it is
// resumed, it continues to end.
func controlCrashCancelled(b *fixture) {
	r := b.commitPausedAfterCrash(store.VerbCancel)
	if r.Control != store.PausedItself|store.CancelRequested {
		b.Errorf("paused for its crashes with %d, want %d", r.Control, store.PausedItself|store.CancelRequested)
	}
	b.controlExistingRuns(store.VerbResume, r.UUID)
	got := b.claimOne(b.query(b.afterStart(time.Minute)), r.UUID).Run
	if got.Control != store.CancelRequested {
		b.Errorf("resumed and claimed with %d, want %d", got.Control, store.CancelRequested)
	}
	wantOutcome(b, "completed", b.commitOwnershipEnd(b.newCompletion(r.UUID, got.Epoch)).Outcome, store.Fenced)
}

func controlSetAside(b *fixture) {
	plain := b.commitRunningRun("")
	marked := b.newQueuedStart("has to begin by a time", "queue", "") // its mark requests no pause
	marked.Run.Admission, marked.Run.Control, marked.Place.StartBy = store.AdmissionNotNeeded, store.HasStartBy, b.afterStart(time.Hour)
	b.commit(&store.Batch{Starts: []*store.StartWrite{marked}})
	b.claimOne(b.query(b.now), marked.Run.UUID)
	for id, control := range map[uuid.UUID]store.ControlBits{plain.UUID: 0, marked.Run.UUID: store.HasStartBy} {
		w := store.OwnershipEnd{UUID: id, Epoch: b.row(id).Epoch, Status: store.Paused, HoldReason: "broken"}
		wantOutcome(b, "set aside", b.commitOwnershipEnd(w).Outcome, store.Written)
		if got := b.row(id); got.Control != control|store.PausedItself || got.PausedAt.IsZero() {
			b.Errorf("set aside: control %d, paused at %v, want %d", got.Control, got.PausedAt, control|store.PausedItself)
		}
		b.controlExistingRuns(store.VerbResume, id)
		if got := b.row(id); got.Status != store.Pending || got.Control != control || got.PauseOrHoldReason != "" {
			b.Errorf("resumed: %s with %d, reason %q, want pending with %d", got.Status, got.Control, got.PauseOrHoldReason, control)
		}
		b.claimOne(b.query(b.afterStart(time.Minute)), id)
	}
}

func controlRenew(b *fixture) {
	for verb := range bitsSetByVerb {
		r := b.commitRunningRun("")
		b.controlExistingRuns(verb, r.UUID)
		want := b.row(r.UUID)
		h := b.heartbeat(store.Lease{Run: r.UUID, Epoch: epochAt(1)})
		wantUUIDs(b, "lost", b.renew(h).LostRuns, nil)
		want.WakeAt = h.LeaseUntil
		wantRun(b, "the run renewed", b.row(r.UUID), want)
	}
}
