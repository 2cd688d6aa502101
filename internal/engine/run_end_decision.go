package engine

import (
	"fmt"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// A run that fails decides once how it ends. Before it calls its first compensation, it records the
// failure and the registered compensations. Every later execution comes to this end, even with other code: calls that are not in
// history return an error, the recorded compensations are executed, and the run ends with the recorded failure. Without this record,
// a run could be compensated in part and then continue, if corrected code is deployed meanwhile.
//
// A cancelled run records its compensations too, because the run's row holds the cancel, which is never revoked, but not the compensations. A
// run without compensations needs a record only if it was not cancelled itself and cancels its children at its end. Without the record, the
// next execution after a crash could continue differently: a branch could see the cancelled child before the function fails again.

// recordEndDecision records how the run ends. It does nothing if that is recorded already, or if no record is needed.
// It reports false if the run was suspended meanwhile.
func (r *run) recordEndDecision(status store.Status, failure *record.Failure) bool {
	if r.compensations.recordedEnd != nil {
		return r.dropUnrecordedCompensations()
	}
	if len(r.compensations.notExecuted) == 0 && (status == store.Cancelled || !r.hasOpenChildren()) {
		return true
	}
	made := record.Ending{Status: status.String()}
	for _, u := range r.compensations.notExecuted {
		name := naming.Display(u.name)
		made.Compensations = append(made.Compensations, name)
		if len(u.compensatedSteps) > 0 {
			if made.Undoes == nil {
				made.Undoes = make(map[string][]string)
			}
			made.Undoes[name] = u.compensatedSteps
		}
	}
	t := &stepTask{
		r: r, scope: &Scope{r: r, ctx: r.ownedCtx, stepsCtx: r.ownedCtx, compensating: true}, spec: &CallSpec{Kind: store.KindRunEnd},
		name: store.EndRecordName, attempt: 1, firstBegan: r.e.clock.Now(),
	}
	w := t.newStepWrite(store.StepFailed, made.Encode(), failure)
	if _, _, err := t.commitRow(w); err != nil {
		return false
	}
	if w.Outcome == store.AlreadyRecorded { // another execution has written the record: the next execution replays it
		r.loseOwnership()
		return false
	}
	return true
}

// loadRecordedEnd reads from the history how the run ends. It is called once the history is complete. The run first
// repeats its recorded calls as before, so its contexts end only at the first call that is not in history.
func (r *run) loadRecordedEnd() {
	row := r.history[store.EndRecordName]
	if row == nil || row.Kind != store.KindRunEnd {
		return
	}
	d := record.DecodeEnding(row.Output)
	failure := record.DecodeFailure(row.Error)
	status, cause := store.Failed, fmt.Errorf("%w: the run has failed before, and is only undone now (%s)", ErrCancelled, failure.Message)
	switch d.Status {
	case store.Expired.String():
		status, cause = store.Expired, ErrTimeout
	case store.Cancelled.String():
		status, cause = store.Cancelled, ErrCancelled
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compensations.recordedEnd = &d
	if r.forcedEnd == nil || r.forcedEnd.status != store.Cancelled {
		r.forcedEnd = &forcedEnd{cause: cause, status: status, failure: failure, recorded: true}
	}
}

// dropUnrecordedCompensations keeps the registered compensations that are recorded, in the recorded order, and drops all
// others. If the code does not register a recorded compensation that has no outcome yet, the run is held,
// because the effect that this compensation undoes would otherwise remain.
func (r *run) dropUnrecordedCompensations() bool {
	if len(r.compensations.recordedEnd.Compensations) == 0 {
		return true
	}
	registered := make(map[string]compensation, len(r.compensations.notExecuted))
	for _, u := range r.compensations.notExecuted {
		registered[u.name] = u
	}
	var kept []compensation
	var missing []string
	for _, shown := range r.compensations.recordedEnd.Compensations {
		name := naming.ParseDisplay(shown)
		u, ok := registered[name]
		switch row := r.history[name]; {
		case ok:
			kept = append(kept, u)
		case row == nil || !row.Status.IsTerminal():
			missing = append(missing, shown)
		case row.Status == store.StepFailed:
			r.compensations.noteFailed(name, record.DecodeFailure(row.Error))
		}
	}
	if len(missing) > 0 {
		err := fmt.Errorf("%w: the code does not register the compensations %q: bring back the code that does", ErrDiverged, missing)
		if r.suspendForDrift(naming.ParseDisplay(missing[0]), err) {
			return false
		}
		r.suspend(suspensionSpec{cause: ErrHeld, status: store.Pending, heldReason: holdReason("undo the failed run", "", err), compensationMissing: true})
		return false
	}
	r.mu.Lock()
	r.compensations.notExecuted, r.compensations.recordedEnd.Compensations = kept, nil
	r.mu.Unlock()
	return true
}
