package engine

import (
	"cmp"
	"encoding/json/v2"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/results"
	"github.com/seed8ec063be/durable/internal/store"
)

// Child is a handle to a child run, used by the workflow function of the parent.
type Child struct {
	scope       *Scope
	name        string // including the prefix of its scope
	id          uuid.UUID
	startRow    store.Step // the row of the start in the parent's history
	startedHere bool       // this execution started the child
	endedRun    *store.Run // the ended child, as AwaitChildren has read it; nil: AwaitChildren has not read it

	once   sync.Once
	result CallResult
	err    error
}

// Name returns the name of the call that started the child, with its scope, as users see it.
func (c *Child) Name() string { return naming.Display(c.name) }

// StartChild starts a child of this run; the given call names the child. One transaction commits the start of the child and the
// checkpoint of the call. The checkpoint of the call is completed once the parent has waited for the child's end. The database
// refuses to start a child while a pause or a cancel of the parent is requested.
func (s *Scope) StartChild(q StartRequest, site uintptr) (*Child, error) {
	r := s.r
	full := s.fullName(q.Name)
	recorded, err := s.beginCall(full, store.KindChild, site)
	if err != nil {
		return nil, err
	}
	if q.Detached {
		r.noteDetachedChild(full)
	}
	c := &Child{scope: s, name: full}
	if recorded != nil {
		c.startRow = *recorded
		about := record.DecodeFailures(recorded)
		if had := about.Workflow; had != "" && had != q.Workflow {
			return nil, s.reportDivergence(full, fmt.Errorf("%w: child %q in run %q is recorded as a run of workflow %q, and the code starts %q: give the new call another name", ErrDiverged, naming.Display(full), r.row.NameOrUUID(), had, q.Workflow))
		}
		if recorded.Status.IsTerminal() {
			c.id = about.ChildUUID(r.row.UUID, recorded)
			c.once.Do(func() { c.result = recordedResult(recorded) })
			return c, nil
		}
		if c.id, err = decodeChildUUID(recorded); err != nil {
			return nil, s.reportDivergence(full, fmt.Errorf("%w: the record of child %q in run %q does not name a run", ErrDiverged, naming.Display(full), r.row.NameOrUUID()))
		}
		return c, nil
	}
	if err := naming.Check("child", q.Name); err != nil {
		return nil, err
	}
	if s.isInsideCall() {
		return nil, nestedCallError(r, full)
	}
	if err := s.checkMayExecuteCall(full, store.KindChild, nil); err != nil {
		return nil, err
	}
	s.mapRow.write()
	return c, c.commitStart(q)
}

// decodeChildUUID returns the UUID of the child from the row of its start.
func decodeChildUUID(started *store.Step) (id uuid.UUID, err error) {
	var text string
	if err := json.Unmarshal(started.Output, &text); err != nil {
		return id, err
	}
	if err := uuid.Validate(text); err != nil {
		return id, err
	}
	return uuid.Parse(text)
}

