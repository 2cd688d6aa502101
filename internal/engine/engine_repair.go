package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/repair"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// RepairRequest is a request to make the next generation of a run.
type RepairRequest struct {
	Verb              string            // RetryVerb, OverrideVerb, SkipVerb, RerunVerb or ForkVerb
	FromStep          string            // of a retry or fork, as users see it; empty: the step that the run's failure names
	KeepAllOtherCalls bool              // the retry keeps all other calls
	Step              string            // of an override, skip or rerun, as users see it
	StepValue         []byte            // of the step
	ForkStepValues    map[string][]byte // of a fork, by names as users see them
	ForkRunID         string            // the ID of the run that a fork starts
	InterruptSteps    bool              // a live run is not paused first, but taken away from its worker at once
	DryRun            bool              // nothing is changed
	Actor             string
	Reason            string
}

// The verbs of a RepairRequest.
const (
	RetryVerb    = "retry"
	OverrideVerb = "override"
	SkipVerb     = "skip"
	RerunVerb    = "rerun"
	ForkVerb     = "fork"
)

// PlannedRunRepair is the part of a repair that concerns one run.
type PlannedRunRepair struct {
	Run              *store.Run // as it was
	NewGeneration    int32      // the number of the new generation
	Detail           record.RepairDetail
	ChildrenToCancel []uuid.UUID // children of the superseded generation that are cancelled
}

const (
	maxRepairTries = 10 // how often a repair is planned anew because a run had changed meanwhile

	// maxRepairDelayDoublings is how often the pause between two tries doubles. A try takes up to about 0.3 s where the database does not show
	// which writes are in progress.
	maxRepairDelayDoublings = 5

	featureRepairs        = "repairs"
	droppedByRepairReason = "a repair has dropped the call that started it"
)

// Repair makes the next generation of a run. If the failure of a retried run names failed children, Repair makes the next
// generations of these children too. Repair returns the repaired runs, parents first. Repair returns a *StateError for a run whose
// state does not allow the repair, and an error of package repair for a request that does not fit the run's history.
func (e *Engine) Repair(ctx context.Context, ref string, q RepairRequest) ([]PlannedRunRepair, error) {
	if err := e.checkNoWorkersBelowSchema(ctx, featureRepairs, store.FirstSchemaWithRepairs); err != nil {
		return nil, err
	}
	p := &repairPlanner{e: e, ref: ref, request: q}
	p.storeRequest = store.RepairRequest{RequestID: uuid.New(), Verb: q.Verb, Actor: q.Actor, Reason: q.Reason}
	for try := 1; ; try++ {
		done, err := p.tryRepair(ctx)
		switch {
		case err == nil && done:
			if !q.DryRun {
				e.logRepairAndWakeWorkers(p)
			}
			return p.runs, nil
		case err == nil && try == maxRepairTries:
			err = fmt.Errorf("%s run %q: %w: the run or its children changed during each of %d tries: try again", q.Verb, ref, store.ErrLocked, try)
		case err == nil && !wakeup.SleepCtx(ctx, repairRetryDelay(try)):
			err = store.ContextError(ctx)
		}
		if err != nil {
			p.resumePausedRun(ctx)
			return nil, e.notFoundErrorIfDeleted(ctx, ref, err)
		}
	}
}

// repairRetryDelay returns the pause after a try. It is random, because several repairs of one run make each other plan anew. With
// random pauses, one of them completes.
func repairRetryDelay(try int) time.Duration {
	longest := firstWriteRetryDelay << min(try, maxRepairDelayDoublings)
	return longest/4 + rand.N(longest)
}

// repairPlanner plans one repair, and applies it.
type repairPlanner struct {
	e          *Engine
	ref        string
	request    RepairRequest
	isByPolicy bool      // RetryRun retries the run; see run_retry.go
	pausedRun  uuid.UUID // the live run, if the repair may have paused it; see engine_repair_live.go

	// Each try sets the following fields anew.
	storeRequest     store.RepairRequest
	runs             []PlannedRunRepair
	childrenToCancel []uuid.UUID
	childrenToResume []uuid.UUID
}

