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

// TestProbe lets a test observe and control an engine. Only package durabletest implements it. An engine whose store is a ProbedStore uses
// the TestProbe of that store.
type TestProbe interface {
	// AttachEngine tells the probe which engine uses it. New calls AttachEngine once.
	AttachEngine(e *Engine)
	// Clock returns the clock of the engine. New calls Clock once. If Clock returns nil, the engine uses the database's time.
	Clock() ManualClock
	// OnCall is called for every durable call of an execution, including calls whose result is in history. OnCall must not block or call
	// the engine.
	OnCall(c ProbedCall)
	// ExecuteAttempt executes one attempt of a step by calling the function next, or returns another result without calling it.
	ExecuteAttempt(ctx context.Context, c ProbedCall, next func() (AttemptOutput, *record.Failure)) (AttemptOutput, *record.Failure)
	// OutputToCommit returns the output that an attempt which commits its own checkpoint records. The argument output is what the attempt's
	// function returned.
	OutputToCommit(c ProbedCall, output []byte) []byte
}

// ProbedStore is a store that gives each of its engines a TestProbe. The method WrappedStore returns the store that the ProbedStore wraps,
// which Engine.Store returns too.
type ProbedStore interface {
	store.Store
	Probe() TestProbe
	WrappedStore() store.Store
}

// ManualClock replaces the database's time in tests. A ManualClock does not change how long steps, the timeouts of their attempts, and the
// engine's own pauses take.
type ManualClock = clock.ManualClock

// Timer is a function call that a ManualClock has scheduled.
type Timer = clock.Timer

// ProbedCall describes one durable call of an execution.
type ProbedCall struct {
	Run      uuid.UUID
	Parent   uuid.NullUUID
	RunName  string
	Workflow string
	Epoch    store.Epoch
	Name     string // the name with its scope; see naming.Display
	Kind     store.StepKind
	Attempt  int32 // zero in Probe.Called
	Recorded bool  // history holds its outcome
	// IsInEndedBranch reports whether a choice has ended the branch that makes the call. Such a call is executed only if it is recorded.
	IsInEndedBranch bool
}

// Encode and FailureFromError are set by the root package. Encode encodes a value as it is recorded, and
// FailureFromError converts an error to the Failure that is recorded for it.
var (
	EncodeValue      func(v any) ([]byte, error)
	FailureFromError func(err error) *record.Failure
)

// attachProbe attaches the store's probe, if the store has one.
func (e *Engine) attachProbe(s store.Store) {
	p, ok := s.(ProbedStore)
	if !ok {
		return
	}
	e.probe, e.rawStore = p.Probe(), p.WrappedStore()
	if c := e.probe.Clock(); c != nil {
		e.clock = clock.FromManualClock(c)
	}
	e.probe.AttachEngine(e)
}

// notifyProbe notifies the probe of a call in the scope. recorded is the call's row in history, or nil. r.mu is held.
func (s *Scope) notifyProbe(name string, kind store.StepKind, recorded *store.Step) {
	if p := s.r.e.probe; p != nil {
		c := s.r.newProbedCall(name, kind, recorded != nil && recorded.Status.IsTerminal())
		c.IsInEndedBranch = !s.compensating && !s.branch.earliestEndOfBranchOrAncestor().IsZero()
		p.OnCall(c)
	}
}

// newProbedCall describes a call of the run for the probe. recorded tells that history holds the result of the call.
func (r *run) newProbedCall(name string, kind store.StepKind, recorded bool) ProbedCall {
	return ProbedCall{
		Run: r.row.UUID, Parent: r.row.Parent, RunName: r.row.Name, Workflow: r.row.Workflow, Epoch: r.row.Epoch,
		Name: name, Kind: kind, Recorded: recorded,
	}
}

// executeThroughProbeIfSet executes the attempt, through the probe if there is one.
func (t *stepTask) executeThroughProbeIfSet(ctx *attemptContext) (got attemptResult) {
	if t.r.e.probe == nil {
		return t.callAttemptFunction(ctx)
	}
	return t.executeThroughProbe(ctx)
}

// outputToRecord returns the output to record, through the probe if there is one. own reports whether this is
// the function's own output.
func (t *stepTask) outputToRecord(output []byte) (record []byte, own bool) {
	if t.r.e.probe == nil {
		return output, true
	}
	record = t.r.e.probe.OutputToCommit(t.r.newProbedCall(t.name, t.spec.Kind, false), output)
	return record, bytes.Equal(record, output)
}

// chooseWinners returns the indexes of the branches that decide a choice, through the probe if there is
// one.
func (t *stepTask) chooseWinners(spec *ChoiceSpec) ([]int, error) {
	if t.r.e.probe == nil {
		return spec.DecidingBranches, nil
	}
	c := t.r.newProbedCall(t.name, store.KindChoice, false)
	c.Attempt = t.attempt
	out, failure := t.r.e.probe.ExecuteAttempt(t.scope.stepsCtx, c, func() (AttemptOutput, *record.Failure) {
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

// executeThroughProbe lets the probe execute the attempt.
func (t *stepTask) executeThroughProbe(ctx *attemptContext) (got attemptResult) {
	c := t.r.newProbedCall(t.name, t.spec.Kind, false)
	c.Attempt = t.attempt
	got.out, got.failure = t.r.e.probe.ExecuteAttempt(ctx, c, func() (AttemptOutput, *record.Failure) {
		got = t.callAttemptFunction(ctx)
		return got.out, got.failure
	})
	return got
}
