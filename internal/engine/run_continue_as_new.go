package engine

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// A run continues as new when its function returns a new input in place of a result. One transaction moves the run's history to a
// superseded generation, and gives the run the new input and an empty history. The run stays with its worker: the transaction makes
// the worker the owner of the next epoch, as a start does. If the process dies after that, the lease ends and another worker claims
// the next generation. If a cancel or a pause was committed before the transaction, the transaction fails, because the row has
// changed. A cancel or a pause that is committed later concerns the next generation.

const (
	continueVerb = "continue"
	// strayCallPoll is how often a run that continues as new checks whether the calls of goroutines that its function has started
	// have ended.
	strayCallPoll = 5 * time.Millisecond
)

// continueAsNewRequest is what the function of a run returned to continue as new. run.mu guards it.
type continueAsNewRequest struct {
	input []byte // nil: the function did not return one
	// detachedCalls has the calls whose children are detached: those that this execution has made, and those whose children may still run.
	detachedCalls map[string]bool
	// isRefused says that the failed run cannot retry itself. Only the goroutine that ends the run uses it.
	isRefused bool
}

// noteDetachedChild notes that the child of a call is detached.
func (r *run) noteDetachedChild(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.nextGeneration.detachedCalls == nil {
		r.nextGeneration.detachedCalls = make(map[string]bool)
	}
	r.nextGeneration.detachedCalls[call] = true
}

// CheckContinueAsNew returns the reason why the run cannot continue as new, or nil if it can. CheckContinueAsNew returns ErrNestedStep
// inside another call or a branch. CheckContinueAsNew returns a *StateError for a run with compensations, or with attached children whose
// ends the run has not recorded.
func (s *Scope) CheckContinueAsNew() error {
	switch {
	case s.isInsideCall():
		return nestedCallError(s.r, "ContinueAsNew")
	case s.branch != nil:
		return fmt.Errorf("%w: ContinueAsNew in a branch of run %q: await the branch, and call it from the workflow function", ErrNestedStep, s.r.row.NameOrUUID())
	}
	if err := s.checkOpen(); err != nil {
		return err
	}
	return s.r.checkContinueAsNew(false)
}

// checkContinueAsNew does the work of CheckContinueAsNew. The argument over says that the function has returned. If it has not, only
// those children count whose calls this execution has made, because in a replay the history also holds the children of later calls.
func (r *run) checkContinueAsNew(over bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	refused := func(detail string) error {
		return &StateError{Ref: r.row.NameOrUUID(), Verb: continueVerb, Status: store.Running, Detail: store.Running.String() + ", and " + detail}
	}
	if n := len(r.compensations.notExecuted); n > 0 {
		return refused(fmt.Sprintf("has registered the compensation %q, which would be lost: do what has to be undone together in one generation, or in a child",
			naming.Display(r.compensations.notExecuted[n-1].name)))
	}
	var live []string
	for name := range r.children {
		if _, called := r.usedNames[name]; !over && !called {
			continue
		}
		if !r.nextGeneration.detachedCalls[name] && r.branchEnds.endOfOutermostBranch(name) == nil {
			live = append(live, naming.Display(name))
		}
	}
	if len(live) > 0 {
		slices.Sort(live)
		return refused(fmt.Sprintf("has not awaited its child %q: wait for it, or start it with Detached", live[0]))
	}
	return nil
}

// EncodeContinueAsNewInput encodes the input with which the run continues as new.
func (s *Scope) EncodeContinueAsNewInput(input any) ([]byte, error) {
	return s.r.e.workflows[s.r.row.Workflow].EncodeContinueAsNewInput(input)
}

// IsSameExecution reports whether both scopes belong to the same execution of a run.
func (s *Scope) IsSameExecution(other *Scope) bool { return s.r == other.r }

// SetContinueAsNewInput makes the run continue as new with the given input once the workflow function has returned.
func (s *Scope) SetContinueAsNewInput(input []byte) {
	s.r.mu.Lock()
	defer s.r.mu.Unlock()
	s.r.nextGeneration.input = input
}

// continueAsNewInput returns the input of the next generation, or nil if the function did not return one.
func (r *run) continueAsNewInput() []byte {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.nextGeneration.input
}

