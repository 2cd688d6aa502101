package sqlite

import (
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A pause of a parent sets its child aside, asks the running parent to leave, and is told
// by every write of the parent's that meets it; a resume brings back what was paused.
func TestPauseAndResume(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	child := newChild(run, "child")
	child.Tags = []store.Tag{{Key: "team", Value: "a"}, {Key: "none"}}
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{child}})
	if child.Outcome != store.Written {
		t.Fatal(child.Outcome)
	}
	if a := order(t, s, store.VerbPause, run); a.ChangedCount != 1 || a.RequestedCount != 1 || a.Status != store.Running {
		t.Fatalf("%+v", a)
	}
	got := row(t, s, child.Run.UUID)
	if got.Status != store.Paused || got.Control != store.PausedByAncestor || got.PauseOrHoldReason != "because" || got.PausedBy != "me" || !got.WakeAt.IsZero() {
		t.Fatalf("%+v", got)
	}
	want := store.RunState{Found: true, Status: store.Running, Epoch: epochAt(1), Control: store.PausedItself}
	step := newStep(run, "charge")
	if got := commitStep(t, s, step); got != store.Written || step.RunState != want {
		t.Fatal(got, step.RunState)
	}
	if got := commitStep(t, s, step); got != store.Written || step.RunState != want {
		t.Fatal("replayed:", got, step.RunState)
	}
	late := newChild(run, "late")
	again := newChild(run, "child")
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{late, again}})
	if late.Outcome != store.Fenced || late.RunState != want || again.Outcome != store.AlreadyRecorded || again.ExistingRun.UUID != child.Run.UUID {
		t.Fatalf("%+v %+v", late, again)
	}
	park := &store.OwnershipEnd{UUID: run, Epoch: epochAt(1), Status: store.Waiting, WakeAt: now().Add(time.Hour), Now: now()}
	for range 2 { // the second time because the reply was lost
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{park}})
		if got := row(t, s, run); park.Outcome != store.Written || got.Status != store.Paused || got.PauseOrHoldReason != "because" || !got.WakeAt.IsZero() || got.Owner.Valid {
			t.Fatalf("%+v %+v", park, got)
		}
	}
	if types := eventTypes(t, s, run); !slices.Equal(types, []store.EventType{store.EventPaused}) {
		t.Error(types)
	}
	if a := order(t, s, store.VerbResume, run); a.ChangedCount != 2 {
		t.Fatalf("%+v", a)
	}
	for _, id := range []uuid.UUID{run, child.Run.UUID} {
		if got := row(t, s, id); got.Status != store.Pending || got.Control != 0 || got.PauseOrHoldReason != "" || !got.PausedAt.IsZero() || got.WakeAt.IsZero() {
			t.Fatalf("%+v", got)
		}
	}
	o, err := s.RunProgress(t.Context(), child.Run.UUID, now())
	if err != nil || !slices.Equal(o.Tags, []store.Tag{{Key: "team", Value: "a"}}) {
		t.Fatal(o, err)
	}
}

// A run to be cancelled neither completes nor fails; it may go back, to undo what it did.
func TestCancelIsNotOutrun(t *testing.T) {
	s := openTest(t)
	runs := startTestRuns(t, s, 3)
	for _, run := range runs {
		if a := order(t, s, store.VerbCancel, run); a.RequestedCount != 1 {
			t.Fatalf("%+v", a)
		}
	}
	write := func(w store.OwnershipEnd) *store.OwnershipEnd {
		w.Epoch, w.Now = epochAt(1), now()
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{&w}})
		return &w
	}
	for _, status := range []store.Status{store.Completed, store.Failed} {
		w := write(store.OwnershipEnd{UUID: runs[0], Status: status, EndedAt: now()})
		if w.Outcome != store.Fenced || w.RunState.Control != store.CancelRequested || w.RunState.Status != store.Running {
			t.Fatalf("%+v", w)
		}
	}
	if w := write(store.OwnershipEnd{UUID: runs[0], Status: store.Cancelled, EndedAt: now()}); w.Outcome != store.Written {
		t.Fatalf("%+v", w)
	}
	for i, status := range []store.Status{store.Waiting, store.Pending} {
		w := write(store.OwnershipEnd{UUID: runs[1+i], Status: status})
		if got := row(t, s, runs[1+i]); w.Outcome != store.Written || got.Status != store.Pending || !got.WakeAt.Equal(w.Now) {
			t.Fatalf("%+v %+v", w, got)
		}
	}
	if claims := claimAt(t, s, now()); len(claims.Runs) != 2 || claims.Runs[0].Run.Control != store.CancelRequested {
		t.Fatalf("%+v", claims)
	}
}

