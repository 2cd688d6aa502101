package engine

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/telemetry"
	"github.com/seed8ec063be/durable/internal/wakeup"
)

// DeclaredQueue is a queue that the code of this process declares.
type DeclaredQueue struct {
	Name     string
	Settings store.QueueSettings
}

// SetQueue sets the settings of a queue for an operator. The settings of an operator apply instead of the settings that code declares.
func (e *Engine) SetQueue(ctx context.Context, c store.QueueChangeRequest) error {
	err := e.checkNoOlderWorkers(ctx, userCaller, "queues")
	if err == nil {
		c.Now, err = e.NowBeforeWrite(ctx)
	}
	if err != nil {
		return fmt.Errorf("set queue %q: %w", c.Name, err)
	}
	err = e.commitInSeparateTx(ctx, userCaller, func() error { return e.store.ChangeQueue(ctx, c) })
	e.queueRows.Invalidate()
	if err != nil {
		return fmt.Errorf("set queue %q: %w", c.Name, err)
	}
	e.worker().wakeLoops()
	e.logOperatorChange(telemetry.KeyQueue, c.Name, c.OperatorChange())
	return nil
}

// logOperatorChange logs what an operator has done. The argument key is the log key for the name of what was changed, such as
// telemetry.KeyQueue.
func (e *Engine) logOperatorChange(key, name string, c store.OperatorChange) {
	e.telemetry.Log.Info("an operator's call for a "+key+" took effect", key, name, telemetry.KeyVerb, c.Verb, telemetry.KeyActor, c.By, telemetry.KeyReason, c.Reason)
}

// PauseQueue pauses a queue, or resumes it if p.Resume is set. PauseQueue returns ErrNotFound if the queue does not exist.
func (e *Engine) PauseQueue(ctx context.Context, p store.QueuePauseRequest) error {
	now, err := e.NowBeforeWrite(ctx)
	if err != nil {
		return err
	}
	p.Now = now
	return e.changeQueue(ctx, p.Name, p.OperatorChange(), func() (bool, error) { return e.store.PauseQueue(ctx, p) })
}

// DeleteQueue marks a queue as deleted. DeleteQueue returns ErrNotFound if the queue does not exist.
func (e *Engine) DeleteQueue(ctx context.Context, c store.DeleteOrResetRequest) (err error) {
	if c.Now, err = e.NowBeforeWrite(ctx); err != nil {
		return err
	}
	return e.changeQueue(ctx, c.Name, c.OperatorChange(store.OperatorDelete), func() (bool, error) { return e.store.DeleteQueue(ctx, c) })
}

// ErrNotDeclared is returned by ResetQueue and ResetLimit if no code declares the queue or the limit.
var ErrNotDeclared = errors.New("no code declares it")

// ResetQueue removes the settings that an operator has given the queue, so that the settings declared in code apply again. ResetQueue
// returns ErrNotFound if the queue does not exist, and ErrNotDeclared if no code declares the queue.
func (e *Engine) ResetQueue(ctx context.Context, c store.DeleteOrResetRequest) (err error) {
	if err := e.checkNoOlderWorkers(ctx, userCaller, "queues"); err != nil {
		return fmt.Errorf("reset queue %q: %w", c.Name, err)
	}
	if c.Now, err = e.NowBeforeWrite(ctx); err != nil {
		return err
	}
	err = e.changeQueue(ctx, c.Name, c.OperatorChange(store.OperatorReset), func() (bool, error) { return e.store.ResetQueueSettings(ctx, c) })
	if !errors.Is(err, ErrNotFound) {
		return err
	}
	if row, found := e.queueRows.RowsReadSince(ctx, time.Now()).ByName[c.Name]; found && !row.Deleted {
		return ErrNotDeclared
	}
	return err
}

