package engine

import (
	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// forcedEnd describes why a run must end although its function could continue: the run was cancelled, or its
// deadline has passed. Its contexts end, and calls that are not in history return the cause. When the
// function has returned, with any result, the compensations are executed and the run ends with the status.
// If a run that must end is claimed, it first repeats its recorded calls, so that it registers its compensations again. Its contexts
// end only after these calls, because code that checks its context would otherwise return before it has registered all compensations.
// If the code does not make the recorded calls, its compensations would undo too little, so the run is held.
type forcedEnd struct {
	cause   error
	status  store.Status
	failure *record.Failure // nil: the run's row holds the reason

	recorded bool // an earlier execution recorded the end; see run_end_decision.go
	inReplay bool // the run had to end before it had repeated its recorded calls; see run_end_contexts.go
}

func newCancelledEnd() forcedEnd { return forcedEnd{cause: ErrCancelled, status: store.Cancelled} }

// forceEnd marks the run as one that must end, and ends its contexts unless the run still repeats its recorded calls. If the run already
// must end because of a timeout, a cancel replaces the timeout.
func (r *run) forceEnd(d forcedEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forcedEnd == nil || d.status == store.Cancelled && r.forcedEnd.status != store.Cancelled {
		d.inReplay = r.forcedEnd != nil && r.forcedEnd.inReplay
		r.forcedEnd = &d
		r.endContextsUnlessRepeatingLocked()
	}
}

// isRepeatingBeforeEndLocked reports whether the run has no recorded end and was marked as one that must end before it had repeated its
// recorded calls. r.mu is held.
func (r *run) isRepeatingBeforeEndLocked() bool {
	return r.forcedEnd != nil && !r.forcedEnd.recorded && r.forcedEnd.inReplay
}

func (r *run) isRepeatingBeforeEnd() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.isRepeatingBeforeEndLocked()
}

// checkMayBeginCalls returns why the run can begin no new call, or nil if it can.
func (r *run) checkMayBeginCalls() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.suspension != nil:
		return ErrSuspended
	case r.forcedEnd != nil:
		return r.forcedEnd.cause
	}
	return nil
}

// isForcedToEnd reports whether the run must end.
func (r *run) isForcedToEnd() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forcedEnd != nil
}

// stateOfForcedEnd reports whether the run, if it parked, would be claimed again at once, because it must end and how it ends is not recorded yet;
// and whether it executes the compensations of a cancel.
func (r *run) stateOfForcedEnd() (isDue, cancelBegun bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.forcedEnd == nil {
		return false, false
	}
	recorded := r.compensations.isEndRecorded
	return !recorded, recorded && r.forcedEnd.status == store.Cancelled
}

// isEndRecorded reports whether it is recorded how the run ends. Its deadline then changes nothing any more.
func (r *run) isEndRecorded() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.compensations.isEndRecorded
}

// isExpiring reports whether the run must end because of its deadline, and not because of a cancel.
func (r *run) isExpiring() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.forcedEnd != nil && r.forcedEnd.status == store.Expired
}

// applyControl carries out a cancel or a pause that was requested for the run.
func (r *run) applyControl(bits store.ControlBits) {
	switch {
	case bits&store.CancelRequested != 0:
		r.forceEnd(newCancelledEnd())
	case bits&store.PausedMask != 0:
		r.suspend(suspensionSpec{cause: ErrPaused, status: store.Pending}) // the database changes Pending to Paused, unless the run was resumed
	}
}

// verbsOfEnds has the verb for each final status, for errors.
var verbsOfEnds = map[store.Status]string{store.Completed: "complete", store.Failed: "fail", store.Cancelled: "be cancelled", store.Expired: "expire"}

