package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/permits"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/slots"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// run is one run in this process's memory, for as long as this process owns it.
type run struct {
	w   *worker
	e   *Engine
	row store.Run // as claimed or created; never changed

	bypassesQueue bool // it counts towards no bound of its queue; see store.AdmissionBypassed; never changed

	runContexts

	span        trace.Span
	isTraced    bool // the span records, so steps get spans too
	traceparent string

	leaseEnd      atomic.Int64 // microseconds since 1970, on the database's clock
	endWriteBegan atomic.Bool  // the end of this ownership is being written, which happens once
	slot          slots.Slot

	queuePlace atomic.Pointer[store.QueuedRun] // what readQueuePlace has read

	wokenInMemory atomic.Bool // this process has woken the run, and its waits may not have checked the database since

	deadline        runDeadline          // has a mutex of its own
	idleTracker     idleTracker          // has a mutex of its own
	waitingReceives waitingReceives      // has a mutex of its own
	permitWaits     permits.WaitingSteps // has a mutex of its own

	// mu guards all fields below, unless their types say otherwise. Lock order: mu before the mutex of idleTracker.
	mu sync.Mutex
	replayState
	goroutines         runGoroutines
	compensations      compensations
	branchEnds         branchEndsByPrefix
	latestSleepEnd     time.Time            // the latest due time of all completed sleeps in branches
	latestSignalSentAt time.Time            // when the run sent its latest signal
	children           map[string]uuid.UUID // children that may still run, by name

	suspension        *suspensionSpec
	returnTimer       *time.Timer // calls releaseWithoutReturn if the function does not return in time
	suspensionNotices goroutinesNotifiedOfSuspension
	isCountedAsStuck  bool // earlyParkCounts counts this execution among those whose functions do not return
	forcedEnd         *forcedEnd
	repeatTimers
	nextGeneration    continueAsNewRequest
	preflightFindings *replayFindings // not nil: the run is replayed by a preflight
	functionStackBase uintptr         // stack.Base of the goroutine that executes the function; set before it is called
	stepGoexitFailure *record.Failure // not nil: a step called runtime.Goexit, so the run fails
}

// suspensionSpec says why a run leaves memory, and what is written to its row, if this process still owns the
// run then.
type suspensionSpec struct {
	cause               error
	status              store.Status
	wakeAt              time.Time
	heldReason          string            // why the run is held; only with ErrHeld
	compensationMissing bool              // the cause is ErrHeld, because the code lacks a compensation
	divergence          *store.Divergence // the cause is ErrHeld, because the code does not fit the history
	olderWorker         bool              // the cause is ErrHeld, because a worker ignores generations
	cancelBegun         bool              // the cause is ErrParked, and the run executes the compensations of a cancel
	unreadable          bool              // the cause is ErrHeld, because a payload cannot be decoded; see run_unreadable_payload.go
	queueMissing        bool              // the cause is ErrHeld, because the queue of a child has no settings; see holdForMissingQueue
}

func newRun(w *worker, c *store.ClaimedRun) *run {
	row := c.Run
	r := &run{w: w, e: w.e, row: row}
	r.unreadHistory, r.progressAtCrash, r.usedNames = c.UnreadHistory, c.ProgressAtLastCrash, make(map[string]uintptr, r.expectedNameCount())
	r.bypassesQueue = c.BypassesQueue
	r.leaseEnd.Store(row.WakeAt.UnixMicro())
	ctx, span, column := w.e.telemetry.SegmentSpan(w.ctx, row.Workflow, row.Queue, row.UUID, naming.DisplayRun(&row), row.Epoch.Count, row.Trace)
	r.span, r.traceparent, r.isTraced = span, column, span.IsRecording()
	r.runContexts = newRunContexts(ctx)
	r.addHistory(c.History)
	if !r.unreadHistory.Exists {
		r.loadBranchEnds()
		r.noteHistoryComplete()
		r.initMissingCallCounts()
	}
	r.idleTracker.r, r.waitingReceives.r, r.deadline.r = r, r, r
	if row.Control&store.CancelRequested != 0 {
		r.forceEnd(newCancelledEnd())
	}
	r.deadline.setInitial(row.Deadline)
	return r
}

// execution returns the run's UUID and epoch, which fence the writes of this execution.
func (r *run) execution() store.RunExecution {
	return store.RunExecution{Run: r.row.UUID, Epoch: r.row.Epoch}
}

