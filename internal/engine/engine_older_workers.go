package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// OlderWorkerError is returned by a call that sets a limit, a queue or a schedule while a live worker has a version of durable that
// does not support limits, queues or schedules. OlderWorkerError unwraps to store.ErrSchema.
type OlderWorkerError struct {
	Worker         store.Worker
	IgnoredFeature string // what the worker ignores: limits, queues, schedules or repairs
}

func (e *OlderWorkerError) Error() string {
	return fmt.Sprintf("durable: worker %q (%s) lives, whose version of durable ignores %s: stop that worker, or update durable in its program, and try again",
		e.Worker.Name, e.Worker.ID, e.IgnoredFeature)
}

// Unwrap returns store.ErrSchema.
func (e *OlderWorkerError) Unwrap() error { return store.ErrSchema }

// checkNoOlderWorkers returns an *OlderWorkerError while a worker lives that ignores limits, queues and schedules. A worker whose
// process is stopped for longer than its lease counts as dead. If the process continues, nothing prevents it from claiming runs
// without regard to limits and queues.
func (e *Engine) checkNoOlderWorkers(ctx context.Context, by writeOptions, ignored string) error {
	if err := e.CheckOutsideTx(ctx, "a change of "+ignored); err != nil {
		return err
	}
	return e.checkForOlderWorker(ctx, by, ignored, store.FirstSchemaWithQueues)
}

// checkNoWorkersBelowSchema does the same as checkNoOlderWorkers for a feature that workers ignore if their code was written for a
// schema before the given version.
func (e *Engine) checkNoWorkersBelowSchema(ctx context.Context, ignored string, version int16) error {
	if err := e.CheckOutsideTx(ctx, "a change of "+ignored); err != nil {
		return err
	}
	return e.checkForOlderWorker(ctx, userCaller, ignored, version)
}

func (e *Engine) checkForOlderWorker(ctx context.Context, by writeOptions, ignored string, version int16) error {
	var live []store.Worker
	err := e.readBeforeWrite(ctx, by, func() (err error) {
		live, err = e.liveWorkers(ctx)
		return err
	})
	for i := range live {
		if live[i].SchemaVersion < version {
			return &OlderWorkerError{Worker: live[i], IgnoredFeature: ignored}
		}
	}
	return err
}

// olderWorkersPoll is how long an engine assumes that no older worker lives before it checks again. The check is for runs that begin
// their next generations by themselves.
const olderWorkersPoll = time.Second

// holdIfOlderWorkersLive holds the run, which is about to begin its next generation by itself, while a worker lives that ignores generations,
// because such a worker would use the idempotency keys of the previous generation if it claimed the run. It reports whether the run was
// suspended.
func (r *run) holdIfOlderWorkersLive(what string) bool {
	if at := r.e.noOlderWorkerAt.Load(); at != nil && time.Since(*at) < olderWorkersPoll {
		return false
	}
	now := time.Now()
	err := r.e.checkForOlderWorker(r.writeCtx, newWriteOptions(r.ownedCtx.Done()), featureRepairs, store.FirstSchemaWithRepairs)
	var older *OlderWorkerError
	switch {
	case errors.As(err, &older):
		r.suspend(suspensionSpec{cause: ErrHeld, status: store.Pending, heldReason: shortenReason(what + ": " + older.Error()), olderWorker: true})
	case err != nil:
		r.suspendAfterFailedWrite(what, "", err)
	default:
		r.e.noOlderWorkerAt.Store(&now)
		return false
	}
	return true
}

// liveWorkers returns the workers that have sent a heartbeat in time, including workers that are draining.
func (e *Engine) liveWorkers(ctx context.Context) ([]store.Worker, error) {
	workers, err := e.store.Workers(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the workers: %w", err)
	}
	now, err := e.Now(ctx)
	live := workers[:0]
	for i := range workers {
		if workers[i].DeadAt.After(now) {
			live = append(live, workers[i])
		}
	}
	return live, err
}
