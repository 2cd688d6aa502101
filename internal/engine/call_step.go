package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/slots"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// CallSpec describes one durable call.
type CallSpec struct {
	Name string
	Kind store.StepKind
	// MaxAttempts is the maximum number of attempts that RetryDelay allows. MaxAttempts is zero if the number of attempts is unlimited, or
	// if RetryDelay is nil.
	MaxAttempts int32
	// AtMostOnce makes the engine commit a started marker before it calls the step's function. If the process dies after the commit of the
	// marker, the next execution of the run calls VerifyInterruptedAttempt to find out what happened. If VerifyInterruptedAttempt is nil,
	// the step then fails with record.CodeOutcomeUnknown.
	AtMostOnce               bool
	VerifyInterruptedAttempt func(ctx context.Context) (out AttemptOutput, happened bool, failure *record.Failure)

	// RetryDelay returns how long to wait before the next attempt after the given attempt has failed, or false if there is no further
	// attempt. If RetryDelay is nil, the step is not retried.
	RetryDelay func(attempt int32) (time.Duration, bool)

	CallSite       uintptr       // where the user's code made the call
	AttemptTimeout time.Duration // the limit of one attempt; zero: none
	TotalTimeout   time.Duration // the limit from the first attempt's start; zero: none

	ItemNumber int    // the number of the Map's item that the call executes, counted from 1; zero: the call executes no item
	ItemKey    string // the item's key; empty: it has none

	// CompensatedSteps has the names of the steps that this call, which is a compensation, undoes. The steps are in the scope of the call.
	CompensatedSteps []string

	// Permit names the limit that bounds the attempts of the step over all workers. Permit is nil if no limit bounds them.
	Permit *PermitSpec

	// ExecuteAttempt executes one attempt.
	ExecuteAttempt func(ctx context.Context) (AttemptOutput, *record.Failure)

	// ExecuteTxAttempt executes one attempt that commits its own checkpoint. A call has either ExecuteAttempt or ExecuteTxAttempt. The
	// argument w is the row of the checkpoint: ExecuteTxAttempt sets the output in w to the output of the attempt, and w.Outcome to the
	// outcome of the commit. If ExecuteTxAttempt returns a failure, nothing was committed, with one exception: if the CommitError of
	// the failure is store.ErrInDoubt, it is not known whether the commit took effect.
	ExecuteTxAttempt func(ctx context.Context, w *store.StepWrite, t *TxAttempt) (value any, f *record.Failure)
}

// isExecutedInAttempts reports whether the call consists of attempts.
func (s *CallSpec) isExecutedInAttempts() bool {
	return s.ExecuteAttempt != nil || s.ExecuteTxAttempt != nil
}

// AttemptOutput is the result of an attempt: the bytes to record, and the value that they decode into, so that the caller need not decode
// them again. Each attempt has a value of its own, because an attempt for which the engine no longer waits may still return another value.
type AttemptOutput struct {
	Bytes []byte
	Value any
}

// CallResult is the recorded outcome of a durable call: an output or a failure.
type CallResult struct {
	Output  []byte
	Failure *record.Failure
	Value   any // the Output.Value of this call's own attempt; nil if the outcome was recorded before
}

// stepTask is one step being executed.
type stepTask struct {
	r              *run
	scope          *Scope
	spec           *CallSpec
	name           string           // the name with its scope
	recordedStep   *store.Step      // the step's row in history, which is not terminal; nil: none
	attempt        int32            // the number of the attempt
	seq            int32            // the step's position in the order in which the run's calls began
	outcomeUnknown bool             // an attempt of an AtMostOnce step has begun, and its outcome is not known
	hasRow         bool             // the step has a row in the database
	firstBegan     time.Time        // when the first attempt began, or arrived in the line of its limit
	attemptBegan   time.Time        // when the current attempt began
	minEndTime     int64            // the earliest end time of the checkpoint, in microseconds since 1970; zero: none
	slot           *slots.StepSlot  // the slot of the attempt; nil: it needs none
	txPhase        *txPhase         // the phase of the attempt; nil: the attempt is not transactional, or cannot be abandoned
	failures       *record.Failures // the failures of earlier attempts; nil: none
}

