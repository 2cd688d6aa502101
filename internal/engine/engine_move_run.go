package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// MoveRun gives the run that ref names the queue or the priority in the argument m. MoveRun returns a *StateError for a run that has
// begun, has ended, is being cancelled, or whose deadline has passed.
func (e *Engine) MoveRun(ctx context.Context, verb, ref string, m *store.MoveRunRequest) error {
	if err := e.CheckOutsideTx(ctx, "a change of a run's queue or priority"); err != nil {
		return err
	}
	began := time.Now()
	row, err := e.runToChange(ctx, userCaller, ref)
	if err != nil {
		return err
	}
	if m.Now, err = e.NowBeforeWrite(ctx); err != nil {
		return err
	}
	m.Run = row.UUID
	if m.Queue != "" && m.Queue != row.Queue {
		err := e.readBeforeWrite(ctx, userCaller, func() (err error) {
			m.NeedsPlace, err = e.checkQueueAcceptsMove(ctx, m.Queue, began, !row.Parent.Valid)
			return err
		})
		if err != nil {
			return fmt.Errorf("%s run %q: %w", verb, ref, err)
		}
	}
	err = e.commitInSeparateTx(ctx, userCaller, func() error { return e.store.MoveRun(ctx, m) })
	switch {
	case err != nil:
		return fmt.Errorf("%s run %q: %w", verb, ref, err)
	case m.FoundRun == nil:
		return fmt.Errorf("%w: run %q was removed", ErrNotFound, ref)
	case m.Outcome != store.Written:
		return &StateError{Ref: ref, Verb: verb, Status: m.FoundRun.Status, Control: m.FoundRun.Control, Expiring: m.FoundRun.HasExpired(m.Now), Begun: m.FoundRun.Epoch.Count > 0}
	}
	if !m.IsUnneeded() {
		e.logMovedRun(m)
		e.worker().wakeLoops()
	}
	return nil
}

// checkQueueAcceptsMove reports whether the queue has a row, as of the given time or later. It returns ErrQueueFull or
// ErrQueueClosed if the queue refuses a further root run.
func (e *Engine) checkQueueAcceptsMove(ctx context.Context, queue string, at time.Time, root bool) (needsPlace bool, err error) {
	rows := e.queueRows.RowsReadSince(ctx, at)
	if rows.ReadFailed {
		return false, fmt.Errorf("%w: the settings of queue %q cannot be read", store.ErrUnavailable, queue)
	}
	row, found := rows.ByName[queue]
	if !found || row.Deleted {
		return false, nil
	}
	if root {
		err = e.checkQueueAcceptsStarts(ctx, row, 1)
	}
	return true, err
}

// logMovedRun logs a change of a run's queue or priority.
func (e *Engine) logMovedRun(m *store.MoveRunRequest) {
	queue, priority := m.FoundRun.Name, m.FoundRun.RowPriority
	if m.Queue != "" {
		queue = m.Queue
	}
	if m.Priority != nil {
		priority = *m.Priority
	}
	e.telemetry.Log.Info("a run was given another queue or priority", telemetry.KeyRun, m.Run, telemetry.KeyWorkflow, m.FoundRun.Workflow,
		telemetry.KeyQueue, queue, telemetry.KeyPriority, priority, telemetry.KeyActor, m.Actor, telemetry.KeyReason, m.Reason)
}