// commitStart commits the child. If there is a free slot, this process executes the child at once.
func (c *Child) commitStart(q StartRequest) error {
	r := c.scope.r
	q.Queue = cmp.Or(q.Queue, r.row.Queue)
	if q.Priority == nil {
		q.Priority = &r.row.Priority
	}
	if !r.beginGoroutine() { // the run's end waits for the start, and cancels the child
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.suspension != nil {
			return ErrSuspended
		}
		return r.callOpenAtReturnError()
	}
	defer r.endGoroutine()
	r.idleTracker.beginBusy()
	defer r.idleTracker.endBusy()
	switch err := r.resolveChildQueue(&q); {
	case errors.Is(err, ErrInvalidConfig):
		r.holdForMissingQueue(c.name, err)
		return ErrSuspended
	case err != nil:
		r.suspendAfterFailedWrite("start child", c.name, err)
		return ErrSuspended
	}
	w, free, hintsBefore := r.e.reserveSlotsForStarts([]StartRequest{q})
	defer free.Release()
	starts, spans := r.e.PrepareStarts(r.stepsCtx, []StartRequest{q})
	start := starts[0]
	generation := r.keyRenewals.runGeneration()
	c.id = store.ChildUUID(r.row.UUID, c.name, start.Run.CreatedAt, generation)
	start.Run.UUID, start.Run.Name, start.ParentEpoch = c.id, c.name, r.row.Epoch
	start.Run.Parent = uuid.NullUUID{UUID: r.row.UUID, Valid: true}
	if start.Place != nil {
		start.Place.Run = c.id
	}
	if free.UnassignedSlots() > 0 && start.Run.WakeAt.Equal(start.Run.CreatedAt) {
		w.setOwner(&start.Run, start.Run.CreatedAt, store.NewNonce())
	}
	own := start.Run.Owner.Valid
	out, err := json.Marshal(c.id.String())
	if err != nil {
		return err
	}
	t := &stepTask{r: r, scope: c.scope, spec: &CallSpec{Kind: store.KindChild}, name: c.name, attempt: 1, firstBegan: start.Run.CreatedAt}
	step := t.newStepWrite(store.StepStarted, out, nil)
	about := record.Failures{Workflow: q.Workflow, Detached: q.Detached}
	if generation > 1 {
		about.Generation = generation
	}
	if step.Step.Failures, err = json.Marshal(&about); err != nil {
		return err
	}
	var left error   // not nil: the branch was ended
	var failed error // the last error of a write
	err = r.e.writeWithRetry(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() {
		free.Release() // other starts need not wait for these slots
		own = false
		clearOwner(&start.Run)
	}, func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
		c.scope.branch.preventEndByChoice() // a choice that ends the branch either comes before this start or cancels this child
		defer c.scope.branch.allowEndByChoice()
		if left = c.scope.checkBranchOpen(); left != nil {
			fenced := store.Fenced
			return &fenced, nil
		}
		err := j.WriteStartWithStep(r.writeCtx, start, step)
		failed = cmp.Or(err, failed)
		if err == nil && start.Outcome == store.Written && step.Outcome == store.Written {
			r.addChild(c.name, c.id)
		}
		return &start.Outcome, err
	})
	written := err == nil && left == nil && start.Outcome == store.Written && step.Outcome == store.Written
	if !own || !written {
		free.Release()
	}
	if own && !written && failed != nil {
		w.addUncertainStart(starts, cmp.Or(err, failed))
	}
	if err := cmp.Or(err, left); err != nil {
		spans.EndFailed(err)
	} else {
		spans.endSpan(0, start, nil)
	}
	switch {
	case left != nil && failed != nil: // the child may have been started: the next execution finds it
		r.loseOwnership()
		return ErrSuspended
	case left != nil:
		return left
	case err != nil && !errors.Is(err, store.ErrBadData):
		r.suspendAfterFailedWrite("start child", c.name, err)
		return ErrSuspended
	case err != nil:
		return fmt.Errorf("start child %q of run %q: %w", naming.Display(c.name), r.row.NameOrUUID(), err)
	case start.Outcome == store.Fenced && start.RunState.Epoch == r.row.Epoch && start.RunState.Control != 0:
		r.applyControl(start.RunState.Control)
		return c.scope.checkOpen()
	case start.Outcome == store.AlreadyRecorded: // child names are unique within a parent, and this parent has not started the existing child
		r.suspendAfterFailedWrite("start child", c.name, unknownChildError(start.ExistingRun, c.id))
		return ErrSuspended
	case !written:
		r.suspendAfterFencedWrite(start.RunState)
		return ErrSuspended
	}
	r.e.telemetry.CountStart(r.ctx, q.Workflow, q.Queue)
	c.startRow, c.startedHere = step.Step, true
	if own {
		w.startExecution(&store.ClaimedRun{Run: start.Run}, 0, &free)
		w.rereadChangesOfEnteredRuns(hintsBefore)
	} else {
		r.w.wakeLoops()
	}
	return nil
}

// UUID returns the child's UUID, which is the same in every execution of the parent.
func (c *Child) UUID() uuid.UUID { return c.id }

// HasRecordedEnd reports whether the result of the child was in the history when the child was started in this execution.
func (c *Child) HasRecordedEnd() bool { return c.startRow.Status.IsTerminal() }

// RecordedStatus returns the status with which the child ended, if HasRecordedEnd is true.
func (c *Child) RecordedStatus() string {
	if c.startRow.Status == store.StepFailed {
		return record.DecodeFailure(c.startRow.Error).Status
	}
	return store.Completed.String()
}

