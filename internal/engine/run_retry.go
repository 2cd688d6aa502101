package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// If a workflow has the option RetryRun, a run that fails begins its next generation by itself, before any compensation is executed.
// The effect is that of Engine.Retry, but the run never ends in between: one transaction moves the failed generation to a superseded
// generation, and lets the run wait until the next generation is due. So no process has to keep the wait in memory, and a parent that
// waits for the run sees only the last end. The run has no owner while it waits. It need not be fenced, because its own worker makes
// the transaction after all calls of the run have ended.

// notRetried are the codes of failures after which a run does not retry itself: the effect of an at-most-once step may have taken place,
// a run whose process dies again and again would kill further processes, and code that does not fit the history would diverge again.
var notRetried = []string{record.CodeOutcomeUnknown, record.CodeCrashLoop, record.CodeDiverged}

// shouldRetryRun reports whether the run begins its next generation after this failure.
func (r *run) shouldRetryRun(failure *record.Failure) bool {
	if _, more := r.delayBeforeRetry(); !more || failure.Permanent || r.compensations.recordedEnd != nil || r.nextGeneration.isRefused {
		return false
	}
	return !slices.ContainsFunc(failure.Codes, func(code string) bool { return slices.Contains(notRetried, code) })
}

// suspendIfRetryNotDue reports whether a run that retries itself was claimed before its retry is due: a signal arrived, a child ended, or the run
// was resumed. Such a run is suspended, so that it continues to wait. A run that must end does not wait.
func (r *run) suspendIfRetryNotDue() bool {
	due := r.keyRenewals.retryDueAt
	if due.IsZero() || r.isForcedToEnd() || !r.e.clock.Now().Before(due) {
		return false
	}
	var broughtForward bool
	err := r.e.retryUntilPatienceEnds(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() (err error) {
		broughtForward, err = r.wasAncestorRepairedSinceRetry(r.writeCtx)
		return err
	})
	switch {
	case err != nil:
		r.suspendAfterFailedWrite("read whether the retry of the run is due", "", err)
		return true
	case broughtForward:
		return false
	}
	r.suspend(suspensionSpec{cause: ErrParked, status: store.Waiting, wakeAt: due})
	return true
}

// wasAncestorRepairedSinceRetry reports whether the run is a child that is retried with an ancestor, and a repair has made that ancestor
// begin another generation since. The ancestor then does not wait any more, so the run does not wait either. All runs of one retry have
// renewal records with the same time, and only the record of the run with the policy counts retries.
func (r *run) wasAncestorRepairedSinceRetry(ctx context.Context) (bool, error) {
	retries, parent := r.keyRenewals.Retries, r.row.Parent
	for retries == 0 && parent.Valid {
		row, err := r.e.getRun(ctx, parent.UUID.String(), store.NoPayloads)
		if errors.Is(err, ErrNotFound) { // the parent is a superseded generation: the run is cancelled, or continues alone
			return false, nil
		}
		if err != nil {
			return false, err
		}
		first, _, err := r.e.store.HistoryFrom(ctx, row.UUID, record.RenewalName, 1)
		if err != nil {
			return false, err
		}
		if len(first) == 0 || first[0].Kind != store.KindKeyRenewal || !first[0].StartedAt.Equal(r.keyRenewals.beganAt) {
			return true, nil
		}
		renewal, err := record.DecodeRenewal(first[0].Output)
		if err != nil {
			return false, undecodableKeyRenewalError(&first[0], err)
		}
		retries, parent = renewal.Retries, row.Parent
	}
	return false, nil
}

// setNewGenerationDue sets the time before which the new generation is not executed. The time is in the column NextAt of the renewal record, so
// a resume with ShiftTimers also moves it.
func setNewGenerationDue(made *store.RunRepair, due time.Time) {
	for i := range made.NewSteps {
		if made.NewSteps[i].Kind == store.KindKeyRenewal {
			made.NewSteps[i].NextAt = due
		}
	}
}

// delayBeforeRetry returns how long the run waits before its next generation, or false if there is no further generation.
func (r *run) delayBeforeRetry() (time.Duration, bool) {
	def := r.workflowDefinition()
	if def == nil || def.RunRetryDelay == nil {
		return 0, false
	}
	return def.RunRetryDelay(r.keyRenewals.Retries + 1)
}