// Step returns the step's recorded outcome. If no outcome is recorded, Step first executes the step. If the step fails, the failure
// is in the CallResult. Step returns an error only if the run or the branch can do nothing new, or if the call itself is not allowed.
func (s *Scope) Step(spec *CallSpec) (CallResult, error) {
	r := s.r
	name := s.fullName(spec.Name)
	recorded, err := s.beginCall(name, spec.Kind, spec.CallSite)
	if err != nil {
		return CallResult{}, err
	}
	if recorded != nil && recorded.Status.IsTerminal() {
		return recordedResult(recorded), nil
	}
	if recorded == nil {
		if err := naming.Check("step", spec.Name); err != nil {
			return CallResult{}, err
		}
	}
	if s.isInsideCall() {
		return CallResult{}, nestedCallError(r, name)
	}
	if err := s.checkMayExecuteCall(name, spec.Kind, recorded); err != nil {
		return CallResult{}, err
	}
	s.mapRow.write()
	return s.executeCall(spec, name, recorded)
}

func (s *Scope) executeCall(spec *CallSpec, name string, recorded *store.Step) (CallResult, error) {
	t := &stepTask{r: s.r, scope: s, spec: spec, name: name, recordedStep: recorded}
	s.r.idleTracker.beginBusy()
	defer s.r.idleTracker.endBusy()
	return t.executeAttempts()
}

// nameInMetrics returns the step's name in metrics and spans. It omits the scopes. For an item of a Map it is the
// Map's name, because the name of an item may be a key, such as an order's ID.
func (t *stepTask) nameInMetrics() string {
	if t.scope.mapName != "" {
		return t.scope.mapName
	}
	return t.spec.Name
}

func recordedResult(s *store.Step) CallResult {
	if s.Status == store.StepFailed {
		return CallResult{Failure: record.DecodeFailure(s.Error)}
	}
	return CallResult{Output: s.Output}
}

// executeAttempts executes attempts until the step has an outcome.
func (t *stepTask) executeAttempts() (CallResult, error) {
	t.attempt, t.firstBegan = 1, t.r.e.clock.Now()
	if row := t.recordedStep; row == nil {
		t.seq = t.scope.nextSeq(t.spec.CallSite)
	} else {
		t.initFromRow(row)
		t.outcomeUnknown = row.Status == store.StepStarted && t.spec.AtMostOnce
		if row.Status == store.StepBackoff && t.spec.AtMostOnce {
			t.attempt = row.Attempt // the attempt's started marker was revoked, so the attempt did not begin
		}
		if row.Status == store.StepStarted && t.spec.RetryDelay != nil {
			if _, more := t.spec.RetryDelay(row.Attempt); !more {
				return t.failCrashedLastAttempt(row.Attempt)
			}
		}
		if row.Status == store.StepBackoff {
			if err := t.awaitRetry(row.NextAt); err != nil {
				return CallResult{}, err
			}
		}
	}
	for {
		if err := t.checkAttemptMayBegin(); err != nil {
			return CallResult{}, err
		}
		result, next, err := t.executeAttempt()
		if err != nil || next.IsZero() {
			return result, err
		}
		if err := t.awaitRetry(next); err != nil {
			return CallResult{}, err
		}
		t.attempt++
	}
}

// failCrashedLastAttempt fails a step whose last allowed attempt ended with its process.
func (t *stepTask) failCrashedLastAttempt(attempt int32) (CallResult, error) {
	t.attempt = attempt
	res, _, err := t.commitRow(t.newStepWrite(store.StepFailed, nil, &record.Failure{
		Message:  fmt.Sprintf("attempt %d, the last that its retry policy allows, ended with its process, and what it did is not known", attempt),
		Codes:    []string{record.CodeOutcomeUnknown},
		Attempts: attempt,
	}))
	return res, err
}

// awaitRetry waits until due, when the next attempt begins. The run may leave memory meanwhile.
func (t *stepTask) awaitRetry(due time.Time) error {
	t.r.idleTracker.endBusy()
	defer t.r.idleTracker.beginBusy()
	if err := t.r.idleTracker.waitUntilDueOrNotified(t.scope, due, nil); err != nil {
		return cmp.Or(t.scope.checkOpen(), err)
	}
	return nil
}