// logger returns a logger with the run's attributes. It creates the logger at each call.
func (r *run) logger() *slog.Logger {
	return r.e.telemetry.Log.With(telemetry.KeyRun, r.row.UUID, telemetry.KeyName, naming.DisplayRun(&r.row),
		telemetry.KeyWorkflow, r.row.Workflow, telemetry.KeyEpoch, r.row.Epoch.Count)
}

// execute calls the workflow function, and writes the run's end or its release. It runs in a goroutine of
// its own.
func (r *run) execute(late time.Duration) {
	defer r.w.removeRun(r)
	defer r.endOwnedCtx(errFunctionReturned)
	if r.slot.WhenGiven() != nil {
		began := time.Now()
		r.awaitSlot()
		if late > 0 {
			late += time.Since(began)
		}
	}
	r.e.counters.startedExecutions.Add(1)
	r.e.telemetry.CountExecutionBegin(r.ctx, r.row.Workflow, r.row.Queue, late, r.row.Crashes > 0)
	if !r.slot.IsGiven() || r.unreadHistory.Exists && !r.readRemainingHistory() || !r.holdUnlessPayloadsReadable() || !r.holdUnlessKeyRenewalsDecoded() || r.suspendIfRetryNotDue() || !r.checkStartBy() || r.isFirstExecution() && r.isExpiring() || r.suspendIfWithoutSlot() || !r.cancelLosersChildren(true) {
		r.writeResultOrSuspension(nil, nil)
		return
	}

	if r.isCrashLoop() {
		r.writeResultOrSuspension(nil, r.crashLoopFailure())
		return
	}

	// runtime.Goexit in the workflow function unwinds this goroutine without a panic. Only a deferred call
	// can still end the run.
	var output []byte
	failure := workflowGoexitFailure()
	defer func() { r.writeResultOrSuspension(output, failure) }()
	output, failure = r.callWorkflow()
}

// writeResultOrSuspension writes the end of this ownership: the run's result, or what its suspension specifies.
func (r *run) writeResultOrSuspension(output []byte, failure *record.Failure) {
	r.mu.Lock()
	r.goroutines.functionReturned = true // stray goroutines of the function get ErrSuspended
	if r.stepGoexitFailure != nil {
		failure = r.stepGoexitFailure
	}
	r.mu.Unlock()
	r.awaitBranchesRepeatCalls(failure)
	r.endCtx(errFunctionReturned)
	r.awaitGoroutines() // wait for the branches: new calls return ErrSuspended, running steps finish
	if r.currentSuspension() == nil {
		r.endAfterReturn(output, failure)
	}
	s := r.currentSuspension()
	r.idleTracker.stop()
	r.deadline.stop()
	if s != nil && r.endWriteBegan.CompareAndSwap(false, true) { // otherwise another goroutine has written the end of the ownership
		r.writeSuspension(r.writeCtx, s)
	}
}

// currentSuspension returns the run's suspension, or nil if the run is not suspended.
func (r *run) currentSuspension() *suspensionSpec {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspension
}

// releaseStuck ends the ownership of a run whose function does not return. It tries to write the release until
// ctx ends.
func (r *run) releaseStuck(ctx context.Context) {
	r.loseOwnership()
	if r.endWriteBegan.CompareAndSwap(false, true) {
		r.writeSuspension(ctx, &suspensionSpec{cause: ErrShutdown, status: store.Pending})
	}
	r.w.removeRun(r)
}

// maxReturnTime returns how long a function may take to return when its run is suspended and none of its
// durable calls executes.
func (r *run) maxReturnTime() time.Duration {
	return max(2*min(r.e.cfg.ParkAfter, math.MaxInt64/2), concurrentRunIdleTime)
}

