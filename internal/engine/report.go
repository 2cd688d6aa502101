package engine

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// What an operator reads in the log: what failed (Warn), and what was cancelled and how a worker
// lives (Info). Each line is written by the process whose write made it true, so a replay writes
// none of them again. Payloads are in no line.

// reportFailure writes the line of a step whose failure is recorded for good. A child's failure is
// the line of its own run, and so is the failure of this one.
func (t *task) reportFailure(w *store.StepWrite) {
	if w.Step.Status != store.StepFailed || w.Step.Kind == store.KindChild || w.Step.Kind == store.KindFailure {
		return
	}
	level, text := slog.LevelWarn, "a step failed"
	if w.Step.Kind == store.KindCompensation {
		level, text = slog.LevelError, "a compensation failed"
	}
	log := t.r.logger()
	if !log.Enabled(t.r.durable, level) {
		return
	}
	f := DecodeFailure(w.Step.Error)
	log.Log(t.r.durable, level, text, append(t.attempts(), telemetry.KeyError, f.Message, telemetry.KeyErrorType, f.ErrorType())...)
}

// attempts are the step's name, the attempt, and the most that its policy makes, unless it sets no
// bound.
func (t *task) attempts() []any {
	attrs := []any{telemetry.KeyStep, Shown(t.name), telemetry.KeyAttempt, t.attempt}
	if t.spec.Retry == nil || t.spec.MaxAttempts > 0 {
		attrs = append(attrs, telemetry.KeyMaxAttempts, max(t.spec.MaxAttempts, 1))
	}
	return attrs
}

// followed are the words of telemetry for what follows when the time of a receive is over.
var followed = [...]string{
	TimeoutFails: telemetry.FollowedByError, TimeoutGoesOn: telemetry.FollowedByValue, TimeoutCancels: telemetry.FollowedByCancel,
	TimeoutExpires: telemetry.FollowedByExpiry, TimeoutEscalates: telemetry.FollowedByEscalation,
}

// reportTimeout counts a receive whose time is over, and writes the line of one that has failed over it. Whether
// its write came first is known from its outcome, and whether a signal did from the row.
func (w *receiving) reportTimeout(rec *store.Receive, late bool) {
	got, want := rec.Recorded, &rec.Step
	asWanted := got.Status == want.Status && bytes.Equal(got.Output, want.Output) && bytes.Equal(got.Error, want.Error)
	if !late || rec.Outcome != store.Written || got.Attempt != want.Attempt || !asWanted && w.spec.Otherwise != TimeoutEscalates {
		return
	}
	w.r.e.counts.timedOut[w.spec.Otherwise].Add(1)
	w.r.e.tel.TimedOut(w.r.ctx, w.r.row.Workflow, followed[w.spec.Otherwise])
	if got.Status != store.StepFailed || w.spec.Otherwise != TimeoutFails {
		return
	}
	w.r.logger().Warn("a receive timed out", telemetry.KeyStep, Shown(w.name), telemetry.KeyError, DecodeFailure(got.Error).Message)
}

// mostUncalled bounds the names in one line.
const mostUncalled = 10

// reportUncalled writes the line of a run that completed although its code did not call everything that
// history holds: where a step was renamed, it has run twice. What a choice has ended, and
// compensations, need not be called.
func (r *run) reportUncalled() {
	r.mu.Lock()
	var names []string
	for name, row := range r.history {
		if _, called := r.used[name]; !called && row.Kind != store.KindCompensation && !r.inEnded(name) {
			names = append(names, Shown(name))
		}
	}
	r.mu.Unlock()
	if len(names) == 0 {
		return
	}
	slices.Sort(names)
	r.logger().Warn("a run completed without calling recorded steps: if they were renamed, they ran again under their new names",
		telemetry.KeyCount, len(names), telemetry.KeySteps, names[:min(len(names), mostUncalled)])
}

// inEnded reports whether the name is in a branch that a choice has ended. r.mu is held.
func (r *run) inEnded(name string) bool {
	for prefix := range scopes(name) {
		if r.ended[prefix] != nil {
			return true
		}
	}
	return false
}

// reportEnd writes the lines of a run's end.
func (r *run) reportEnd(status store.Status, f *Failure) {
	switch {
	case status == store.Completed:
		r.reportUncalled()
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

// reportPause writes the line of a run that a claim has paused instead of giving it to the worker.
// Either it crashes again and again, or it was to be paused when its owner died: then its pause is older than the claim.
func (w *worker) reportPause(r *store.Run, claimed time.Time) {
	if r.PausedAt.Before(claimed.Truncate(time.Microsecond)) {
		w.log.Info("a run that lost its worker was paused, as requested before", telemetry.KeyRun, r.ID, telemetry.KeyName, ShownRun(r),
			telemetry.KeyWorkflow, r.Workflow, telemetry.KeyReason, r.Reason, telemetry.KeyActor, r.PausedBy)
		return
	}
	w.log.Warn("a run was paused", telemetry.KeyRun, r.ID, telemetry.KeyName, ShownRun(r), telemetry.KeyWorkflow, r.Workflow,
		telemetry.KeyReason, r.Reason, telemetry.KeyCrashes, r.Crashes, telemetry.KeyMaxCrashes, w.e.cfg.MaxCrashes)
}

// reportCancel writes a line for each run with which a cancel has ended some at once. Those that
// are executed somewhere have a line of their own when they end.
func (e *Engine) reportCancel(o *store.Order) {
	if o.Verb != store.VerbCancel || !e.tel.Log.Enabled(context.Background(), slog.LevelInfo) {
		return
	}
	for i, a := range o.Results {
		if a.Changed > 0 {
			e.tel.Log.Info("runs that were not executing were cancelled", telemetry.KeyRun, o.Runs[i],
				telemetry.KeyCount, a.Changed, telemetry.KeyReason, o.Reason, telemetry.KeyActor, o.Actor)
		}
	}
}

// Unattended tells that a Call waits for a run that this process does not execute.
func (e *Engine) Unattended(workflow string) {
	e.tel.Log.Warn("Call waits for another process to execute its run, since the context of Engine.Run has ended here", telemetry.KeyWorkflow, workflow)
}

// reportStart writes the line of a worker that begins to take runs.
func (w *worker) reportStart() {
	workflows, queues := make([]string, len(w.pairs)), make([]string, len(w.pairs))
	for i, p := range w.pairs {
		workflows[i], queues[i] = p.Workflow, p.Queue
	}
	slices.Sort(workflows)
	slices.Sort(queues)
	w.log.Info("the worker has started", telemetry.KeyName, w.e.cfg.Name, telemetry.KeyVersion, w.e.cfg.Version,
		telemetry.KeyWorkflows, workflows, telemetry.KeyQueues, slices.Compact(queues), telemetry.KeyStore, w.e.store.Name())
}