// tryRepair reads the run, plans the repair and applies it. It reports false if a run has changed meanwhile.
func (p *repairPlanner) tryRepair(ctx context.Context) (done bool, err error) {
	p.storeRequest.Runs, p.storeRequest.Guards, p.storeRequest.CancelRequest, p.storeRequest.ResumeRequest = nil, nil, nil, nil
	p.runs, p.childrenToCancel, p.childrenToResume = nil, nil, nil
	var row *store.Run
	err = p.e.readBeforeWrite(ctx, userCaller, func() (err error) {
		row, err = p.e.getRun(ctx, p.ref, store.WithOutputAndError)
		return err
	})
	if err != nil {
		return false, err
	}
	if err := cmp.Or(p.checkNotOwnRun(ctx, row), p.checkStateAllowsRepair(row)); err != nil {
		return false, err
	}
	if p.storeRequest.Now, err = p.e.NowBeforeWrite(ctx); err != nil {
		return false, err
	}
	q := repair.Request{
		From: naming.ParseDisplay(p.request.FromStep), FromEnd: p.request.KeepAllOtherCalls, InterruptsSteps: p.request.InterruptSteps, Now: p.storeRequest.Now,
	}
	switch {
	case !row.Status.IsTerminal():
		if done, err := p.pauseAndAwaitStop(ctx, row, &q); err != nil || !done {
			return false, err
		}
	case row.Parent.Valid:
		if q.HasPausedAncestor, err = p.requireAndGuardPausedParent(ctx, row); err != nil {
			return false, err
		}
	}
	if done, err := p.fenceAndAddRun(ctx, row, &q); err != nil || !done || p.request.DryRun {
		return done, err
	}
	runs := p.childrenToResume
	if row.Control&store.PausedForRepair != 0 {
		runs = append(runs, row.UUID)
	}
	p.cancelSupersededChildrenAndResume(runs)
	if err := p.e.commitInSeparateTx(ctx, userCaller, func() error { return p.e.store.ApplyRepair(ctx, &p.storeRequest) }); err != nil {
		return false, p.wrapError(row, journal.WithHowToFindOut(err, "look at the generations of the run before you repeat the repair"))
	}
	return p.storeRequest.Outcome == store.Written, nil
}

// cancelSupersededChildrenAndResume adds two requests to the repair: it cancels the children that belong to the superseded generations
// only, except for detached descendants of these children, and it resumes the given runs. The detached descendants that are not cancelled
// are resumed too, because no resume of a run above them would reach them any more.
func (p *repairPlanner) cancelSupersededChildrenAndResume(runs []uuid.UUID) {
	if len(p.childrenToCancel) > 0 {
		p.storeRequest.CancelRequest = &store.ControlRequest{
			Verb: store.VerbCancel, Scope: store.CancelWithoutDetached, Runs: p.childrenToCancel, Now: p.storeRequest.Now, Reason: droppedByRepairReason,
			Actor: p.request.Actor, Error: record.Cancelled(droppedByRepairReason, p.request.Actor).Encode(),
		}
	}
	if runs = slices.Concat(p.childrenToCancel, runs); len(runs) > 0 {
		p.storeRequest.ResumeRequest = &store.ControlRequest{Verb: store.VerbResume, Runs: runs, Now: p.storeRequest.Now, ForRepair: true}
	}
}

// wrapError adds the verb and the run to an error.
func (p *repairPlanner) wrapError(row *store.Run, err error) error {
	var refused *repair.StateError
	if errors.As(err, &refused) {
		return p.newStateError(row, refused.Detail)
	}
	return fmt.Errorf("%s run %q: %w", p.request.Verb, row.NameOrUUID(), err)
}

// newStateError returns a *StateError whose Detail has the run's status and the given detail.
func (p *repairPlanner) newStateError(row *store.Run, detail string) error {
	return &StateError{Ref: p.ref, Verb: p.request.Verb, Status: row.Status, Detail: row.Status.String() + ", and " + detail}
}

