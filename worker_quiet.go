package durable

import (
	"context"
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
)

// QuietWorker makes the worker with the given [WorkerInfo.ID] quiet: the worker claims no further runs until
// [Engine.ResumeWorker]. Use QuietWorker, for example, before the worker's machine is stopped or examined. The worker becomes
// quiet with its next heartbeat, within a third of its Config.Lease.
//
//   - Runs in the memory of a quiet worker continue, including runs that the worker has prefetched. Other workers continue a
//     run that leaves memory, for example to wait. Other workers also execute runs that the process starts, and the next
//     generation of a run that calls [Ctx.ContinueAsNew].
//   - A quiet worker still fires schedules, decides whose turn it is in queues, and releases the runs of dead workers.
//   - A due run that only quiet workers could execute waits, and its [RunInfo.NoWorker] is true.
//   - A restarted process is another worker, which is not quiet.
//
// QuietWorker does nothing if the worker is quiet. The options of QuietWorker are [Reason] and [Actor]. [WorkerInfo.LastChange]
// and the logs of this process and of the worker contain the reason and the actor. QuietWorker returns [ErrNotFound] if there
// is no such worker.
func (e *Engine) QuietWorker(ctx context.Context, id string, opts ...ControlOption) error {
	return e.quietOrResumeWorker(ctx, "quiet", id, opts, false)
}

// ResumeWorker lets a quiet worker claim runs again, from its next heartbeat on. ResumeWorker does nothing if the worker is not
// quiet. The options of ResumeWorker are [Reason] and [Actor]. ResumeWorker returns [ErrNotFound] if there is no such worker.
func (e *Engine) ResumeWorker(ctx context.Context, id string, opts ...ControlOption) error {
	return e.quietOrResumeWorker(ctx, "resume", id, opts, true)
}

func (e *Engine) quietOrResumeWorker(ctx context.Context, verb, id string, opts []ControlOption, resume bool) error {
	err := e.checkUsableOutsideWorkflow(ctx, "a change of a worker", "a step")
	var o controlOptions
	if err == nil {
		o, err = applyActorReasonOptions("a change of a worker", opts)
	}
	if err == nil {
		err = e.inner.CheckOutsideTx(ctx, "a change of a worker")
	}
	if err != nil {
		return fmt.Errorf("%s worker %.100q: %w", verb, id, err)
	}
	return e.inner.QuietWorker(ctx, id, store.SetWorkerQuietRequest{Resume: resume, Actor: o.actor, Reason: o.reason})
}
