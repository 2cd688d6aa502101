package engine

import (
	"bytes"
	"context"
	"slices"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// TestHooks lets a test observe and control an engine. Only package durabletest implements it. An engine whose store is a HookedStore uses
// the TestHooks of that store.
type TestHooks interface {
	// AttachEngine tells the TestHooks which engine uses it. New calls AttachEngine once.
	AttachEngine(e *Engine)
	// Clock returns the clock of the engine. New calls Clock once. If Clock returns nil, the engine uses the database's time.
	Clock() ManualClock
	// OnCall is called for every durable call of an execution, including calls whose result is in history. OnCall must not block or call
	// the engine.
	OnCall(c HookedCall)
	// ExecuteAttempt executes one attempt of a step by calling next, or returns another result without calling next.
	ExecuteAttempt(ctx context.Context, c HookedCall, next func() (AttemptOutput, *record.Failure)) (AttemptOutput, *record.Failure)
	// OutputToCommit returns the output that an attempt which commits its own checkpoint records. The argument output is what the attempt's
	// function returned.
	OutputToCommit(c HookedCall, output []byte) []byte
}

// HookedStore is a store that gives each of its engines a TestHooks. The method WrappedStore returns the store that the HookedStore wraps,
// which Engine.Store returns too.
type HookedStore interface {
	store.Store
	Hooks() TestHooks
	WrappedStore() store.Store
}

// ManualClock replaces the database's time in tests. A ManualClock does not change how long steps, the timeouts of their attempts, and the
// engine's own pauses take.
type ManualClock = clock.ManualClock

// Timer is a function call that a ManualClock has scheduled.
type Timer = clock.Timer

// HookedCall describes one durable call of an execution.
type HookedCall struct {
	Run      uuid.UUID
	Parent   uuid.NullUUID
	RunName  string
	Workflow string
	Epoch    store.Epoch
	// Generation is the number of the run's generation. Each generation makes its own calls.
	Generation int32
	Name       string // the name with its scope; see naming.Display
	Kind       store.StepKind
	Attempt    int32 // zero in TestHooks.OnCall
	Recorded   bool  // history holds its outcome
}

// Encode and FailureFromError are set by the root package. Encode encodes a value as it is recorded, and
// FailureFromError converts an error to the Failure that is recorded for it.
var (
	EncodeValue      func(v any) ([]byte, error)
	FailureFromError func(err error) *record.Failure
)

// attachTestHooks attaches the TestHooks of the store, if the store has them.
func (e *Engine) attachTestHooks(s store.Store) {
	p, ok := s.(HookedStore)
	if !ok {
		return
	}
	e.testHooks, e.rawStore = p.Hooks(), p.WrappedStore()
	if c := e.testHooks.Clock(); c != nil {
		e.clock = clock.FromManualClock(c)
	}
	e.testHooks.AttachEngine(e)
}

// notifyTestHooks notifies the test hooks of a call in the scope. The argument recorded is the call's row in history, or nil. r.mu is
// held.
func (s *Scope) notifyTestHooks(name string, kind store.StepKind, recorded *store.Step) {
	if p := s.r.e.testHooks; p != nil {
		p.OnCall(s.r.newHookedCall(name, kind, recorded != nil && recorded.Status.IsTerminal()))
	}
}

// newHookedCall describes a call of the run for the test hooks. The argument recorded says that history holds the result of the call.
func (r *run) newHookedCall(name string, kind store.StepKind, recorded bool) HookedCall {
	return HookedCall{
		Run: r.row.UUID, Parent: r.row.Parent, RunName: r.row.Name, Workflow: r.row.Workflow, Epoch: r.row.Epoch,
		Generation: r.keyRenewals.runGeneration(), Name: name, Kind: kind, Recorded: recorded,
	}
}

// executeThroughTestHooksIfSet executes the attempt, through the test hooks if the engine has them.
func (t *stepTask) executeThroughTestHooksIfSet(ctx *attemptContext) (got attemptResult) {
	if t.r.e.testHooks == nil {
		return t.callAttemptFunction(ctx)
	}
	return t.executeThroughTestHooks(ctx)
}

// outputToRecord returns the output to record, which the test hooks, if the engine has them, may replace. The result own reports
// whether it is the function's own output.
func (t *stepTask) outputToRecord(output []byte) (record []byte, own bool) {
	if t.r.e.testHooks == nil {
		return output, true
	}
	record = t.r.e.testHooks.OutputToCommit(t.r.newHookedCall(t.name, t.spec.Kind, false), output)
	return record, bytes.Equal(record, output)
}

// chooseWinners returns the indexes of the branches that decide a choice, which the test hooks, if the engine has them, may choose.
func (t *stepTask) chooseWinners(spec *ChoiceSpec) ([]int, error) {
	if t.r.e.testHooks == nil {
		return spec.DecidingBranches, nil
	}
	c := t.r.newHookedCall(t.name, store.KindChoice, false)
	c.Attempt = t.attempt
	out, failure := t.r.e.testHooks.ExecuteAttempt(t.scope.stepsCtx, c, func() (AttemptOutput, *record.Failure) {
		made := spec.newRecordWithDeciders(spec.DecidingBranches)
		encoded, err := made.Encode()
		if err != nil {
			return AttemptOutput{}, &record.Failure{Message: err.Error()}
		}
		return AttemptOutput{Bytes: encoded}, nil
	})
	if failure != nil {
		return nil, t.interruptionCause()
	}
	first, err := record.DecodeChoice(out.Bytes)
	return slices.Concat(first.Won, first.Failed), err
}

// executeThroughTestHooks lets the test hooks execute the attempt.
func (t *stepTask) executeThroughTestHooks(ctx *attemptContext) (got attemptResult) {
	c := t.r.newHookedCall(t.name, t.spec.Kind, false)
	c.Attempt = t.attempt
	got.out, got.failure = t.r.e.testHooks.ExecuteAttempt(ctx, c, func() (AttemptOutput, *record.Failure) {
		got = t.callAttemptFunction(ctx)
		return got.out, got.failure
	})
	return got
}