// retryAsNextGeneration makes the next generation. It reports whether this ownership has ended. If it has not, the caller decides the end of
// the run anew, with the control requests that have arrived meanwhile.
func (r *run) retryAsNextGeneration(failure *record.Failure) (over bool) {
	if r.holdIfOlderWorkersLive("retry the run") || !r.awaitStrayCalls() || !r.endWriteBegan.CompareAndSwap(false, true) {
		return true
	}
	var p *repairPlanner
	var unknown error // not nil: it is not known from where a child would continue
	err := r.e.retryUntilPatienceEnds(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() (err error) {
		p, err = r.planRunRetry(r.writeCtx, failure)
		switch {
		case errors.Is(err, repair.ErrFromRequired):
			unknown, err = err, nil
		case err == nil:
			err = r.e.store.ApplyRepair(r.writeCtx, &p.storeRequest)
		}
		return err
	})
	switch {
	case unknown != nil:
		r.endWriteBegan.Store(false)
		r.nextGeneration.isRefused = true
		r.logger().Warn("a run fails and is not retried: it is not known from where its child would continue", telemetry.KeyError, unknown)
		return false
	case err != nil:
		r.endWriteBegan.Store(false)
		r.suspendAfterFailedWrite("retry the run", "", err)
		return true
	case p.storeRequest.Outcome != store.Written:
		r.endWriteBegan.Store(false)
		return r.rereadAndApplyChanges()
	}
	r.recordExecutionEnd(telemetry.OutcomeRetried, failure.ErrorType(), 0)
	r.logger().Warn("a run failed, and is retried", telemetry.KeyError, failure.Message, telemetry.KeyErrorType, failure.ErrorType(),
		telemetry.KeyGeneration, p.runs[0].NewGeneration, telemetry.KeyNextAt, p.storeRequest.Runs[0].WakeAt)
	r.w.wakeLoops()
	r.w.notifyOwnedRunChange() // the worker may execute children that were cancelled
	return true
}

// planRunRetry plans the next generation of the run, and of the failed children that its failure names.
func (r *run) planRunRetry(ctx context.Context, failure *record.Failure) (*repairPlanner, error) {
	now := r.e.clock.Now()
	wait, _ := r.delayBeforeRetry()
	p := &repairPlanner{e: r.e, ref: r.row.NameOrUUID(), isByPolicy: true, request: RepairRequest{Verb: RetryVerb, Reason: r.retryReason(failure)}}
	p.storeRequest = store.RepairRequest{RequestID: uuid.New(), Verb: RetryVerb, Reason: p.request.Reason, Now: now}
	failed := r.row
	failed.Status, failed.Control, failed.Error = store.Failed, 0, failure.Encode()
	s, err := p.readRunToRepair(ctx, &failed)
	if err != nil {
		return nil, err
	}
	due := now.Add(wait)
	q := &repair.Request{Now: now, Due: due, Nonce: store.NewNonce(), Retries: r.keyRenewals.Retries + 1}
	made, err := planRetryByPolicy(s, q)
	if err != nil {
		return nil, err
	}
	wake := due
	if end := r.deadline.expiryTime(); !end.IsZero() && end.Before(wake) {
		wake = end // the run expires before the retry is due
	}
	own := &made.Repair
	own.StateBefore = store.RunState{Found: true, Status: store.Running, Epoch: r.row.Epoch}
	own.Status, own.WakeAt, own.Deadline = store.Waiting, wake, time.Time{}
	p.storeRequest.Runs = []store.RunRepair{*own}
	p.runs = []PlannedRunRepair{{Run: &failed, NewGeneration: s.Generation + 1, Detail: made.Detail, ChildrenToCancel: made.ChildrenToCancel}}
	p.childrenToCancel = made.ChildrenToCancel
	for _, child := range made.ChildrenToRetry {
		if err := r.addFailedChildToRetry(ctx, p, child, now, due); err != nil {
			return nil, err
		}
	}
	for i := range p.storeRequest.Runs {
		made := &p.storeRequest.Runs[i]
		setNewGenerationDue(made, due)
		if i > 0 {
			made.WakeAt = wake
		}
	}
	p.cancelSupersededChildrenAndResume(p.childrenToResume)
	return p, nil
}

// addFailedChildToRetry adds the failed child of a call to the retry of the run.
func (r *run) addFailedChildToRetry(ctx context.Context, p *repairPlanner, id uuid.UUID, now, due time.Time) error {
	child, err := r.e.getRun(ctx, id.String(), store.WithOutputAndError)
	if err != nil {
		return err
	}
	done, err := p.fenceAndAddRun(ctx, child, &repair.Request{Now: now, Due: due})
	if err == nil && !done { // another repair has changed the child meanwhile
		err = fmt.Errorf("%w: the child %s changed", store.ErrLocked, id)
	}
	return err
}

// planRetryByPolicy plans the next generation of a run that RetryRun retries: the run of the policy, or a descendant whose failure made it fail.
// A policy cannot name a step to continue from, as From does. So a run whose function failed by itself continues after its last recorded call,
// unless it has executed compensations, because it is not known which calls they have undone.
func planRetryByPolicy(s *repair.RunToRepair, q *repair.Request) (*repair.Result, error) {
	made, err := repair.PlanRetry(s, q)
	compensated := slices.ContainsFunc(s.History, func(row store.Step) bool { return row.Kind == store.KindCompensation })
	if errors.Is(err, repair.ErrFromRequired) && !compensated {
		fromEnd := *q
		fromEnd.FromEnd = true
		return repair.PlanRetry(s, &fromEnd)
	}
	return made, err
}

// retryReason returns why the next generation was made. It contains no text of the error, which may be a payload.
func (r *run) retryReason(failure *record.Failure) string {
	step, errorType := r.failureGroupKey(failure)
	what := "the function failed"
	if step != "" {
		what = fmt.Sprintf("step %.100q failed", step)
	}
	return fmt.Sprintf("%s (%s), failure %d in a row", what, errorType, r.keyRenewals.Retries+1)
}