func (e *Engine) changeQueue(ctx context.Context, name string, c store.OperatorChange, change func() (bool, error)) error {
	found, verb := false, c.Verb
	err := e.commitInSeparateTx(ctx, userCaller, func() error {
		did, err := change()
		found = found || did
		return err
	})
	e.queueRows.Invalidate()
	switch {
	case err != nil:
		return fmt.Errorf("%s queue %q: %w", verb, name, err)
	case !found:
		return fmt.Errorf("%s queue %q: %w: it has no settings: create them with SetQueue, or start a worker whose Config.QueueSettings declares them", verb, name, ErrNotFound)
	}
	e.worker().wakeLoops()
	e.logOperatorChange(telemetry.KeyQueue, name, c)
	return nil
}

// Queues returns all queues with settings.
func (e *Engine) Queues(ctx context.Context) ([]store.Queue, error) {
	now, err := e.Now(ctx)
	if err != nil {
		return nil, err
	}
	all, err := e.store.Queues(ctx, now)
	if err != nil {
		return nil, fmt.Errorf("read queues: %w", err)
	}
	return all, nil
}

// declareQueuesWithRetry records what this process declares, before it claims runs. It retries until it succeeds, and returns an
// error if ctx ends first. If a live worker ignores queues, declareQueuesWithRetry returns at once with later set: this worker then
// claims runs, and declares its queues when the other worker is gone.
func (w *worker) declareQueuesWithRetry(ctx context.Context) (later bool, err error) {
	for wait := firstClaimRetryDelay; ; wait = min(2*wait, maxClaimRetryDelay) {
		err := w.declareAllQueues(ctx)
		if err == nil || ctx.Err() != nil {
			return false, err
		}
		if _, older := errors.AsType[*OlderWorkerError](err); older {
			w.log.Warn("the queues that this code declares wait until an older worker has stopped", telemetry.KeyError, err)
			return true, nil
		}
		w.stopIfFatal(err)
		w.log.Warn("could not declare a queue; trying again before any run is claimed", telemetry.KeyError, err)
		if !wakeup.SleepCtx(ctx, wait/2+rand.N(wait)) {
			return false, ctx.Err()
		}
	}
}

func (w *worker) declareAllQueues(ctx context.Context) error {
	if len(w.e.cfg.DeclaredQueues) == 0 {
		return nil
	}
	if err := w.e.checkNoOlderWorkers(ctx, workerLoopCaller, "queues"); err != nil {
		return err
	}
	for _, d := range w.e.cfg.DeclaredQueues {
		err := w.e.store.ChangeQueue(ctx, store.QueueChangeRequest{Name: d.Name, Settings: d.Settings, Now: w.e.clock.Now(), Declare: true, Version: w.e.programVersionIfOrdered()})
		if err != nil {
			return fmt.Errorf("declare queue %q: %w", d.Name, err)
		}
	}
	w.e.queueRows.Invalidate()
	return nil
}

// declareQueuesLater declares the queues as soon as no older worker lives.
func (w *worker) declareQueuesLater(ctx context.Context) {
	for wakeup.SleepCtx(ctx, w.e.cfg.Poll) {
		if w.declareAllQueues(ctx) == nil {
			return
		}
	}
}

// queueMetricsInterval is the time between two measurements of the queues, for metrics.
const queueMetricsInterval = 10 * time.Second

// queueMetricsLoop records the metrics of the queues, as long as somebody receives metrics.
func (w *worker) queueMetricsLoop(ctx context.Context) {
	for wakeup.SleepCtx(ctx, queueMetricsInterval) {
		if !w.e.telemetry.MeasuresQueues(ctx) {
			continue
		}
		rows, known := w.e.queueRows.ReadRowsIfStale(ctx)
		if known && len(rows) == 0 {
			continue
		}
		all, err := w.e.Queues(ctx)
		if err != nil {
			continue // the next measurement tries again
		}
		now := w.e.clock.Now()
		for i := range all {
			q := &all[i]
			if i == telemetry.MeasuredQueues {
				break
			}
			var oldest time.Duration
			if !q.OldestDue.IsZero() {
				oldest = max(0, now.Sub(q.OldestDue))
			}
			w.e.telemetry.RecordQueue(ctx, q.Name, q.Executing, q.InProgress, q.Waiting, oldest)
		}
	}
}