// releaseWithoutReturn reports a function that does not return although its run is suspended. It writes what the
// suspension specifies, so that any worker can continue the run. The slot stays taken as long as the
// function's goroutine lives, so a function that is stuck in every execution takes at most
// Config.Concurrency slots.
func (r *run) releaseWithoutReturn() {
	executing := r.idleTracker.hasExecutingCall()
	r.mu.Lock()
	s, back := r.suspension, r.goroutines.allReturned
	if !back && executing {
		r.returnTimer.Reset(r.maxReturnTime())
		back = true
	}
	r.mu.Unlock()
	if back || !r.endWriteBegan.CompareAndSwap(false, true) {
		return
	}
	r.logger().Error("a workflow function does not return although its run has left; the run goes on without it, its slot does not",
		telemetry.KeyReason, s.cause, telemetry.KeyStack, goroutineStackOf(r))
	r.endOwnedCtx(s.cause)
	r.writeSuspension(r.writeCtx, s)
	r.w.loadedRuns.remove(r)
}

// writeResult writes the run's result. If a control request on the run does not allow this end, writeResult returns the request
// instead.
func (r *run) writeResult(status store.Status, output []byte, failure *record.Failure) (blockingRequest store.ControlBits) {
	now := r.e.clock.Now()
	w := &store.OwnershipEnd{
		UUID: r.row.UUID, ParentToWake: r.row.Parent, Epoch: r.row.Epoch, Status: status, Output: output, EndedAt: now, Now: now, Trace: r.traceparent,
	}
	if r.row.Parent.Valid {
		w.CountingCall = naming.ItemCallName(r.row.Name)
	}
	if failure != nil {
		w.Output, w.Error = nil, failure.Encode()
		w.FailedStep, w.FailedType = r.failureGroupKey(failure)
	}
	err := r.e.writeWithRetry(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), nil, func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
		return &w.Outcome, j.WriteOwnershipEnd(r.writeCtx, w)
	})
	if errors.Is(err, store.ErrBadData) && failure == nil {
		return r.writeResult(store.Failed, nil, &record.Failure{Message: fmt.Sprintf("the database refused the workflow's output: %v", err), Codes: []string{record.CodeRefused}})
	}
	outcome := telemetryOutcomes[status]
	switch {
	case err != nil && !isStoreUnusable(err):
		r.endWriteBegan.Store(false)
		r.holdWithReason("write the end of the run", "", err)
		return 0
	case err != nil:
		r.logger().Error("a run's result could not be written; another execution will come to it again", telemetry.KeyError, err)
		outcome = telemetry.OutcomeLost
	case w.Outcome == store.Fenced && w.RunState.Epoch == w.Epoch && w.RunState.Status == store.Running && w.RunState.Control != 0:
		return w.RunState.Control
	case w.Outcome == store.Fenced:
		outcome = telemetry.OutcomeLost
	}
	r.recordExecutionEnd(outcome, failure.ErrorType(), w.EndedAt.Sub(r.row.CreatedAt))
	if outcome != telemetry.OutcomeLost {
		r.logRunEnd(status, failure)
		r.w.endedRuns.add(r)
		ended := r.row
		ended.Status, ended.Output, ended.Error, ended.EndedAt = w.Status, w.Output, w.Error, w.EndedAt
		ended.WakeAt, ended.Owner.Valid = time.Time{}, false
		r.e.resultWaiters.Deliver(&ended)
		if r.row.Parent.Valid {
			r.w.wakeLoops() // the parent may wait without being in memory
		}
		if status == store.Cancelled {
			r.w.startKeyHints.Notify() // a start may wait for this end
		}
	}
	return 0
}

// telemetryOutcomes maps the final status of a run to its telemetry value.
var telemetryOutcomes = map[store.Status]string{
	store.Completed: telemetry.OutcomeCompleted, store.Failed: telemetry.OutcomeFailed, store.Cancelled: telemetry.OutcomeCancelled,
	store.Expired: telemetry.OutcomeExpired,
}

