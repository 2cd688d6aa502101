package sqlite

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func sendSignals(t *testing.T, s *database, signals ...*store.SignalWrite) {
	t.Helper()
	commit(t, s, &store.Batch{Signals: signals})
}

func receive(t *testing.T, s *database, w *store.ReceiveWrite) *store.ReceiveWrite {
	t.Helper()
	commit(t, s, &store.Batch{Receives: []*store.ReceiveWrite{w}})
	return w
}

func TestSignalRules(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	first, second := newSignal(run, "paid", now()), newSignal(run, "paid again", now())
	first.Key, second.Key = "key", "key"
	sendSignals(t, s, first, second)
	if first.Outcome != store.Written || second.Outcome != store.AlreadyRecorded || second.ExistingSignal.ID != first.ID || second.ExistingSignal.Name != "paid" {
		t.Fatalf("%+v %+v", first, second)
	}
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run, Epoch: epochAt(1), Status: store.Completed, EndedAt: now()}}})
	late, nobody := newSignal(run, "late", now()), newSignal(store.NewUUID(1), "late", now())
	sendSignals(t, s, first, late, nobody)
	if first.Outcome != store.Written {
		t.Error("a replay returned", first.Outcome)
	}
	if late.Outcome != store.Fenced || late.RunState.Status != store.Completed || nobody.Outcome != store.Fenced || nobody.RunState.Found {
		t.Fatalf("%+v %+v", late, nobody)
	}
}

// Signals are received first in, first out, each once; a receive without one waits for as
// long as it said first.
func TestReceiveRules(t *testing.T) {
	s := openTest(t)
	run := startTestRuns(t, s, 1)[0]
	at := now()
	wait := newReceive(run, "a", "go")
	wait.Step.NextAt = at.Add(time.Minute)
	if receive(t, s, wait); wait.Outcome != store.Written || wait.RecordedStep.Status != store.StepStarted {
		t.Fatalf("%+v", wait)
	}
	var signals []*store.SignalWrite
	for i := range 3 {
		signals = append(signals, newSignal(run, "go", at.Add(-time.Duration(i)*time.Second)))
		signals[i].Payload = []byte(fmt.Sprint(i))
	}
	sendSignals(t, s, append(signals, newSignal(run, "other", at.Add(-time.Hour)))...)
	wait.Step.StartedAt, wait.Step.NextAt = at.Add(time.Second), time.Time{}
	got := receive(t, s, wait).RecordedStep
	if wait.Outcome != store.Written || got.Status != store.StepCompleted || string(got.Output) != "2" || !got.NextAt.Equal(at.Add(time.Minute)) || got.EndedAt.IsZero() {
		t.Fatalf("%+v %+v", wait, got)
	}
	if receive(t, s, wait); wait.Outcome != store.AlreadyRecorded || string(wait.RecordedStep.Output) != "2" {
		t.Fatalf("replayed: %+v", wait)
	}
	for i, want := range []string{"1", "0"} {
		if w := receive(t, s, newReceive(run, fmt.Sprint("b", i), "go")); string(w.RecordedStep.Output) != want {
			t.Fatalf("%+v", w.RecordedStep)
		}
	}
	over := newReceive(run, "c", "go")
	over.Step.Status, over.Step.Error, over.Step.EndedAt = store.StepFailed, []byte("late"), at
	if receive(t, s, over); over.Outcome != store.Written || over.RecordedStep.Status != store.StepFailed {
		t.Fatalf("%+v", over)
	}
	order(t, s, store.VerbPause, run)
	if w := receive(t, s, newReceive(run, "d", "other")); w.Outcome != store.Written || w.RunState.Control != store.PausedItself || w.RecordedStep.Status != store.StepCompleted {
		t.Fatalf("%+v", w)
	}
	sendSignals(t, s, newSignal(run, "kept", at))
	old := newReceive(run, "e", "kept")
	old.Step.Epoch = store.Epoch{}
	if receive(t, s, old); old.Outcome != store.Fenced || old.RunState.Epoch != epochAt(1) {
		t.Fatalf("%+v", old)
	}
	if w := receive(t, s, newReceive(run, "e", "kept")); w.RecordedStep.Status != store.StepCompleted {
		t.Fatalf("a fenced receive took the signal: %+v", w.RecordedStep)
	}
}

