package engine

import (
	"context"
	"fmt"
	"sync"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// quietState tells whether an operator has made the worker quiet, as the worker's last heartbeat has read it. The next heartbeat
// sends it too, so that the worker stays quiet even if other workers take it for dead and remove it from the registry.
type quietState struct {
	mu         sync.Mutex
	quiet      bool
	lastChange *store.OperatorChange
}

func (q *quietState) get() (quiet bool, lastChange *store.OperatorChange) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.quiet, q.lastChange
}

// set sets the state, and returns whether the worker was quiet before.
func (q *quietState) set(quiet bool, lastChange *store.OperatorChange) (before bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	before, q.quiet, q.lastChange = q.quiet, quiet, lastChange
	return before
}

// setQuiet makes the worker quiet or resumes it, as the result of its heartbeat says. A quiet worker reserves no slots: it claims no
// runs, and other workers claim the runs that its process starts.
func (w *worker) setQuiet(r *store.RenewResult) {
	if before := w.quiet.set(r.Quiet, r.LastChange); before == r.Quiet {
		return
	}
	w.slots.SetQuiet(r.Quiet)
	text := "an operator resumed this worker: it claims runs again"
	if r.Quiet {
		text = "an operator made this worker quiet: it claims no runs, and continues those it has"
	}
	c := store.OperatorChange{}
	if r.LastChange != nil {
		c = *r.LastChange
	}
	w.log.Info(text, telemetry.KeyActor, c.By, telemetry.KeyReason, c.Reason, telemetry.KeyCount, w.loadedRuns.count())
}

// QuietWorker makes a worker quiet, so that it claims no runs, or resumes the worker if c.Resume is set. QuietWorker returns ErrNotFound if
// the worker does not exist.
func (e *Engine) QuietWorker(ctx context.Context, id string, c store.SetWorkerQuietRequest) (err error) {
	known := false
	if c.Worker, known = store.ParseCanonicalUUID(id); known {
		if c.Now, err = e.NowBeforeWrite(ctx); err != nil {
			return err
		}
		known = false
		err = e.commitInSeparateTx(ctx, userCaller, func() error {
			found, err := e.store.SetWorkerQuiet(ctx, c)
			known = known || found
			return err
		})
	}
	switch {
	case err != nil:
		return fmt.Errorf("change worker %q: %w", id, err)
	case !known:
		return fmt.Errorf("change worker %q: %w: Engine.Workers returns the IDs of the workers", id, ErrNotFound)
	}
	e.logOperatorChange(telemetry.KeyWorker, id, c.OperatorChange())
	return nil
}