// checkStateAllowsRepair returns a *StateError if the status of the run does not allow the repair. A cancelled run must not continue,
// because those who cancelled it rely on its end.
func (p *repairPlanner) checkStateAllowsRepair(row *store.Run) error {
	allowed := row.Status != store.Cancelled && row.Control&store.CancelRequested == 0
	if p.request.Verb == RetryVerb {
		allowed = row.Status == store.Failed || row.Status == store.Expired
	}
	switch {
	case row.Epoch.Count == 0 && !row.Status.IsTerminal(): // a run that waits for its start key would never be released
		return p.newStateError(row, "it has not begun, so nothing of it can be repaired: use Fork with NewID to copy it")
	case allowed:
		return nil
	case row.Status == store.Cancelled:
		return p.newStateError(row, "those who cancelled it rely on its end: use Fork with NewID, which copies it to another run")
	case row.Status == store.Completed:
		return p.newStateError(row, "a retry is for runs that failed or expired: use Fork, Override or Rerun")
	case row.Control&store.CancelRequested == 0:
		return p.newStateError(row, "a retry is for runs that failed or expired: use Fork, Override, Skip or Rerun")
	}
	return &StateError{Ref: p.ref, Verb: p.request.Verb, Status: row.Status, Control: row.Control}
}

// requireAndGuardPausedParent returns a *StateError unless the parent of the run is paused and still waits for the run. Any other parent has
// recorded the end of the run, or may record it at any moment. A run that counts as a root needs no parent. requireAndGuardPausedParent
// reports whether a pause of an ancestor applies to the run. It reports false if the parent is only held for drift, because a hold pauses no
// descendants and its release resumes none.
func (p *repairPlanner) requireAndGuardPausedParent(ctx context.Context, row *store.Run) (hasPausedAncestor bool, err error) {
	parent, err := p.e.getRun(ctx, row.Parent.UUID.String(), store.NoPayloads)
	switch {
	case errors.Is(err, ErrNotFound) && row.Detached:
		return false, nil
	case errors.Is(err, ErrNotFound):
		generation, err := p.e.describeSupersededParent(ctx, row)
		if err != nil {
			return false, err
		}
		if generation == "" {
			return false, p.newStateError(row, "its parent was deleted")
		}
		return false, p.newStateError(row, "belongs to "+generation+": repair that run")
	case err != nil:
		return false, err
	}
	history, err := p.e.store.History(ctx, parent.UUID)
	if err != nil {
		return false, p.wrapError(row, err)
	}
	open := false
	for i := range history {
		open = open || history[i].Name == row.Name && !history[i].Status.IsTerminal()
	}
	switch {
	case !open:
		return false, p.newStateError(row, fmt.Sprintf("its parent, run %q, has recorded that: repair the parent", parent.NameOrUUID()))
	case parent.Status.IsTerminal():
		return false, p.newStateError(row, fmt.Sprintf("its parent, run %q, has ended: repair the parent", parent.NameOrUUID()))
	case parent.Status != store.Paused:
		return false, p.newStateError(row, fmt.Sprintf("its parent, run %q, may record that at any moment: pause the parent first", parent.NameOrUUID()))
	}
	p.storeRequest.Guards = append(p.storeRequest.Guards, store.ExpectedRunState{Run: parent.UUID, StateBefore: runStateOf(parent)})
	return parent.Control&store.PausedMask != 0, nil
}

func runStateOf(row *store.Run) store.RunState {
	return store.RunState{Found: true, Status: row.Status, Epoch: row.Epoch, Control: row.Control}
}