// A signal wakes a run that waits, and tells a worker whose run is in memory; a run that
// parks after it was woken is due at once.
func TestSignalsWakeRuns(t *testing.T) {
	s := openTest(t)
	start := newStart("")
	s.mustCommit(t, start)
	run, worker := start.Run.UUID, start.Run.Owner.UUID
	claimHints, _ := attend(t, s, uuid.New(), store.HintClaim)
	newsHints, _ := attend(t, s, uuid.New(), store.HintOwnedRunChange)
	at := now()
	sendSignals(t, s, newSignal(run, "a", at))
	await(t, newsHints)
	for _, c := range []struct {
		worker uuid.UUID
		held   []store.Lease
		woken  int
	}{
		{uuid.New(), []store.Lease{{Run: run, Epoch: epochAt(1)}}, 0},
		{worker, nil, 0},
		{worker, []store.Lease{{Run: run, Epoch: epochAt(2)}}, 0},
		{worker, []store.Lease{{Run: run, Epoch: epochAt(1)}}, 1},
		{worker, []store.Lease{{Run: run, Epoch: epochAt(1)}}, 0}, // told once
	} {
		news, err := s.OwnedRunChanges(t.Context(), c.worker, c.held)
		if err != nil || len(news.Woken) != c.woken || len(news.ControlRequests) > 0 {
			t.Fatalf("%+v: %+v %v", c, news, err)
		}
	}
	sendSignals(t, s, newSignal(run, "b", at))
	park := &store.OwnershipEnd{UUID: run, Epoch: epochAt(1), Status: store.Waiting, Now: at, WakeAt: at.Add(time.Hour)}
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{park}})
	if got := row(t, s, run); park.Outcome != store.Written || got.Status != store.Waiting || !got.WakeAt.Equal(at) {
		t.Fatalf("%+v %+v", park, got)
	}
	claims := claimAt(t, s, at)
	if len(claims.Runs) != 1 {
		t.Fatalf("%+v", claims)
	}
	owner := claims.Runs[0].Run.Owner.UUID
	order(t, s, store.VerbPause, run)
	for range 2 { // told again until it leaves
		news, err := s.OwnedRunChanges(t.Context(), owner, []store.Lease{{Run: run, Epoch: epochAt(2)}})
		if err != nil || len(news.Woken) > 0 || !slices.Equal(news.ControlRequests, []store.PendingControl{{Run: run, Epoch: epochAt(2), Control: store.PausedItself}}) {
			t.Fatalf("%+v %v", news, err)
		}
	}
	order(t, s, store.VerbResume, run)
	commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{{UUID: run, Epoch: epochAt(2), Status: store.Waiting, WakeAt: at.Add(time.Hour)}}})
	await(t, claimHints)
	sendSignals(t, s, newSignal(run, "c", at))
	await(t, claimHints)
	if got := row(t, s, run); got.Status != store.Waiting || !got.WakeAt.Equal(at) {
		t.Fatalf("%+v", got)
	}
}

// The end of a child wakes its parent, in one batch with the parent's park in any order.
func TestChildWakesParent(t *testing.T) {
	s := openTest(t)
	at := now()
	parents := startTestRuns(t, s, 2)
	for i, parent := range parents {
		child := newChild(parent, "child")
		child.Run.Status, child.Run.Epoch = store.Running, epochAt(1)
		commit(t, s, &store.Batch{Starts: []*store.StartWrite{child}})
		end := &store.OwnershipEnd{UUID: child.Run.UUID, ParentToWake: child.Run.Parent, Epoch: epochAt(1), Status: store.Failed, Now: at, EndedAt: at}
		park := &store.OwnershipEnd{UUID: parent, Epoch: epochAt(1), Status: store.Waiting, Now: at}
		if i == 0 {
			commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end, park}})
		} else {
			commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{end}})
			commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{park}})
		}
		if got := row(t, s, parent); park.Outcome != store.Written || got.Status != store.Waiting || !got.WakeAt.Equal(at) {
			t.Fatalf("%d: %+v %+v", i, park, got)
		}
		if types := eventTypes(t, s, child.Run.UUID); !slices.Equal(types, []store.EventType{store.EventFailed}) {
			t.Error(types)
		}
	}
}
