package durable

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
)

// QuietWorker makes the worker with the given [WorkerInfo.ID] quiet: it claims no further runs until [Engine.ResumeWorker], for
// example because its machine is to be stopped or examined. The worker learns of it with its next heartbeat, so within a third of
// its Config.Lease.
//
//   - Runs in its memory continue, also those that it has prefetched. A run that leaves memory, for example to wait, is continued by
//     other workers, and so are runs that its process starts and the next generation of a run that calls [Ctx.ContinueAsNew].
//   - It still fires schedules, decides whose turn it is in queues, and takes over from dead workers.
//   - Runs that only quiet workers execute wait, and [RunInfo.NoWorker] is true for them.
//   - A process that is restarted is another worker, which is not quiet.
//
// QuietWorker does nothing if the worker is quiet. The options are [Reason] and [Actor]; they are in [WorkerInfo.LastChange] and in
// the logs of this process and of the worker. It returns [ErrNotFound] if there is no such worker.
func (e *Engine) QuietWorker(ctx context.Context, id string, opts ...ControlOption) error {
	return e.changeWorker(ctx, "quiet", id, opts, false)
}

// ResumeWorker lets a quiet worker claim runs again, from its next heartbeat on. It does nothing if the worker is not quiet. The
// options are [Reason] and [Actor]. It returns [ErrNotFound] if there is no such worker.
func (e *Engine) ResumeWorker(ctx context.Context, id string, opts ...ControlOption) error {
	return e.changeWorker(ctx, "resume", id, opts, true)
}

func (e *Engine) changeWorker(ctx context.Context, verb, id string, opts []ControlOption, resume bool) error {
	err := e.checkMayWrite(ctx, "a change of a worker", "a step")
	var o controlOptions
	if err == nil {
		o, err = applyReasonOptions("a change of a worker", opts)
	}
	if err == nil {
		err = e.inner.CheckOutsideTx(ctx, "a change of a worker")
	}
	if err != nil {
		return fmt.Errorf("%s worker %.100q: %w", verb, id, err)
	}
	return e.inner.QuietWorker(ctx, id, store.QuietWorkerRequest{Resume: resume, Actor: o.actor, Reason: o.reason})
}