// A cancel ends what has done nothing at once, with all that belongs to an end.
func TestCancelEndsWhatHasNotBegun(t *testing.T) {
	s := openTest(t)
	parent := startTestRuns(t, s, 1)[0]
	child := newChild(parent, "child")
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{child}})
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: parent, Epoch: epochAt(1), Status: store.Waiting}}})
	if a := order(t, s, store.VerbCancel, child.Run.UUID); a.ChangedCount != 1 || a.RequestedCount != 0 {
		t.Fatalf("%+v", a)
	}
	got := row(t, s, child.Run.UUID)
	if got.Status != store.Cancelled || string(got.Error) != `"over"` || got.EndedAt.IsZero() || got.CancelReason != "because" || got.CancelledBy != "me" || got.CancelledAt.IsZero() {
		t.Fatalf("%+v", got)
	}
	if types := eventTypes(t, s, child.Run.UUID); !slices.Equal(types, []store.EventType{store.EventCancelled}) {
		t.Error(types)
	}
	if claims := claimAt(t, s, now()); len(claims.Runs) != 1 || claims.Runs[0].Run.UUID != parent {
		t.Fatalf("the parent was not woken: %+v", claims)
	}
	if a := order(t, s, store.VerbCancel, uuid.New()); a.Found {
		t.Fatalf("%+v", a)
	}
}

// A run that loses its lease after it was paused is set aside; that is no crash.
func TestPausedRunIsNotTaken(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	order(t, s, store.VerbPause, run)
	claims := claimAt(t, s, now().Add(time.Hour))
	if len(claims.Runs) != 1 || claims.Runs[0].Run.Status != store.Paused || claims.Runs[0].History != nil {
		t.Fatalf("%+v", claims)
	}
	got := row(t, s, run)
	if got.Status != store.Paused || got.Crashes != 0 || got.Epoch != epochAt(1) || got.Owner.Valid || !got.WakeAt.IsZero() || got.PauseOrHoldReason != "because" {
		t.Fatalf("%+v", got)
	}
	if types := eventTypes(t, s, run); !slices.Equal(types, []store.EventType{store.EventLeaseLost, store.EventPaused}) {
		t.Error(types)
	}
}

// A run that its worker sets aside unasked can be resumed as well.
func TestARunPausedForItsCrashesIsResumed(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	w := &store.OwnershipEnd{UUID: run, Epoch: epochAt(1), Status: store.Paused, HoldReason: "broken", Now: now()}
	for range 2 { // the second time because the reply was lost
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{w}})
		if got := row(t, s, run); w.Outcome != store.Written || got.Control != store.PausedItself || got.PauseOrHoldReason != "broken" || !got.PausedAt.Equal(w.Now) {
			t.Fatalf("%+v %+v", w, got)
		}
	}
	if a := order(t, s, store.VerbResume, run); a.ChangedCount != 1 {
		t.Fatalf("%+v", a)
	}
	if claims := claimAt(t, s, now()); len(claims.Runs) != 1 {
		t.Fatalf("%+v", claims)
	}
}

func TestFreeze(t *testing.T) {
	s := openTest(t)
	at := now()
	w := newStart("")
	w.Run.Deadline = at.Add(time.Hour)
	s.mustCommit(t, w)
	run := w.Run.UUID
	step := func(name string, kind store.StepKind, status store.StepStatus, next time.Time) {
		w := newStep(run, name)
		w.Step.Kind, w.Step.Status, w.Step.NextAt = kind, status, next
		commitStep(t, s, w)
	}
	step("asleep", store.KindSleep, store.StepCompleted, at.Add(time.Minute))
	step("backoff", store.KindStep, store.StepBackoff, at.Add(time.Minute))
	step("ended", store.KindReceive, store.StepCompleted, at.Add(time.Minute))
	step("slept", store.KindSleep, store.StepCompleted, at.Add(-time.Minute))
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run, Epoch: epochAt(1), Status: store.Waiting, WakeAt: at.Add(time.Minute)}}})
	for _, o := range []*store.ControlRequest{
		{Verb: store.VerbPause, Runs: []uuid.UUID{run}, Now: at},
		{Verb: store.VerbResume, Runs: []uuid.UUID{run}, Now: at.Add(24 * time.Hour), ShiftTimers: true},
	} {
		if err := s.ControlRuns(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	if got := row(t, s, run); !got.Deadline.Equal(at.Add(25 * time.Hour)) {
		t.Error("deadline", got.Deadline)
	}
	history, err := s.History(t.Context(), run)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]time.Duration{"asleep": 24*time.Hour + time.Minute, "backoff": 24*time.Hour + time.Minute, "ended": time.Minute, "slept": -time.Minute}
	for _, p := range history {
		if got := p.NextAt.Sub(at); got != want[p.Name] {
			t.Errorf("%s is due after %s, want %s", p.Name, got, want[p.Name])
		}
	}
}
