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
)

// A live run is paused for its repair, so that running steps are recorded before its history is read. It is resumed in
// the transaction of the repair, or when the repair is given up. If the process dies in between, the run stays paused,
// and its reason names the repair.

const (
	standstillPoll    = 20 * time.Millisecond // how often a run is read that is being paused
	repairUndoTimeout = 10 * time.Second      // for the calls that follow a repair which is given up
)

// stop pauses a live run, and waits until it stands still, unless the repair is to fence it at once. It sets *row to the
// run as it is then. It reports false if the run has changed otherwise.
func (p *repairPlanner) stop(ctx context.Context, row *store.Run, q *repair.Request) (done bool, err error) {
	if row.Control&store.PausedItself == 0 {
		p.stopped = uuid.Nil // or somebody has resumed it
	}
	if p.request.DryRun || row.Status == store.Paused {
		return true, nil
	}
	if _, _, err := p.plan(ctx, row, q); err != nil || p.request.InterruptSteps {
		return err == nil, err // what cannot be meant does not pause the run
	}
	if row.Control&store.PausedItself == 0 {
		p.stopped = row.UUID
		o := &store.ControlRequest{Verb: store.VerbPause, Runs: uuidStrings(row.UUID), Reason: p.pauseReason(), Actor: p.request.Actor}
		if err := p.e.control(ctx, userCaller, o); err != nil {
			return false, p.stillRunningError(ctx, row, err)
		}
		if o.Results[0].Control&store.PausedItself != 0 { // somebody else was first
			p.stopped = uuid.Nil
		}
	}
	for {
		now, err := p.e.getRun(ctx, row.UUID.String(), store.WithOutcome)
		switch {
		case err != nil:
			return false, p.stillRunningError(ctx, row, err)
		case now.Status == store.Paused:
			*row = *now
			return true, nil
		case now.Status.IsTerminal():
			p.resume(ctx) // descendants that were paused with it
			return false, nil
		case now.Control&store.PausedItself == 0 || now.Control&store.CancelRequested != 0:
			return false, nil
		}
		if !sleepCtx(ctx, standstillPoll) {
			return false, p.stillRunningError(ctx, row, context.Cause(ctx))
		}
	}
}

// pauseReason returns the reason of the pause of a live run.
func (p *repairPlanner) pauseReason() string {
	reason := fmt.Sprintf("for a repair (%s)", p.request.Verb)
	if p.request.Reason != "" {
		reason += ": " + p.request.Reason
	}
	return record.Tidy(reason)
}

// stillRunningError returns the *StateError of a run that did not stop until the caller's context ended, or err if that has not
// ended or the database is away.
func (p *repairPlanner) stillRunningError(ctx context.Context, row *store.Run, err error) error {
	if ctx.Err() == nil {
		return p.wrap(row, err)
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairUndoTimeout)
	defer cancel()
	history, unread := p.e.store.History(ctx, row.UUID)
	if unread != nil {
		return p.wrap(row, err)
	}
	detail := "has not stopped yet"
	for i := range history {
		if s := &history[i]; s.Status == store.StepStarted && (s.Kind == store.KindStep || s.Kind == store.KindTx) {
			detail = fmt.Sprintf("its step %q still runs", naming.Display(s.Name))
		}
	}
	return p.refuse(row, detail+": wait longer, or interrupt it by InterruptSteps")
}

// fenced notes that the run was taken away from its owner, and paused unless it had ended or is held.
func (p *repairPlanner) fenced(row *store.Run, f *store.Fence) {
	if row.Status.IsTerminal() {
		return
	}
	if row.Control&(store.PausedItself|store.HeldForDrift) == 0 {
		p.stopped = row.UUID
	}
	row.Status, row.Epoch, row.Control = store.Paused, f.After(), f.ControlAfter()
}

// addPausedChildren notes the children that go on without the run. They were paused with it, and no resume of the run
// would reach them.
func (p *repairPlanner) addPausedChildren(s *repair.Subject, made *repair.Result) {
	for _, c := range s.Children {
		if !c.Status.IsTerminal() && c.Control&store.PausedMask == store.PausedByAncestor && slices.Contains(made.Repair.Detach, c.UUID) && !slices.Contains(made.Cancel, c.UUID) {
			p.resumed = append(p.resumed, c.UUID)
		}
	}
}

// resume resumes the run after a repair that was given up, if the repair has paused it.
func (p *repairPlanner) resume(ctx context.Context) {
	if p.stopped == uuid.Nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), repairUndoTimeout)
	defer cancel()
	o := &store.ControlRequest{Verb: store.VerbResume, Runs: uuidStrings(p.stopped)}
	if err := p.e.control(ctx, userCaller, o); err != nil {
		p.e.telemetry.Log.Error("a run stays paused after a repair that was not made: resume it", telemetry.KeyRun, p.stopped, telemetry.KeyVerb, p.request.Verb, telemetry.KeyError, err)
	}
	p.stopped = uuid.Nil
}
