package durabletest

import (
	"errors"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// A fault does the write or not, as it is to, and nothing after it.
func TestFault(t *testing.T) {
	t.Parallel()
	for when, want := range map[crashMoment]struct {
		done int
		told bool
	}{crashBeforeWrite: {1, false}, crashAfterCommit: {2, true}, crashWithoutReply: {2, false}} {
		f := newSimulatedProcess(2, when)
		done := 0
		write := func() error { return f.executeWrite("it", func() error { done++; return nil }) }
		if err := write(); err != nil || f.isDead() {
			t.Errorf("crashed %v the second write: the first one returned %v", when, err)
		}
		if err := write(); (err == nil) != want.told || !f.isDead() || f.crashedWrite != "it" {
			t.Errorf("crashed %v: the second one returned %v", when, err)
		}
		if err := write(); !errors.Is(err, store.ErrUnavailable) || done != want.done {
			t.Errorf("crashed %v: %v after %d writes", when, err, done)
		}
	}
}

// An attempt of a step whose outcome is committed is noticed; a dead process makes none.
func TestFaultNoticesReruns(t *testing.T) {
	t.Parallel()
	f := newSimulatedProcess(1, crashBeforeWrite)
	c := engine.HookedCall{Run: uuid.New(), Name: "a", Kind: store.KindStep}
	attempts := 0
	next := func() (engine.AttemptOutput, *record.Failure) { attempts++; return engine.AttemptOutput{}, nil }
	if _, _, again := f.executeAttempt(c, next); again {
		t.Error("the first attempt is taken for a second one")
	}
	f.mu.Lock()
	f.noteFinishedSteps(&store.Batch{Steps: []*store.StepWrite{{
		Step: store.Step{Run: c.Run, Name: "a", Status: store.StepCompleted}, Outcome: store.Written,
	}}})
	f.mu.Unlock()
	if _, _, again := f.executeAttempt(c, next); !again {
		t.Error("an attempt after the commit was not noticed")
	}
	_ = f.executeWrite("it", func() error { return nil })
	if _, failure, _ := f.executeAttempt(c, next); failure == nil || attempts != 2 {
		t.Errorf("the dead made an attempt: %d", attempts)
	}
}
