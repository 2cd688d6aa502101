package engine

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// TimeoutAction says what happens when the time of a receive is over.
type TimeoutAction uint8

// The values of TimeoutAction.
const (
	TimeoutFails        TimeoutAction = iota // the receive returns a failure with record.CodeTimeout
	TimeoutReturnsValue                      // the receive returns ReceiveSpec.TimeoutValue
	TimeoutCancels                           // the run's tree is cancelled
	TimeoutExpires                           // the run expires, as when its own timeout is over
	TimeoutEscalates                         // Escalate is called once, and the receive keeps waiting
	timeoutActionCount                       // the number of values
)

// ReceiveSpec describes one receive.
type ReceiveSpec struct {
	Name         string
	Signal       string
	CallSite     uintptr
	TimeLimit    time.Duration // the time limit, counted from the first check for a signal
	HasTimeLimit bool          // there is a time limit
	OnTimeout    TimeoutAction
	TimeoutValue []byte
	Escalate     EscalationFunc
}

// receiveCall is the state of one receive in progress.
type receiveCall struct {
	s                *Scope
	r                *run
	spec             *ReceiveSpec
	name             string     // the name with its scope
	row              store.Step // the row of the receive, as recorded or to be recorded
	timeLimitWasOver bool       // the time of the receive was over when its last check began
}

// Receive returns the payload of the oldest signal called spec.Signal that no receive has taken, and waits if there is none. If Receive
// finds no signal, it writes one row, which records that the run waits, and until when. When the wait ends, Receive completes the row.
func (s *Scope) Receive(spec *ReceiveSpec) (CallResult, error) {
	r := s.r
	full := s.fullName(spec.Name)
	recorded, err := s.beginCall(full, store.KindReceive, spec.CallSite)
	if err != nil {
		return CallResult{}, err
	}
	if recorded == nil {
		if err := naming.Check("receive", spec.Name); err != nil {
			return CallResult{}, err
		}
		if s.isInsideCall() {
			return CallResult{}, nestedCallError(r, full)
		}
	}
	w := &receiveCall{s: s, r: r, spec: spec, name: full}
	if recorded == nil || !recorded.Status.IsTerminal() {
		if err := s.checkMayExecuteCall(full, store.KindReceive, recorded); err != nil {
			return CallResult{}, err
		}
		if recorded, err = w.waitForSignal(recorded); err != nil {
			return CallResult{}, err
		}
	}
	return w.applyOutcome(recorded)
}

// waitForSignal checks for a signal until there is one, or the time is over. It returns the recorded row.
func (w *receiveCall) waitForSignal(recorded *store.Step) (*store.Step, error) {
	now := w.r.e.clock.Now()
	w.row = store.Step{Run: w.r.row.UUID, Name: w.name, Kind: store.KindReceive, Attempt: 1, StartedAt: now}
	if recorded == nil {
		w.row.Seq = w.s.nextSeq(w.spec.CallSite)
	} else {
		w.row.Seq = recorded.Seq
	}
	if recorded != nil {
		w.row.Attempt, w.row.StartedAt, w.row.NextAt = recorded.Attempt, recorded.StartedAt, recorded.NextAt
	} else if w.spec.HasTimeLimit {
		w.row.NextAt = now.Add(w.spec.TimeLimit).Truncate(time.Microsecond)
	}
	w.row.Epoch = w.r.row.Epoch
	in := &w.r.waitingReceives
	l := in.addReceive(w.spec.Signal)
	took := false
	defer func() { in.removeReceive(l, took) }()
	waits := recorded != nil && in.queueForSignalCountIfMany(l)
	for {
		if !waits {
			in.markReceiveQuerying(l)
			found, err := w.checkForSignal()
			if err != nil {
				return nil, err
			}
			if found.Status.IsTerminal() {
				took = !w.timeLimitWasOver && found.Status == store.StepCompleted
				return found, nil
			}
			w.row.StartedAt, w.row.NextAt, w.row.Attempt = found.StartedAt, found.NextAt, found.Attempt
			in.markReceiveIdle(l)
		}
		waits = false
		if err := w.r.idleTracker.waitUntilDueOrNotified(w.s, w.row.NextAt, l.queryRequested); err != nil {
			return nil, cmp.Or(w.s.checkOpen(), err)
		}
	}
}

// checkForSignal checks the database once for a signal. It decides before the check whether the time is over. A
// signal that arrived in time still takes precedence over the timeout, see [store.ReceiveWrite].
func (w *receiveCall) checkForSignal() (*store.Step, error) {
	r := w.r
	r.idleTracker.beginBusy()
	defer r.idleTracker.endBusy()
	row := w.row
	row.Status, row.EndedAt = store.StepStarted, r.e.clock.Now()
	if w.timeLimitWasOver = !w.row.NextAt.IsZero() && r.e.clock.Until(w.row.NextAt) == 0; !w.timeLimitWasOver {
		return w.commitRow(&row, false)
	}
	if w.spec.OnTimeout == TimeoutEscalates { // do not escalate if a signal arrived in time
		if found, err := w.commitRow(&row, false); err != nil || found.Status.IsTerminal() {
			return found, err
		}
	}
	if err := w.setTimeoutOutcome(&row); err != nil {
		return nil, err
	}
	return w.commitRow(&row, true)
}

