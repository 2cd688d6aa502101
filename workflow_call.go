package durable

import (
	"context"
	"errors"
	"fmt"
)

// Call starts a run, or continues the run with the same ID, in this process, and returns the result of the run. With Call, a
// script that was killed can be executed again and then continues its run. Call does not need [Engine.Run]: while Call waits, a
// worker is active in this process, which also executes other due runs of this engine's workflows. While the run is paused,
// Call continues to wait. When the run or ctx ends, the worker of Call drains as the worker of Run does, which can take
// Config.Grace and a second.
//
// While Engine.Run is active, Call starts no worker and uses the worker of Run. When the context of Run ends, the worker of Run
// stops, and Call waits until another process has executed the run, or ctx ends. A Call that begins after Engine.Run has
// stopped logs a warning, and waits until another process has executed the run, Engine.Run is called again, or ctx ends. A Call
// inside the function of a step starts no worker.
//
// Call returns [ErrNotRegistered] if e does not execute the workflow, and the errors of [Workflow.Start] and [Run.Result].
func (w *Workflow[I, O]) Call(ctx context.Context, e *Engine, in I, opts ...StartOption) (O, error) {
	var zero O
	if err := w.checkUsable(); err != nil {
		return zero, err
	}
	if err := e.checkUsableOutsideWorkflow(ctx, "a call", "Ctx.Child"); err != nil {
		return zero, fmt.Errorf("call workflow %q: %w", w.name, err)
	}
	if !e.inner.HasWorkflow(w.name) {
		return zero, fmt.Errorf("%w: %q: add it to Config.Workflows of this engine, or use Start and let another process execute it", ErrNotRegistered, w.name)
	}
	if err := e.inner.CheckOutsideTx(ctx, "a call"); err != nil {
		return zero, fmt.Errorf("call workflow %q: %w", w.name, err)
	}
	executed, failed, detach := e.inner.KeepWorkerActive(ctx)
	if !executed {
		e.inner.WarnCallWithoutLocalWorker(w.name)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		select {
		case <-failed:
			cancel(errNoWorker)
		case <-ctx.Done():
		}
	}()
	run, err := w.Start(ctx, e, in, opts...)
	var out O
	if err == nil {
		out, err = run.Result(ctx)
	}
	cancel(nil)
	<-watching
	switch worker := detach(); {
	case worker == nil:
		return out, err
	case errors.Is(err, errNoWorker):
		return out, fmt.Errorf("call workflow %q: %w", w.name, worker)
	default:
		return out, errors.Join(err, worker)
	}
}

// errNoWorker is the cause of the end of the context of a Call whose worker could not begin, or had to stop.
var errNoWorker = errors.New("durable: the worker of this process could not begin, or had to stop")