// fenceAndAddRun adds a run to the repair, and the failed children that its failure names. It reports false if the run has changed
// since it was read.
func (p *repairPlanner) fenceAndAddRun(ctx context.Context, row *store.Run, q *repair.Request) (done bool, err error) {
	q.Nonce = store.NewNonce()
	if !p.request.DryRun { // the fence keeps the history of the run unchanged
		if !row.Status.IsTerminal() {
			if err := p.extendPause(ctx, row.UUID); err != nil {
				return false, p.wrapError(row, err)
			}
		}
		f := &store.FenceRequest{Run: row.UUID, Now: p.storeRequest.Now, NextEpochNonce: q.Nonce, StateBefore: runStateOf(row), Reason: p.pauseReason(), Actor: p.request.Actor}
		if err := p.e.commitInSeparateTx(ctx, userCaller, func() error { return p.e.store.FenceRun(ctx, f) }); err != nil {
			return false, p.wrapError(row, err)
		}
		if f.Outcome != store.Written {
			return false, nil
		}
		if !row.Status.IsTerminal() {
			row.Status, row.Epoch, row.Control = store.Paused, f.EpochAfterFence(), f.ControlAfterFence()
		}
	}
	s, made, err := p.planGeneration(ctx, row, q)
	if err != nil {
		if p.hasRunChanged(ctx, row) { // perhaps the error is only due to another repair that was faster
			return false, nil
		}
		return false, err
	}
	p.storeRequest.Runs = append(p.storeRequest.Runs, made.Repair)
	p.runs = append(p.runs, PlannedRunRepair{Run: row, NewGeneration: s.Generation + 1, Detail: made.Detail, ChildrenToCancel: made.ChildrenToCancel})
	p.childrenToCancel = append(p.childrenToCancel, made.ChildrenToCancel...)
	p.noteChildrenToResume(s, made)
	p.guardEndedChildren(s, made)
	for _, id := range made.ChildrenToRetry {
		child, err := p.e.getRun(ctx, id.String(), store.WithOutputAndError)
		if err != nil {
			return false, p.wrapError(row, err)
		}
		if child.Status != store.Failed && child.Status != store.Expired { // another repair was faster: the child belongs to the generation that it has made
			return false, nil
		}
		done, err := p.fenceAndAddRun(ctx, child, &repair.Request{Now: q.Now, Due: q.Due, HasPausedAncestor: q.HasPausedAncestor})
		if errors.Is(err, repair.ErrFromRequired) {
			err = p.wrapError(row, fmt.Errorf("the child of its call %q: %w; with the call in From, the run starts another child", naming.DisplayRun(child), err))
		}
		if err != nil || !done {
			return false, err
		}
	}
	return true, nil
}

// hasRunChanged reports whether the run has changed since it was read, or fenced.
func (p *repairPlanner) hasRunChanged(ctx context.Context, row *store.Run) bool {
	now, err := p.e.getRun(ctx, row.UUID.String(), 0)
	return err == nil && runStateOf(now) != runStateOf(row)
}

// planGeneration reads the history and the children of the run, and plans its next generation.
func (p *repairPlanner) planGeneration(ctx context.Context, row *store.Run, q *repair.Request) (*repair.RunToRepair, *repair.Result, error) {
	s, err := p.readRunToRepair(ctx, row)
	if err != nil {
		return nil, nil, p.wrapError(row, err)
	}
	var made *repair.Result
	step := naming.ParseDisplay(p.request.Step)
	switch p.request.Verb {
	case OverrideVerb:
		made, err = repair.PlanOverride(s, q, step, p.request.StepValue)
	case SkipVerb:
		made, err = repair.PlanSkip(s, q, step, p.request.StepValue)
	case RerunVerb:
		made, err = repair.PlanRerun(s, q, step)
	case ForkVerb:
		made, err = repair.PlanFork(s, q, p.request.valuesByStoredName())
	default:
		if p.isByPolicy {
			made, err = planRetryByPolicy(s, q)
		} else {
			made, err = repair.PlanRetry(s, q)
		}
	}
	if err != nil {
		return nil, nil, p.wrapError(row, err)
	}
	return s, made, nil
}

// logRepairAndWakeWorkers logs a repair, and wakes workers.
func (e *Engine) logRepairAndWakeWorkers(p *repairPlanner) {
	for i := range p.runs {
		r := &p.runs[i]
		e.telemetry.Log.Info("a run was repaired: its next generation is executed", telemetry.KeyRun, r.Run.UUID, telemetry.KeyName, naming.DisplayRun(r.Run),
			telemetry.KeyWorkflow, r.Run.Workflow, telemetry.KeyVerb, p.storeRequest.Verb, telemetry.KeyGeneration, r.NewGeneration,
			telemetry.KeyActor, p.request.Actor, telemetry.KeyReason, p.request.Reason)
	}
	if w := e.worker(); w != nil {
		w.notifyOwnedRunChange()
		w.wakeLoops()
	}
}

// Generations returns a run with its payloads, and those of its superseded generations that the query selects, oldest first.
func (e *Engine) Generations(ctx context.Context, ref string, q store.GenerationsQuery) (*store.Run, []store.SupersededGeneration, error) {
	for {
		row, err := e.Get(ctx, ref)
		if err != nil {
			return nil, nil, err
		}
		all, err := e.store.SupersededGenerations(ctx, row.UUID, q)
		if err != nil {
			return nil, nil, fmt.Errorf("read the generations of run %q: %w", ref, err)
		}
		if !isSuperseded(row, all) {
			return row, all, nil
		}
	}
}