// executeAttempt executes one attempt and records its outcome. A returned time that is not zero is when the next
// attempt is due.
func (t *stepTask) executeAttempt() (CallResult, time.Time, error) {
	leave, err := t.awaitPermitAndSlot()
	if err != nil {
		return CallResult{}, time.Time{}, err
	}
	defer leave() // also after a Goexit
	var m *delayedStartedMarker
	if t.attemptBegan = t.firstBegan; t.recordedStep != nil || t.attempt > 1 || t.spec.Permit != nil {
		t.attemptBegan = t.r.e.clock.Now()
	}
	if t.spec.AtMostOnce && !t.outcomeUnknown {
		if res, done, err := t.commitStartedMarker(); done || err != nil {
			return res, time.Time{}, err
		}
		if err := t.checkAttemptMayBegin(); err != nil {
			t.revokeStartedMarker()
			return CallResult{}, time.Time{}, err
		}
		m = &delayedStartedMarker{task: t} // without a timer, because the started marker is committed already
	} else {
		m = t.armStartedMarker()
	}
	began := time.Now()
	got, err := t.callWithTimeouts()
	leave()
	if merr := m.endMarker(); merr != nil && err == nil {
		err = merr
	}
	if err != nil {
		t.revokeStartedMarkerIfInterrupted(got.failure != nil && got.failure.Suspended)
		return CallResult{}, time.Time{}, err
	}
	t.r.e.telemetry.RecordAttempt(t.r.ctx, t.r.row.Workflow, t.nameInMetrics(), t.attempt, time.Since(began), got.failure.ErrorType())
	if got.failure != nil {
		return t.recordFailure(got.failure)
	}
	w := got.selfCommittedStep
	var res CallResult
	if w != nil {
		res, _, err = t.outcomeAfterWrite(w)
	} else {
		w = t.newStepWrite(store.StepCompleted, got.out.Bytes, nil)
		res, _, err = t.commitRow(w)
	}
	if err == nil && w.Outcome == store.Written && res.Failure == nil {
		res.Value = got.out.Value
	}
	return res, time.Time{}, err
}

// revokeStartedMarkerIfInterrupted revokes the started marker of an attempt that ended because this process shuts down, or because a
// call of the attempt returned the run's suspension. Such an attempt did not die with its process, so it must not count as the last
// attempt that a retry policy allows. The outcome of an at-most-once step stays unknown.
func (t *stepTask) revokeStartedMarkerIfInterrupted(suspended bool) {
	if !t.hasRow || t.spec.AtMostOnce || !suspended && !errors.Is(context.Cause(t.r.ownedCtx), ErrShutdown) {
		return
	}
	t.noteFailedAttempt(t.r.e.clock.Now(), nil, time.Time{})
	w := t.newStepWrite(store.StepBackoff, nil, nil)
	w.Step.NextAt = w.Step.EndedAt
	if err := t.r.e.journal.WriteStep(t.r.writeCtx, w); err != nil {
		t.r.logger().Warn("an interrupted attempt could not be noted; it will count as one that died", telemetry.KeyStep, naming.Display(t.name), telemetry.KeyError, err)
	}
}

// recordFailure records a failed attempt: as a backoff if another attempt follows, or else as the failure of the
// step.
func (t *stepTask) recordFailure(f *record.Failure) (CallResult, time.Time, error) {
	f.Attempts = t.attempt
	now := t.r.e.clock.Now()
	next, again := t.nextAttemptAt(f, now)
	t.noteFailedAttempt(now, f, next)
	if again {
		w := t.newStepWrite(store.StepBackoff, nil, f)
		w.Step.NextAt = next
		res, _, err := t.commitRow(w)
		if err != nil || w.Outcome == store.AlreadyRecorded {
			return res, time.Time{}, err
		}
		t.r.logger().Debug("an attempt failed; the step will be tried again",
			append(t.attemptAttrs(), telemetry.KeyError, f.Message, telemetry.KeyNextAt, next)...)
		return CallResult{}, next, nil
	}
	return t.commitRow(t.newStepWrite(store.StepFailed, nil, f))
}