// Wait returns the result of the child when it has ended, wherever it is executed. During Wait the parent may be unloaded from memory; the
// end of the child wakes the parent.
func (c *Child) Wait() (CallResult, error) {
	if c.scope.isInsideCall() {
		return CallResult{}, nestedCallError(c.scope.r, c.name)
	}
	c.once.Do(func() { c.result, c.err = c.awaitEnd() })
	return c.result, c.err
}

func (c *Child) awaitEnd() (CallResult, error) {
	r := c.scope.r
	if left := c.scope.checkOpen(); left != nil {
		return CallResult{}, left // reading whether the child has ended would count as a new call
	}
	if err := c.scope.refuseInPreflight(c.name, store.KindChild); err != nil {
		return CallResult{}, err
	}
	if !c.startedHere {
		if err := c.scope.checkNoCallsMissing(c.name, store.KindChild, &c.startRow); err != nil {
			return CallResult{}, err
		}
	}
	r.notePastReplay()
	r.idleTracker.beginBusy()
	defer r.idleTracker.endBusy()
	row, err := c.readIfEnded()
	if row == nil && err == nil {
		row, err = c.scope.awaitRunEnd(c.id)
	}
	switch {
	case isStoreUnusable(err):
		r.loseOwnership()
	case errors.Is(err, ErrNotFound): // the effects of the child are unknown, so it is not started again
		r.suspendAfterFailedWrite("wait for child", c.name, fmt.Errorf("%w: the child %s is not in this database: it was deleted, or another run had its name when it was to be started: end this run by Cancel or Terminate",
			store.ErrRejected, c.id))
	}
	if left := c.scope.checkOpen(); left != nil {
		return CallResult{}, left
	}
	if err != nil {
		return CallResult{}, fmt.Errorf("wait for child %q of run %q: %w", naming.Display(c.name), r.row.NameOrUUID(), err)
	}
	if err := r.holdIfRowUnreadable(&store.Step{Name: c.name, Output: row.Output, Error: row.Error}); err != nil {
		return CallResult{}, err
	}
	t := &stepTask{r: r, scope: c.scope, spec: &CallSpec{Kind: store.KindChild}, name: c.name, attempt: c.startRow.Attempt, firstBegan: c.startRow.StartedAt, hasRow: true, seq: c.startRow.Seq}
	w := t.newStepWrite(store.StepCompleted, row.Output, nil)
	if row.Status != store.Completed {
		w = t.newStepWrite(store.StepFailed, nil, childFailure(row))
	}
	w.Step.Failures = c.startRow.Failures // holds the child's workflow
	res, _, err := t.commitRow(w)
	if err == nil {
		r.removeChild(c.name)
	}
	return res, err
}

// readIfEnded returns the child if AwaitChildren has read it, or if an earlier execution has started the child and it has ended: the end may
// have woken this execution, and no second wake would follow. For any other child, readIfEnded returns nil. The end of a child that this
// execution has started is delivered to its waiter.
func (c *Child) readIfEnded() (*store.Run, error) {
	if c.endedRun != nil || c.startedHere {
		return c.endedRun, nil
	}
	var ended []results.EndedRun
	err := c.scope.r.e.retryUntilPatienceEnds(c.scope.ctx, writeOptions{}, func() (err error) {
		ended, err = results.ReadEnded(c.scope.ctx, c.scope.r.e.store, []uuid.UUID{c.id})
		return err
	})
	switch {
	case err != nil && c.scope.checkOpen() == nil:
		c.scope.r.suspendAfterFailedWrite("look for child", c.name, err)
		return nil, err
	case err != nil:
		return nil, err
	case len(ended) == 1 && ended[0].Run == nil:
		return nil, notFoundError(c.id.String())
	case len(ended) == 1:
		return ended[0].Run, nil
	}
	return nil, nil
}

// unknownChildError returns the error for an existing child of this run that the run's history does not
// contain.
func unknownChildError(had *store.Run, child uuid.UUID) error {
	return fmt.Errorf("%w: the name belongs to run %s of workflow %q, which this run has not started, in place of the child %s: find out who inserted that row",
		store.ErrRejected, had.UUID, had.Workflow, child)
}

// childFailure returns the failure that the parent records for a child that did not complete.
func childFailure(row *store.Run) *record.Failure {
	f := &record.Failure{Message: "no error was recorded"}
	if len(row.Error) > 0 {
		f = record.DecodeFailure(row.Error)
	}
	f.Run, f.Workflow, f.Status = row.UUID.String(), row.Workflow, row.Status.String()
	return f
}
