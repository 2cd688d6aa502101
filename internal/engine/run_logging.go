package engine

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// This file writes the log lines for operators: failures (Warn or Error), and cancellations and the life
// of a worker (Info). The process whose write made an event durable logs the event, so a replay does not
// log it again. No line contains a payload.

// logStepFailure logs a step whose failure is recorded for good. It does not log the failure of a child,
// which the child's own run logs, nor the record of this run's failure, which logRunEnd logs.
func (t *stepTask) logStepFailure(w *store.StepWrite) {
	if w.Step.Status != store.StepFailed || w.Step.Kind == store.KindChild || w.Step.Kind == store.KindRunEnd {
		return
	}
	level, text := slog.LevelWarn, "a step failed"
	if w.Step.Kind == store.KindCompensation {
		level, text = slog.LevelError, "a compensation failed"
	}
	log := t.r.logger()
	if !log.Enabled(t.r.writeCtx, level) {
		return
	}
	f := record.DecodeFailure(w.Step.Error)
	log.Log(t.r.writeCtx, level, text, append(t.attemptAttrs(), telemetry.KeyError, f.Message, telemetry.KeyErrorType, f.ErrorType())...)
}

// attemptAttrs returns the log attributes for the step's name, the attempt and, unless its retry policy sets
// no bound, the maximum number of attempts.
func (t *stepTask) attemptAttrs() []any {
	attrs := []any{telemetry.KeyStep, naming.Display(t.name), telemetry.KeyAttempt, t.attempt}
	if t.spec.RetryDelay == nil || t.spec.MaxAttempts > 0 {
		attrs = append(attrs, telemetry.KeyMaxAttempts, max(t.spec.MaxAttempts, 1))
	}
	return attrs
}

// timeoutFollowUps maps each TimeoutAction to the telemetry value for what follows the timeout.
var timeoutFollowUps = [...]string{
	TimeoutFails: telemetry.FollowedByError, TimeoutReturnsValue: telemetry.FollowedByValue, TimeoutCancels: telemetry.FollowedByCancel,
	TimeoutExpires: telemetry.FollowedByExpiry, TimeoutEscalates: telemetry.FollowedByEscalation,
}

// countAndLogTimeout counts a receive that timed out, and logs it if it failed. It does nothing if the outcome shows that another
// execution wrote the row first, or if the row shows that a signal ended the wait.
func (w *receiveCall) countAndLogTimeout(rec *store.ReceiveWrite, late bool) {
	got, want := rec.RecordedStep, &rec.Step
	asWanted := got.Status == want.Status && bytes.Equal(got.Output, want.Output) && bytes.Equal(got.Error, want.Error)
	if !late || rec.Outcome != store.Written || got.Attempt != want.Attempt || !asWanted && w.spec.OnTimeout != TimeoutEscalates {
		return
	}
	w.r.e.counters.receiveTimeouts[w.spec.OnTimeout].Add(1)
	w.r.e.telemetry.CountReceiveTimeout(w.r.ctx, w.r.row.Workflow, timeoutFollowUps[w.spec.OnTimeout])
	if got.Status != store.StepFailed || w.spec.OnTimeout != TimeoutFails {
		return
	}
	w.r.logger().Warn("a receive timed out", telemetry.KeyStep, naming.Display(w.name), telemetry.KeyError, record.DecodeFailure(got.Error).Message)
}

// maxLoggedUncalled bounds the step names in one log line.
const maxLoggedUncalled = 10

// warnUncalledSteps logs a run that completed although its code did not make all calls in its history. A step that was renamed, for
// example, has been executed twice. Compensations, and calls in branches that a choice has ended, need not be called.
func (r *run) warnUncalledSteps() {
	r.mu.Lock()
	var names []string
	for _, row := range r.uncalledRowsLocked() {
		names = append(names, naming.Display(row.Name))
	}
	r.mu.Unlock()
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	r.logger().Warn("a run completed without calling recorded steps: if they were renamed, they ran again under their new names",
		telemetry.KeyCount, len(names), telemetry.KeySteps, names[:min(len(names), maxLoggedUncalled)])
}

// logRunEnd logs the end of a run.
func (r *run) logRunEnd(status store.Status, f *record.Failure) {
	switch {
	case status == store.Completed:
		r.warnUncalledSteps()
	case f == nil:
	case status == store.Cancelled:
		r.logger().Info("a run was cancelled", telemetry.KeyReason, f.Message)
	default:
		attrs := []any{telemetry.KeyError, f.Message, telemetry.KeyErrorType, f.ErrorType()}
		if f.Step != "" {
			attrs = append(attrs, telemetry.KeyStep, f.Step)
		}
		r.logger().Warn("a run failed", attrs...)
	}
}

// logPausedByClaim logs a run that a claim has paused instead of giving it to the worker. Either the run crashes repeatedly, or a
// pause was requested before its owner died; the pause is then older than the claim.
func (w *worker) logPausedByClaim(r *store.Run, claimed time.Time) {
	if r.PausedAt.Before(claimed.Truncate(time.Microsecond)) {
		w.log.Info("a run that lost its worker was paused, as requested before", telemetry.KeyRun, r.UUID, telemetry.KeyName, naming.DisplayRun(r),
			telemetry.KeyWorkflow, r.Workflow, telemetry.KeyReason, r.PauseOrHoldReason, telemetry.KeyActor, r.PausedBy)
		return
	}
	w.log.Warn("a run was paused", telemetry.KeyRun, r.UUID, telemetry.KeyName, naming.DisplayRun(r), telemetry.KeyWorkflow, r.Workflow,
		telemetry.KeyReason, r.PauseOrHoldReason, telemetry.KeyCrashes, r.Crashes, telemetry.KeyMaxCrashes, w.e.cfg.MaxCrashes)
}

// logCancelledRuns logs each run for which a cancel ended runs at once, with their number. A run that a
// worker executes is logged when it ends.
func (e *Engine) logCancelledRuns(o *store.ControlRequest) {
	if o.Verb != store.VerbCancel || !e.telemetry.Log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	for i, a := range o.Results {
		if a.ChangedCount > 0 {
			e.telemetry.Log.Info("runs that were not executing were cancelled", telemetry.KeyRun, o.Runs[i],
				telemetry.KeyCount, a.ChangedCount, telemetry.KeyReason, o.Reason, telemetry.KeyActor, o.Actor)
		}
	}
}

// WarnCallWithoutLocalWorker logs a warning that a Call waits for a run which this process does not execute.
func (e *Engine) WarnCallWithoutLocalWorker(workflow string) {
	e.telemetry.Log.Warn("Call waits for another process to execute its run, since the context of Engine.Run has ended here", telemetry.KeyWorkflow, workflow)
}

// logWorkerStart logs that a worker begins to claim runs.
func (w *worker) logWorkerStart() {
	w.log.Info("the worker has started", telemetry.KeyName, w.e.cfg.Name, telemetry.KeyVersion, w.e.programVersion(),
		telemetry.KeyWorkflows, w.workflows, telemetry.KeyQueues, w.e.cfg.Queues, telemetry.KeyStore, w.e.store.Name())
}
