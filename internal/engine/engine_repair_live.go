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

// A live run is paused for its repair, so that running steps are recorded before its history is read. It is resumed in
// the transaction of the repair, or when the repair is given up. The pause is leased like a run: if the process dies in
// between, a worker resumes the run when the lease ends; see worker_expired_repairs.go.

const (
	pausingRunPollInterval = 20 * time.Millisecond // how often a run is read that is being paused
	repairUndoTimeout      = 10 * time.Second      // for the calls that follow a repair which is given up
)

// pauseAndAwaitStop pauses a live run, and waits until it stands still, unless the repair is to fence it at once. A run that waits for its
// retry is paused also then, because its resume wakes the descendants that wait for the same retry. It sets *row to the run as it is then.
// It reports false if the run has changed otherwise.
func (p *repairPlanner) pauseAndAwaitStop(ctx context.Context, row *store.Run, q *repair.Request) (done bool, err error) {
	if p.request.DryRun {
		return true, nil
	}
	// A repair that is refused neither pauses nor fences the run.
	s, _, err := p.planGeneration(ctx, row, q)
	switch {
	case err != nil && row.Status == store.Paused && p.hasRunChanged(ctx, row): // perhaps only because another repair was first
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
			p.resumePausedRun(ctx) // descendants that were paused with it
			return false, nil
		case now.Control&store.PausedItself == 0 || now.Control&store.CancelRequested != 0:
			return false, nil
		case p.request.InterruptSteps: // a worker has claimed it since
			*row = *now
			return true, nil
		}
		if !wakeup.SleepCtx(ctx, pausingRunPollInterval) {
			return false, p.stillRunningError(ctx, row, context.Cause(ctx))
		}
	}
}

// checkNotOwnRun returns a *StateError if a step repairs its own run. The repair would wait for the step, or interrupt it, and then the step would
// repair the run once more.
func (p *repairPlanner) checkNotOwnRun(ctx context.Context, row *store.Run) error {
	t, isInStep := ctx.Value(attemptContextKey{}).(*stepTask)
	if !isInStep || t.r.row.UUID != row.UUID || p.request.DryRun {
		return nil
	}
	return p.newStateError(row, fmt.Sprintf("its own step %q makes the repair, which would wait for this step: repair the run from outside of it", naming.Display(t.name)))
}

// waitsForRetry reports whether RetryRun has planned the present generation of the run, and it is not due.
func waitsForRetry(s *repair.RunToRepair, now time.Time) bool {
	return slices.ContainsFunc(s.History, func(row store.Step) bool { return row.Kind == store.KindKeyRenewal && row.NextAt.After(now) })
}

// extendPause records that the pause of the run for this repair lasts for another lease. From its first call on, the repair resumes the run
// if it is given up.
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

// stillRunningError returns the *StateError of a run that did not stop until the caller's context ended, or err if that has not
// ended or the database is away.
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

// noteChildrenToResume notes the children that go on without the run. They were paused with it, and no resume of the run
// would reach them.
func (p *repairPlanner) noteChildrenToResume(s *repair.RunToRepair, made *repair.Result) {
	for _, c := range s.Children {
		if !c.Status.IsTerminal() && c.Control&store.PausedMask == store.PausedByAncestor && slices.Contains(made.Repair.DetachedChildren, c.UUID) && !slices.Contains(made.ChildrenToCancel, c.UUID) {
			p.childrenToResume = append(p.childrenToResume, c.UUID)
		}
	}
}

// guardEndedChildren guards the ended children of a live run whose calls are dropped: somebody may retry such a child while the run is
// paused, and then it has to be cancelled or resumed. A child that is live does not need that: the requests concern it as it is then.
func (p *repairPlanner) guardEndedChildren(s *repair.RunToRepair, made *repair.Result) {
	for _, c := range s.Children {
		if !s.Run.Status.IsTerminal() && c.Status.IsTerminal() && slices.Contains(made.Repair.DetachedChildren, c.UUID) {
			p.storeRequest.Guards = append(p.storeRequest.Guards, store.ExpectedRunState{Run: c.UUID, StateBefore: runStateOf(c)})
		}
	}
}

// resumePausedRun resumes the run after a repair that was given up, if it is paused for a repair.
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
