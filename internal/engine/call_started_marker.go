package engine

import (
	"sync"

	"github.com/seed8ec063be/durable/internal/clock"
	"github.com/seed8ec063be/durable/internal/journal"
	"github.com/seed8ec063be/durable/internal/naming"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// delayedStartedMarker writes the started row of a slow attempt before the attempt ends. If the attempt kills its
// process, the row shows that it had begun. A fast attempt costs no row: the marker is only appended when
// the attempt has lasted Config.StartedMarkerDelay, and nobody waits for its commit.
type delayedStartedMarker struct {
	task  *stepTask
	timer clock.ResettableTimer // nil: the marker has never been armed

	mu       sync.Mutex
	hasEnded bool
	write    *store.StepWrite
	entry    *journal.Entry
}

// armStartedMarker arms a marker for the attempt that begins. It reuses a marker of an attempt that is over, because
// creating a timer for each step takes a measurable part of a fast step's time. The pool belongs to the engine and not to the run, so
// that with many runs the markers of the last attempts, which are still in the caches of the processor, are reused first.
func (t *stepTask) armStartedMarker() *delayedStartedMarker {
	m, _ := t.r.e.startedMarkerPool.Get().(*delayedStartedMarker)
	if m == nil {
		m = new(delayedStartedMarker)
	}
	m.task = t
	m.startTimer()
	return m
}

func (m *delayedStartedMarker) startTimer() {
	after := m.task.r.e.cfg.StartedMarkerDelay
	if m.timer == nil {
		m.timer = m.task.r.e.clock.AfterFunc(after, m.appendToJournal)
		return
	}
	m.timer.Reset(after)
}

func (m *delayedStartedMarker) appendToJournal() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.hasEnded {
		return
	}
	w := m.task.newStepWrite(store.StepStarted, nil, nil)
	if entry, err := m.task.r.e.journal.AppendStartedMarker(w); err == nil {
		m.write, m.entry = w, entry
	}
}

// endMarker ends the marker when the attempt is over, and records whether its row was committed. It returns
// ErrSuspended if the write was fenced. It ignores a marker that could not be written, because the
// attempt's own write then fails for the same reason.
func (m *delayedStartedMarker) endMarker() error {
	if m.timer == nil {
		return nil
	}
	if m.timer.Stop() { // appendToJournal was not called, and will not be
		e := m.task.r.e
		m.task = nil
		e.startedMarkerPool.Put(m)
		return nil
	}
	m.mu.Lock()
	m.hasEnded = true
	entry, w := m.entry, m.write
	m.mu.Unlock()
	if entry == nil {
		return nil
	}
	committed, err := m.task.r.e.journal.WithdrawOrAwaitStartedMarker(entry)
	if err != nil || !committed {
		return nil
	}
	switch w.Outcome {
	case store.Written:
		m.task.hasRow = true
	case store.Fenced:
		m.task.r.suspendAfterFencedWrite(w.RunState)
		return ErrSuspended
	}
	return nil
}

// commitStartedMarker commits the started marker of an at-most-once attempt before its function is called. If another execution had
// already recorded the step, commitStartedMarker returns the recorded result, and done is true.
func (t *stepTask) commitStartedMarker() (res CallResult, done bool, err error) {
	w := t.newStepWrite(store.StepStarted, nil, nil)
	res, _, err = t.commitRow(w)
	return res, w.Outcome == store.AlreadyRecorded, err
}

// checkAttemptMayBegin returns why the step's function may not be called now, or nil if it may. It checks this right
// before the call, because the preceding write or VerifyInterruptedAttempt may have lasted until the lease ended,
// or until the run was paused or cancelled.
func (t *stepTask) checkAttemptMayBegin() error {
	if t.r.e.clock.Now().After(t.r.leaseEndTime()) {
		t.r.loseOwnership()
	}
	return t.scope.checkOpen()
}

// revokeStartedMarker replaces the started marker of an at-most-once attempt whose function was not called with a
// backoff row. The next execution then calls the function without calling VerifyInterruptedAttempt first. If the row cannot
// be written, the marker stays, and the step's outcome counts as unknown. If another execution owns the
// run, the write is fenced.
func (t *stepTask) revokeStartedMarker() {
	w := t.newStepWrite(store.StepBackoff, nil, nil)
	w.Step.NextAt = w.Step.EndedAt
	if err := t.r.e.journal.WriteStep(t.r.writeCtx, w); err != nil {
		t.r.logger().Warn("the started marker of a step whose function was not called could not be taken back; its outcome counts as unknown",
			telemetry.KeyStep, naming.Display(t.name), telemetry.KeyError, err)
	}
}