// commitRow commits the row, or, if there is a signal, the end of the step with the signal. It returns the recorded row. The argument
// late says that the row records the timeout.
func (w *receiveCall) commitRow(row *store.Step, late bool) (*store.Step, error) {
	r := w.r
	rec := &store.ReceiveWrite{Step: *row, Signal: w.spec.Signal, Receiver: r.keyRenewals.Receiver(w.name)}
	var left error // not nil: a choice has ended the branch
	failed := false
	err := r.e.writeWithRetry(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), nil, func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
		w.s.branch.preventEndByChoice()
		defer w.s.branch.allowEndByChoice()
		if left = w.s.checkBranchOpen(); left != nil {
			fenced := store.Fenced
			return &fenced, nil
		}
		err := j.WriteReceive(r.writeCtx, rec)
		failed = failed || err != nil
		return &rec.Outcome, err
	})
	switch {
	case left != nil && failed: // the row may be recorded: the next execution reads it
		r.loseOwnership()
		return nil, ErrSuspended
	case left != nil:
		return nil, left
	case err != nil && !errors.Is(err, store.ErrBadData):
		r.suspendAfterFailedWrite("record receive", w.name, err)
		return nil, ErrSuspended
	case err != nil:
		return nil, fmt.Errorf("receive %q in run %q: %w", naming.Display(w.name), r.row.NameOrUUID(), err)
	case rec.Outcome == store.Fenced:
		r.suspendAfterFencedWrite(rec.RunState)
		return nil, ErrSuspended
	}
	r.clearSuspectByCheckpoint(rec.RecordedStep.Status)
	r.applyControl(rec.RunState.Control)
	w.countAndLogTimeout(rec, late)
	if rec.RecordedStep.Kind != store.KindReceive {
		return nil, kindMismatchError(&r.row, w.name, rec.RecordedStep.Kind, store.KindReceive)
	}
	return rec.RecordedStep, r.holdIfRowUnreadable(rec.RecordedStep)
}

// setTimeoutOutcome sets in row what is recorded if the time is over and there is no signal.
func (w *receiveCall) setTimeoutOutcome(row *store.Step) error {
	switch w.spec.OnTimeout {
	case TimeoutReturnsValue:
		row.Status, row.Output = store.StepCompleted, w.spec.TimeoutValue
	case TimeoutEscalates:
		if err := w.escalate(); err != nil {
			return err
		}
		row.Attempt++
		row.NextAt = time.Time{}
	default:
		row.Status = store.StepFailed
		f := &record.Failure{
			Message: fmt.Sprintf("no signal %q came in time", naming.DisplaySignal(w.spec.Signal)), Type: "timeout", Codes: []string{record.CodeTimeout}, Attempts: 1,
		}
		row.Error = f.Encode()
	}
	return nil
}

// applyOutcome returns the result of a receive, given its recorded row, in the first execution and in every replay. It cancels or
// expires the run if the receive timed out and its OnTimeout says so.
func (w *receiveCall) applyOutcome(recorded *store.Step) (CallResult, error) {
	res := recordedResult(recorded)
	if res.Failure == nil {
		return res, nil
	}
	switch w.spec.OnTimeout {
	case TimeoutCancels:
		if err := w.r.checkMayBeginCalls(); err != nil { // the end of the branch is not checked, because it came after the row was recorded
			return CallResult{}, err
		}
		w.cancelRun(res.Failure.Message + " for " + naming.Display(w.name))
		return CallResult{}, w.s.checkOpen()
	case TimeoutExpires:
		f := *res.Failure
		f.Step = naming.Display(w.name)
		w.r.forceEnd(forcedEnd{cause: ErrTimeout, status: store.Expired, failure: &f})
		return CallResult{}, w.s.checkOpen()
	}
	return res, nil
}

// cancelRun cancels the tree of the run, whose time to wait is over. If the cancel cannot be written, cancelRun suspends the run, and the
// next execution repeats the cancel.
func (w *receiveCall) cancelRun(reason string) {
	r := w.r
	if r.preflightFindings != nil {
		r.forceEnd(newCancelledEnd())
		return
	}
	o := &store.ControlRequest{Verb: store.VerbCancel, Runs: uuidList(r.row.UUID), Fence: r.execution(), Reason: reason, Actor: "durable"}
	switch err := r.e.controlRuns(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), o); {
	case err != nil:
		r.suspendAfterFailedWrite("cancel the run, whose time to wait is over, at", w.name, err)
	case o.Fenced: // a repair may have dropped this receive
		r.loseOwnership()
	default:
		r.forceEnd(newCancelledEnd())
	}
}
