package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// run is one run in this process's memory, for the time of one lease.
type run struct {
	w   *worker
	e   *Engine
	row store.Run // as claimed or created; never changed

	// hard is the parent of steps' contexts: it ends when the run is lost to this
	// process, or the drain's grace period is over. ctx, its child, is the workflow
	// function's: it ends at any suspension.
	hard     context.Context
	endHard  context.CancelCauseFunc
	ctx      context.Context
	endCtx   context.CancelCauseFunc
	durable  context.Context // for writes: it does not end with the run
	span     trace.Span
	traced   bool // the span records, so steps get spans too
	trace    string
	leaseEnd atomic.Int64 // microseconds since 1970, on the database's clock
	ending   atomic.Bool  // somebody writes the one end of this ownership
	leaving  sync.Once    // the one return of the slot
	branches sync.WaitGroup

	suspected atomic.Bool

	mu        sync.Mutex
	history   map[string]*store.Step
	used      map[string]uintptr // names called in this execution, and where
	replayed  int                // checkpoints answered from history
	recorded  int                // terminal checkpoints in history
	live      atomic.Bool        // something new was executed: no longer replaying
	suspended *suspension
	exited    *Failure // a step left by runtime.Goexit: the run cannot go on
	idle      idle
}

// suspension says why a run left, and what its row becomes, if it is still this one's.
type suspension struct {
	cause  error
	status store.Status
	wakeAt time.Time
}

func newRun(w *worker, row store.Run, history []store.Step) *run {
	r := &run{w: w, e: w.e, row: row, used: make(map[string]uintptr, 16)}
	r.leaseEnd.Store(row.WakeAt.UnixMicro())
	ctx, span, column := w.e.tel.SegmentSpan(w.ctx, row.Workflow, row.Queue, row.ID, row.Name, row.Epoch, row.Trace)
	r.span, r.trace, r.traced = span, column, span.IsRecording()
	r.hard, r.endHard = context.WithCancelCause(ctx)
	r.ctx, r.endCtx = context.WithCancelCause(r.hard)
	r.durable = context.WithoutCancel(ctx)
	if len(history) > 0 {
		r.history = make(map[string]*store.Step, len(history))
		for i := range history {
			r.history[history[i].Name] = &history[i]
			if history[i].Status.Terminal() {
				r.recorded++
			}
		}
	}
	r.live.Store(r.recorded == 0)
	r.idle.r = r
	return r
}

// logger makes the run's own logger when somebody asks for it.
func (r *run) logger() *slog.Logger {
	return r.e.tel.Log.With(telemetry.KeyRun, r.row.ID, telemetry.KeyName, r.row.Name,
		telemetry.KeyWorkflow, r.row.Workflow, telemetry.KeyEpoch, r.row.Epoch)
}

// exec calls the workflow function and writes what became of the run.
func (r *run) exec(late time.Duration) {
	tel := r.e.tel
	tel.Entered(r.ctx, r.row.Workflow, r.row.Queue, late, r.row.Crashes > 0)
	defer r.left()
	defer r.endHard(errEnded)

	// runtime.Goexit in the workflow function unwinds this goroutine without a
	// panic: only a deferred call can still end the run.
	var output []byte
	failure := &Failure{Message: "the workflow function left by runtime.Goexit", Codes: []string{CodeGoexit}}
	defer func() { r.conclude(output, failure) }()
	output, failure = r.call()
}

// call runs the user's function and turns a panic into a failure.
func (r *run) call() (output []byte, failure *Failure) {
	defer func() {
		if v := recover(); v != nil {
			output, failure = nil, panicFailure(v, debug.Stack())
			r.logger().Error("a workflow panicked", telemetry.KeyError, failure.Message, telemetry.KeyStack, failure.Stack)
		}
	}()
	return r.e.defs[r.row.Workflow].Run(&Scope{r: r}, r.row.Input)
}

// conclude writes the end of this ownership: the run's own, or what its suspension
// asks for.
func (r *run) conclude(output []byte, failure *Failure) {
	r.mu.Lock()
	s := r.suspended
	if s == nil {
		r.suspended = &suspension{cause: errEnded} // stray goroutines of the function get ErrSuspended
		if r.exited != nil {
			failure = r.exited
		}
	}
	r.mu.Unlock()
	r.idle.stop()
	r.endCtx(errEnded)
	r.branches.Wait() // their calls answer ErrSuspended; steps that run are let finish
	if !r.ending.CompareAndSwap(false, true) {
		return // it was abandoned
	}
	if s != nil {
		r.part(r.durable, s)
	} else {
		r.finish(output, failure)
	}
}

