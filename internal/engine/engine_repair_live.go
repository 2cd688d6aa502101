package engine

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A live run is paused for its repair, so that running steps are recorded before its history is read. The run is resumed in the
// transaction of the repair, or when the repair fails. The pause has a lease, as the ownership of a run has: if the process dies in
// between, a worker resumes the run when the lease ends; see worker_expired_repairs.go.

const (
	pausingRunPollInterval = 20 * time.Millisecond // how often a repair reads the run that it has paused, until the run has stopped
	repairUndoTimeout      = 10 * time.Second      // the timeout of the calls after a failed repair
)

// pauseAndAwaitStop pauses a live run, and waits until the run has stopped. If the repair interrupts steps, it does not pause the run,
// except for a run that waits for its retry: the resume of such a run wakes the descendants that wait for the same retry. It sets *row to
// the row of the stopped run. It reports false if the run has changed in another way.
func (p *repairPlanner) pauseAndAwaitStop(ctx context.Context, row *store.Run, q *repair.Request) (done bool, err error) {
	if p.request.DryRun {
		return true, nil
	}
	// A repair that is refused neither pauses nor fences the run.
	s, _, err := p.planGeneration(ctx, row, q)
	switch {
	case err != nil && row.Status == store.Paused && p.hasRunChanged(ctx, row): // perhaps the error is only due to another repair that was faster
		return false, nil
	case err != nil || row.Status == store.Paused || p.request.InterruptSteps && !waitsForRetry(s, q.Now):
		return err == nil, err
	}
	if row.Control&store.PausedItself == 0 {
		if err := p.extendPause(ctx, row.UUID); err != nil {
			return false, p.stillRunningError(ctx, row, err)
		}
		o := &store.ControlRequest{Verb: store.VerbPause, Runs: uuidList(row.UUID), Reason: p.pauseReason(), Actor: p.request.Actor, ForRepair: true}
		if err := p.e.controlRuns(ctx, userCaller, o); err != nil {
			return false, p.stillRunningError(ctx, row, err)
		}
	}
	for extended := time.Now(); ; {
		if time.Since(extended) > p.e.cfg.Lease/3 {
			if err := p.extendPause(ctx, row.UUID); err != nil {
				return false, p.stillRunningError(ctx, row, err)
			}
			extended = time.Now()
		}
		now, err := p.e.getRun(ctx, row.UUID.String(), store.WithOutputAndError)
		switch {
		case err != nil:
			return false, p.stillRunningError(ctx, row, err)
		case now.Status == store.Paused:
			*row = *now
			return true, nil
		case now.Status.IsTerminal():
			p.resumePausedRun(ctx) // resumes the descendants that were paused with the run
			return false, nil
		case now.Control&store.PausedItself == 0 || now.Control&store.CancelRequested != 0:
			return false, nil
		case p.request.InterruptSteps: // a worker has claimed the run since
			*row = *now
			return true, nil
		}
		if !wakeup.SleepCtx(ctx, pausingRunPollInterval) {
			return false, p.stillRunningError(ctx, row, context.Cause(ctx))
		}
	}
}

// checkNotOwnRun returns a *StateError if a step repairs its own run. The repair would wait for the step, or interrupt it so that the step
// repairs the run once more.
func (p *repairPlanner) checkNotOwnRun(ctx context.Context, row *store.Run) error {
	t, isInStep := ctx.Value(attemptContextKey{}).(*stepTask)
	if !isInStep || t.r.row.UUID != row.UUID || p.request.DryRun {
		return nil
	}
	return p.newStateError(row, fmt.Sprintf("its own step %q makes the repair, which would wait for this step: repair the run from outside of it", naming.Display(t.name)))
}

// waitsForRetry reports whether the option RetryRun has made the present generation of the run, and that generation is not due yet.
func waitsForRetry(s *repair.RunToRepair, now time.Time) bool {
	return slices.ContainsFunc(s.History, func(row store.Step) bool { return row.Kind == store.KindKeyRenewal && row.NextAt.After(now) })
}

// extendPause records that the pause of the run for this repair lasts for another lease. After the first call of extendPause, the repair
// resumes the run if it fails.
func (p *repairPlanner) extendPause(ctx context.Context, run uuid.UUID) error {
	p.pausedRun = run
	return p.e.commitInSeparateTx(ctx, userCaller, func() error { return p.e.store.ExtendRepairPause(ctx, run, p.e.clock.Now().Add(p.e.cfg.Lease)) })
}

// pauseReason returns the reason of the pause of a live run.
func (p *repairPlanner) pauseReason() string {
	reason := fmt.Sprintf("for a repair (%s)", p.request.Verb)
	if p.request.Reason != "" {
		reason += ": " + p.request.Reason
	}
	return record.StorableText(reason)
}

// stillRunningError returns a *StateError if the caller's context ended before the run stopped. It returns err if the context has not
// ended, or if the history cannot be read.
func (p *repairPlanner) stillRunningError(ctx context.Context, row *store.Run, err error) error {
	if ctx.Err() == nil {
		return p.wrapError(row, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairUndoTimeout)
	defer cancel()
	history, unread := p.e.store.History(ctx, row.UUID)
	if unread != nil {
		return p.wrapError(row, err)
	}
	detail := "has not stopped yet"
	for i := range history {
		if s := &history[i]; s.Status == store.StepStarted && (s.Kind == store.KindStep || s.Kind == store.KindTx) {
			detail = fmt.Sprintf("its step %q still runs", naming.Display(s.Name))
		}
	}
	return p.newStateError(row, detail+": wait longer, or interrupt it by InterruptSteps")
}

// noteChildrenToResume notes the detached children that were paused together with the run and continue without it, because no resume
// of the run would reach them.
func (p *repairPlanner) noteChildrenToResume(s *repair.RunToRepair, made *repair.Result) {
	for _, c := range s.Children {
		if !c.Status.IsTerminal() && c.Control&store.PausedMask == store.PausedByAncestor && slices.Contains(made.Repair.DetachedChildren, c.UUID) && !slices.Contains(made.ChildrenToCancel, c.UUID) {
			p.childrenToResume = append(p.childrenToResume, c.UUID)
		}
	}
}

// guardEndedChildren adds guards for the ended children of a live run whose calls are dropped. Somebody may retry such a child while
// the run is paused, and the child must then be cancelled or resumed, so the repair must be planned anew. A live child needs no guard,
// because the cancel and resume requests of the repair apply to it in whatever state it is.
func (p *repairPlanner) guardEndedChildren(s *repair.RunToRepair, made *repair.Result) {
	for _, c := range s.Children {
		if !s.Run.Status.IsTerminal() && c.Status.IsTerminal() && slices.Contains(made.Repair.DetachedChildren, c.UUID) {
			p.storeRequest.Guards = append(p.storeRequest.Guards, store.ExpectedRunState{Run: c.UUID, StateBefore: runStateOf(c)})
		}
	}
}

// resumePausedRun resumes the run after a failed repair, if the run is paused for a repair.
func (p *repairPlanner) resumePausedRun(ctx context.Context) {
	if p.pausedRun == uuid.Nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairUndoTimeout)
	defer cancel()
	o := &store.ControlRequest{Verb: store.VerbResume, Runs: uuidList(p.pausedRun), ForRepair: true}
	if err := p.e.controlRuns(ctx, userCaller, o); err != nil {
		p.e.telemetry.Log.Warn("a run stays paused after a repair that was not made, until a worker resumes it", telemetry.KeyRun, p.pausedRun, telemetry.KeyVerb, p.request.Verb, telemetry.KeyError, err)
	}
	p.pausedRun = uuid.Nil
}