// continueAsNew makes the next generation, and executes it. It reports whether this ownership has ended. If it has not, the caller
// decides the end of the run anew, with the returned failure, if there is one, and with the control requests that have arrived
// meanwhile.
func (r *run) continueAsNew(input []byte) (over bool, failure *record.Failure) {
	if err := r.checkContinueAsNew(true); err != nil { // the function could start a child after its call
		return false, &record.Failure{Message: err.Error()}
	}
	if r.holdIfOlderWorkersLive("continue the run as new") || !r.awaitStrayCalls() || !r.endWriteBegan.CompareAndSwap(false, true) {
		return true, nil
	}
	p, row := r.planNextGeneration(input)
	err := r.e.commitInSeparateTx(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() error { return r.e.store.ApplyRepair(r.writeCtx, p) })
	switch {
	case errors.Is(err, store.ErrBadData):
		r.endWriteBegan.Store(false)
		return false, &record.Failure{Message: fmt.Sprintf("the database refused the input with which the run continues: %v", unwrapWriteError(err)), Codes: []string{record.CodeRefused}}
	case err != nil:
		r.endWriteBegan.Store(false)
		if row.Owner.Valid {
			r.w.addUncertainOwnership(&row, p.Now, err)
		}
		r.suspendAfterFailedWrite("continue the run as new", "", err)
		return true, nil
	case p.Outcome != store.Written:
		r.endWriteBegan.Store(false)
		return r.rereadAndApplyChanges(), nil
	}
	r.recordExecutionEnd(telemetry.OutcomeContinued, "", 0)
	r.warnUncalledSteps()
	r.logger().Debug("a run continues as new", telemetry.KeyGeneration, p.Runs[0].SupersededNumber+1)
	if p.Runs[0].Owner.Valid {
		r.w.executeNextGeneration(r, &store.ClaimedRun{Run: row, History: p.Runs[0].NewSteps, BypassesQueue: r.bypassesQueue})
	} else {
		r.w.wakeLoops()
	}
	return true, nil
}

// awaitStrayCalls waits until the durable calls of goroutines that the function has started itself have ended, because their records
// belong to the present generation. It reports false if the run was suspended.
func (r *run) awaitStrayCalls() bool {
	for !r.isSuspended() && r.idleTracker.hasExecutingCall() {
		r.endStepsCtx(errFunctionReturned)
		wakeup.SleepCtx(r.ownedCtx, strayCallPoll)
	}
	return !r.isSuspended()
}

// planNextGeneration returns the request that makes the next generation, and the row of the run in that generation.
func (r *run) planNextGeneration(input []byte) (*store.RepairRequest, store.Run) {
	now := r.e.clock.Now()
	row := r.row
	row.Epoch, row.Input, row.Control, row.Crashes = r.row.Epoch.Next(store.NewNonce()), input, 0, 0
	row.Status, row.WakeAt, row.Deadline = store.Running, now.Add(r.e.cfg.Lease), r.deadline.expiryTime()
	row.Owner = uuid.NullUUID{UUID: r.w.id, Valid: true}
	if r.w.slots.IsClosed() || r.w.slots.IsQuiet() {
		row.Status, row.WakeAt, row.Owner = store.Pending, now, uuid.NullUUID{}
	}
	number := r.keyRenewals.runGeneration()
	renewal := record.Renewal{Generation: number + 1, All: number + 1, FirstInput: r.keyRenewals.FirstInput}
	if renewal.FirstInput == nil {
		sum := sha256.Sum256(r.row.Input)
		renewal.FirstInput = sum[:]
	}
	return &store.RepairRequest{
		RequestID: uuid.New(), Verb: continueVerb, Now: now,
		Runs: []store.RunRepair{{
			Run: r.row.UUID, StateBefore: store.RunState{Found: true, Status: store.Running, Epoch: r.row.Epoch}, SupersededNumber: number, ContinuesAsNew: true, Input: input, FirstInputHash: renewal.FirstInput,
			NewSteps: []store.Step{renewal.NewStep(r.row.UUID, row.Epoch, now)}, Progress: 1,
			Owner: row.Owner, Epoch: row.Epoch, Status: row.Status, WakeAt: row.WakeAt,
		}},
	}, row
}

// rereadAndApplyChanges is called when the next generation was not made because the run's row had changed. It reads the row, and
// applies the control requests in it. It reports whether this ownership has ended.
func (r *run) rereadAndApplyChanges() (over bool) {
	var rows []*store.Run
	err := r.e.retryUntilPatienceEnds(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), func() (err error) {
		rows, err = r.e.store.GetRunsSelectingPayloads(r.writeCtx, []store.RunRef{{UUIDOrName: r.row.UUID.String()}}, store.NoPayloads)
		return err
	})
	switch {
	case err != nil:
		r.suspendAfterFailedWrite("continue the run as new", "", err)
	case rows[0] == nil:
		r.loseOwnership()
	case rows[0].Status == store.Running && rows[0].Epoch == r.row.Epoch:
		r.applyControl(rows[0].Control) // without control bits, the run was paused and resumed meanwhile, so it can continue as new
		return r.isSuspended()
	default:
		r.suspendAfterFencedWrite(store.RunState{Found: true, Status: rows[0].Status, Epoch: rows[0].Epoch, Control: rows[0].Control})
	}
	return true
}

// executeNextGeneration executes the next generation of a run in the run's slot.
func (w *worker) executeNextGeneration(r *run, c *store.ClaimedRun) {
	next := newRun(w, c)
	next.idleTracker.minIdleTime = w.earlyParks.minIdleTime(next.row.UUID, w.e.cfg.ParkAfter)
	r.slot.MoveTo(&next.slot)
	w.loadedRuns.add(next)
	if w.slots.IsClosed() { // see startExecution
		next.suspend(suspensionSpec{cause: ErrShutdown, status: store.Pending})
	}
	w.ownedRunChangesPending.Notify() // a cancel may have arrived while no epoch of the run was in memory
	go next.execute(0)
}