// endAfterReturn ends the run after its function has returned. If the run did not complete, endAfterReturn executes the
// compensations. It then cancels the children and writes the result. It returns early if the run is suspended. If the function
// returned the input of a next generation, and the run is not forced to end, endAfterReturn makes that generation and does not end
// the run.
func (r *run) endAfterReturn(output []byte, failure *record.Failure) {
	for {
		if next := r.continueAsNewInput(); next != nil && failure == nil && !r.isForcedToEnd() {
			if failure = r.checkMissingCallsAtEnd("continue as new", nil); r.isSuspended() {
				return
			} else if failure != nil {
				continue
			}
			over, refused := r.continueAsNew(next)
			if over {
				return
			}
			failure = refused
			continue
		}
		status, failure := r.finalStatus(failure)
		if status == store.Completed || r.compensations.recordedEnd == nil && (status == store.Failed || r.isRepeatingBeforeEnd()) {
			if diverged := r.checkMissingCallsAtEnd(verbsOfEnds[status], failure); diverged != nil {
				status, failure = store.Failed, diverged
			}
			if r.isSuspended() {
				return
			}
		}
		if status == store.Failed && r.shouldRetryRun(failure) {
			if r.retryAsNextGeneration(failure) {
				return
			}
			continue
		}
		if status != store.Completed {
			if !r.recordEndDecision(status, failure) || !r.executeCompensations() {
				return
			}
			failure = r.addUnreachedKeptCallsTo(r.compensations.addFailuresTo(failure))
		}
		if !r.cancelChildren() || !r.endWriteBegan.CompareAndSwap(false, true) {
			return
		}
		blockingRequest := r.writeResult(status, output, failure)
		if blockingRequest == 0 {
			return
		}
		r.endWriteBegan.Store(false)
		r.applyControl(blockingRequest)
	}
}

// finalStatus returns the final status and failure of the run, given the failure that its function returned.
func (r *run) finalStatus(failure *record.Failure) (store.Status, *record.Failure) {
	r.mu.Lock()
	d := r.forcedEnd
	r.mu.Unlock()
	switch {
	case d == nil && failure == nil:
		return store.Completed, nil
	case d == nil:
		return store.Failed, failure
	case d.failure != nil:
		return d.status, d.failure
	default:
		return d.status, r.readCancellationFailure()
	}
}

// readCancellationFailure returns the failure of the cancelled run, with the reason and the actor from its row.
func (r *run) readCancellationFailure() *record.Failure {
	rows, err := r.e.store.GetRunsSelectingPayloads(r.writeCtx, []store.RunRef{{UUIDOrName: r.row.UUID.String()}}, store.NoPayloads)
	if err != nil || rows[0] == nil {
		r.logger().Warn("why a run was cancelled could not be read; the columns of its row say it", telemetry.KeyError, err)
		return record.Cancelled("", "")
	}
	return record.Cancelled(rows[0].CancelReason, rows[0].CancelledBy)
}

// cancelChildren cancels the children that may still run, except for detached children. It is called before
// the end of the run is written: if the process dies in between, the next execution calls it again, so no
// child is forgotten. It reports false if the cancel could not be written.
func (r *run) cancelChildren() bool {
	if !r.hasOpenChildren() {
		return true
	}
	const reason = repair.ParentEndedReason
	o := &store.ControlRequest{
		Verb: store.VerbCancel, Scope: store.CancelDescendants, Runs: uuidList(r.row.UUID), Now: r.e.clock.Now(),
		Fence: r.execution(), Reason: reason, Error: record.Cancelled(reason, "").Encode(),
	}
	if err := r.e.retryUntilPatienceEnds(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() error { return r.e.store.ControlRuns(r.writeCtx, o) }); err != nil {
		r.suspendAfterFailedWrite("cancel the children of the run, which ends", "", err)
		return false
	}
	if o.Fenced {
		r.loseOwnership()
		return false
	}
	r.e.logCancelledRuns(o)
	r.w.notifyOwnedRunChange()
	return true
}

// hasOpenChildren reports whether the run has attached children that may still run.
func (r *run) hasOpenChildren() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.children) > 0
}

// addChild notes a child that may still run. removeChild removes it.
func (r *run) addChild(name string, id uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.children == nil {
		r.children = make(map[string]uuid.UUID)
	}
	r.children[name] = id
}

func (r *run) removeChild(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.children, name)
}
