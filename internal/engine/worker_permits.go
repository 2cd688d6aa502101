package engine

import (
	"context"
	"errors"

	"github.com/seed8ec063be/durable/internal/permits"
	"github.com/seed8ec063be/durable/internal/telemetry"
)

// newPermitBatcher returns the Batcher that requests and returns the permits of this worker's steps. serve executes its loop.
func (w *worker) newPermitBatcher() *permits.Batcher {
	return permits.NewBatcher(permits.Config{
		Store: w.e.store, Clock: w.e.clock, LogFailure: w.logFailure, Lease: w.e.cfg.Lease, PollInterval: w.otherWorkers.PollInterval,
		OrderedVersion: w.e.programVersionIfOrdered, WorkerStarted: w.comparableStartTime, WarnOfOlderWorkers: w.warnOfOlderWorkers,
	})
}

// warnOfOlderWorkers logs a warning while a worker lives that ignores limits. The steps of this worker still get permits, because
// waiting would not bound the calls of the older worker.
func (w *worker) warnOfOlderWorkers(ctx context.Context) {
	if older, is := errors.AsType[*OlderWorkerError](w.e.checkNoOlderWorkers(ctx, workerLoopCaller, "limits")); is {
		w.log.Warn("limits do not bound the steps of a worker with an older version of durable", telemetry.KeyError, older)
	}
}