// abandon ends the ownership of a run whose function does not return, as far as that
// can be written before ctx ends.
func (r *run) abandon(ctx context.Context) {
	r.lose()
	if r.ending.CompareAndSwap(false, true) {
		r.part(ctx, &suspension{cause: ErrShutdown, status: store.Pending})
	}
	r.left()
}

// left gives the run's slot back, once.
func (r *run) left() { r.leaving.Do(func() { r.w.left(r) }) }

// finish writes the run's result.
func (r *run) finish(output []byte, failure *Failure) {
	w := &store.RunWrite{ID: r.row.ID, Epoch: r.row.Epoch, Status: store.Completed, Output: output, EndedAt: r.e.clock.now(), Trace: r.trace}
	outcome := telemetry.OutcomeCompleted
	if failure != nil {
		w.Status, w.Output, w.Error = store.Failed, nil, failure.Encode()
		outcome = telemetry.OutcomeFailed
	}
	err := r.e.journal.Run(r.durable, w)
	if errors.Is(err, store.ErrBadData) && failure == nil {
		r.finish(nil, &Failure{Message: fmt.Sprintf("the database refused the workflow's output: %v", err), Codes: []string{CodeRefused}})
		return
	}
	switch {
	case err != nil:
		r.logger().Error("a run's result could not be written; another execution will come to it again", telemetry.KeyError, err)
		outcome = telemetry.OutcomeLost
	case w.Outcome == store.Fenced:
		outcome = telemetry.OutcomeLost
	}
	r.report(outcome, failure.ErrorType(), w.EndedAt.Sub(r.row.CreatedAt))
	if outcome != telemetry.OutcomeLost {
		ended := r.row
		ended.Status, ended.Output, ended.Error, ended.EndedAt = w.Status, w.Output, w.Error, w.EndedAt
		ended.WakeAt, ended.Owner.Valid = time.Time{}, false
		r.e.waiters.deliver(&ended)
	}
}

// part writes what a suspension asks for. If that fails, the lease expires by itself.
func (r *run) part(ctx context.Context, s *suspension) {
	outcome := telemetry.OutcomeReleased
	switch {
	case s.cause == ErrLeaseLost:
		outcome = telemetry.OutcomeLost
	case s.status == store.Waiting:
		outcome = telemetry.OutcomeParked
	}
	w := &store.RunWrite{ID: r.row.ID, Epoch: r.row.Epoch, Status: s.status, WakeAt: s.wakeAt, Trace: r.trace}
	if s.status == store.Pending {
		w.WakeAt = r.e.clock.now()
	}
	if err := r.e.journal.Run(ctx, w); err != nil {
		r.logger().Warn("a lease could not be given back; it expires by itself", telemetry.KeyError, err)
	} else if w.Outcome == store.Fenced {
		outcome = telemetry.OutcomeLost
	}
	r.report(outcome, "", 0)
	if s.status == store.Waiting {
		r.w.hint() // the claim loop may be pausing beyond this run's wake time
	}
}

func (r *run) report(outcome, errorType string, lifetime time.Duration) {
	r.e.tel.Left(r.ctx, r.row.Workflow, r.row.Queue, outcome, errorType, lifetime)
	telemetry.EndSpan(r.span, outcome, errorType)
}

// suspend makes the run leave this process. The first suspension holds: what a later
// one would have changed, the fence decides.
func (r *run) suspend(s suspension) {
	r.mu.Lock()
	first := r.suspended == nil
	if first {
		r.suspended = &s
	}
	r.mu.Unlock()
	if first {
		r.endCtx(s.cause)
	}
}

// gone reports whether the run was suspended: another may bring it to its end. One
// whose function has returned is not; its end is being written here.
func (r *run) gone() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.suspended != nil && r.suspended.cause != errEnded
}

// lose is the suspension of a run whose lease has ended. If nobody has claimed it since,
// it is given back all the same, so that a lease which ended because the database was
// away does not pass for a crash; otherwise that write is fenced.
func (r *run) lose() {
	r.suspend(suspension{cause: ErrLeaseLost, status: store.Pending})
	r.endHard(ErrLeaseLost)
}

// lease is when the run's lease ends, on the database's clock.
func (r *run) lease() time.Time { return time.UnixMicro(r.leaseEnd.Load()).UTC() }

func (r *run) extend(until time.Time) { r.leaseEnd.Store(until.UnixMicro()) }