// nextAttemptAt returns when the step is retried after the failure, and whether it is retried at all.
func (t *stepTask) nextAttemptAt(f *record.Failure, now time.Time) (time.Time, bool) {
	if f.Permanent || t.spec.RetryDelay == nil {
		return time.Time{}, false
	}
	delay, ok := t.spec.RetryDelay(t.attempt)
	if !ok {
		return time.Time{}, false
	}
	next := now.Add(delay)
	if t.spec.TotalTimeout > 0 && next.After(t.firstBegan.Add(t.spec.TotalTimeout)) {
		f.Message = fmt.Sprintf("no time for another attempt within the total timeout of %v: %s", t.spec.TotalTimeout, f.Message)
		f.Codes = append(f.Codes, record.CodeTimeout)
		return time.Time{}, false
	}
	return next, true
}

// newStepWrite returns the checkpoint of the current attempt.
func (t *stepTask) newStepWrite(status store.StepStatus, output []byte, f *record.Failure) *store.StepWrite {
	if t.seq == 0 {
		t.seq = t.scope.nextSeq(t.spec.CallSite)
	}
	w := &store.StepWrite{RowExists: t.hasRow, Step: store.Step{
		Run: t.r.row.UUID, Seq: t.seq, Name: t.name, Kind: t.spec.Kind, Status: status, Attempt: t.attempt, Epoch: t.r.row.Epoch,
		Output: output, StartedAt: t.firstBegan,
	}}
	if f != nil {
		w.Step.Error = f.Encode()
	}
	if status != store.StepStarted {
		w.Step.EndedAt = t.r.e.clock.Now()
		if after := t.minEndTime; after > w.Step.EndedAt.UnixMicro() {
			w.Step.EndedAt = time.UnixMicro(after).UTC()
		}
	}
	if open := status == store.StepStarted && t.spec.isExecutedInAttempts(); open || t.failures != nil {
		w.Step.Failures = t.encodeFailedAttempts(open, f != nil)
	}
	return w
}

// commitRow commits the row, and returns the step's outcome. It also writes the result if the run is suspended: the database accepts
// the write as long as no other execution owns the run.
func (t *stepTask) commitRow(w *store.StepWrite) (CallResult, time.Time, error) {
	r := t.r
	if r.e.codecStore != nil {
		r.e.codecStore.SealStep(w)
	}
	err := r.e.journal.WriteStep(r.writeCtx, w)
	if err == nil && w.Outcome == store.Locked {
		err = errRowLocked
	}
	if MaySucceedOnRetry(err) {
		err = r.e.retryWriteInSeparateTx(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), nil, func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
			return &w.Outcome, j.WriteStep(r.writeCtx, w)
		}, err)
	}
	switch {
	case err == nil:
		return t.outcomeAfterWrite(w)
	case errors.Is(err, store.ErrBadData) && w.Step.Status == store.StepCompleted:
		return t.commitRow(t.newStepWrite(store.StepFailed, nil, &record.Failure{
			Message: fmt.Sprintf("the database refused the output: %v", err), Codes: []string{record.CodeRefused}, Attempts: t.attempt, Permanent: true,
		}))
	}
	r.suspendAfterFailedWrite("write the checkpoint of step", t.name, err)
	return CallResult{}, time.Time{}, ErrSuspended
}

// outcomeAfterWrite returns the step's outcome after its checkpoint was committed.
func (t *stepTask) outcomeAfterWrite(w *store.StepWrite) (CallResult, time.Time, error) {
	switch w.Outcome {
	case store.Written:
		t.hasRow = true
		t.logStepFailure(w)
		t.r.clearSuspectByCheckpoint(w.Step.Status)
		t.r.applyControl(w.RunState.Control)
		return recordedResult(&w.Step), time.Time{}, nil
	case store.AlreadyRecorded:
		if w.RecordedStep.Kind != t.spec.Kind {
			return CallResult{}, time.Time{}, kindMismatchError(&t.r.row, t.name, w.RecordedStep.Kind, t.spec.Kind)
		}
		return recordedResult(w.RecordedStep), time.Time{}, t.r.holdIfRowUnreadable(w.RecordedStep)
	default:
		return CallResult{}, time.Time{}, t.handleFencedStep(w.RunState)
	}
}