// writeSuspension writes what a suspension specifies. If the write fails, the lease expires by itself.
func (r *run) writeSuspension(ctx context.Context, s *suspensionSpec) {
	outcome := telemetry.OutcomeReleased
	switch {
	case s.cause == ErrLeaseLost:
		outcome = telemetry.OutcomeLost
	case s.cause == ErrTerminated: // the termination is in the database already
		r.recordExecutionEnd(telemetry.OutcomeCancelled, record.CodeTerminated, 0)
		return
	case s.cause == ErrPaused:
		outcome = telemetry.OutcomePaused
	case s.cause == ErrHeld:
		outcome = telemetry.OutcomeHeld
	case s.status == store.Waiting:
		outcome = telemetry.OutcomeParked
	}
	var w *store.OwnershipEnd
	away, early := r.wakeDelayIfParkedEarly(s) // called only once, even if the write is retried
	err := r.e.writeWithRetry(ctx, writeOptions{}, nil, func(j journal.CommittingWriter) (*store.WriteOutcome, error) {
		r.w.ownedRunChangesMu.RLock()
		defer r.w.ownedRunChangesMu.RUnlock()
		w = r.newReleaseWrite(s, away, early)
		return &w.Outcome, j.WriteOwnershipEnd(ctx, w)
	})
	if err != nil {
		r.logger().Warn("a lease could not be given back; it expires by itself", telemetry.KeyReason, s.heldReason, telemetry.KeyError, err)
	} else if w.Outcome == store.Fenced {
		outcome = telemetry.OutcomeLost
	} else if w.HoldsRun {
		r.logHeld(s, w)
	}
	r.recordExecutionEnd(outcome, "", 0)
	if s.status == store.Waiting {
		r.w.wakeLoops() // the claim loop may be sleeping until after this run's wake time
	}
}

// newReleaseWrite returns the write that releases a run.
func (r *run) newReleaseWrite(s *suspensionSpec, away time.Duration, early bool) *store.OwnershipEnd {
	now := r.e.clock.Now()
	w := &store.OwnershipEnd{
		UUID: r.row.UUID, Epoch: r.row.Epoch, Status: s.status, WakeAt: s.wakeAt, Now: now, Trace: r.traceparent, CancelBegun: s.cancelBegun,
	}
	if early && (w.WakeAt.IsZero() || now.Add(away).Before(w.WakeAt)) {
		w.WakeAt = now.Add(away)
	}
	switch limit := r.deadline.expiryTime(); {
	case s.cause == ErrHeld:
		w.HoldsRun, w.HoldReason, w.MaxCrashes, w.Divergence, w.NotCountedAsCrash = true, s.heldReason, r.e.cfg.crashesBeforePause(), s.divergence, s.unreadable || s.olderWorker || s.queueMissing
	case s.status == store.Pending:
		w.WakeAt = now
	case s.status == store.Waiting && r.wokenInMemory.Load():
		w.WakeAt = now // at worst, one claim is in vain
	case !limit.IsZero() && !r.isEndRecorded() && (w.WakeAt.IsZero() || limit.Before(w.WakeAt)):
		w.WakeAt = limit // the run's timeout also applies while no worker executes it
	}
	return w
}

func (r *run) recordExecutionEnd(outcome, errorType string, lifetime time.Duration) {
	r.e.counters.countExecution(outcome)
	r.e.telemetry.CountExecutionEnd(r.ctx, r.row.Workflow, r.row.Queue, outcome, errorType, lifetime)
	telemetry.EndSpan(r.span, outcome, errorType)
}

// suspend makes the run leave this process. Only the first suspension takes effect. If the process has lost the run since, the store
// fences the write of the suspension.
func (r *run) suspend(s suspensionSpec) {
	r.mu.Lock()
	first := r.suspension == nil
	if first {
		r.suspension = &s
		if !r.goroutines.allReturned {
			r.returnTimer = time.AfterFunc(r.maxReturnTime(), r.releaseWithoutReturn)
		}
	}
	endUndo := r.compensations.cancelContext
	r.mu.Unlock()
	if first {
		r.endCtx(s.cause)
		if endUndo != nil {
			endUndo(s.cause)
		}
		r.e.resultWaiters.NoteRunLeft(r.row.UUID)
	}
}

// isSuspended reports whether the run was suspended. Another process may then bring it to its end.
func (r *run) isSuspended() bool { return r.currentSuspension() != nil }

// loseOwnership suspends a run whose lease has ended. If no worker has claimed the run since, the run is still released, so that a
// lease which ended because the database was unavailable does not count as a crash. Otherwise the store fences the release.
func (r *run) loseOwnership() {
	r.suspend(suspensionSpec{cause: ErrLeaseLost, status: store.Pending})
	r.endOwnedCtx(ErrLeaseLost)
}

// leaseEndTime returns when the run's lease ends, on the database's clock.
func (r *run) leaseEndTime() time.Time { return time.UnixMicro(r.leaseEnd.Load()).UTC() }

func (r *run) extendLease(until time.Time) { r.leaseEnd.Store(until.UnixMicro()) }
