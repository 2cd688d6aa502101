package durable

import (
	"context"
	"errors"
	"fmt"
)

// Call starts the run, or resumes the one with the same ID, in this process, and waits
// for its result: a script that is killed and run again carries on. It needs no Run: for
// as long as it waits, a worker is active here, which also takes other due runs of this
// engine's workflows. It waits while the run is paused. When ctx ends, or the run, it drains
// as Run does: that can take Config.Grace and a second.
//
// Beside [Engine.Run], Call uses the worker of Run. When the context of Run ends, that worker stops, and Call waits
// until another process has executed the run, or ctx ends. A Call that begins after that waits in the same way, until
// Run is called again; the log has a warning. In a step, Call starts no worker.
//
// ErrNotRegistered is returned if e does not execute the workflow; other errors as for Start and Result.
func (w *Workflow[I, O]) Call(ctx context.Context, e *Engine, in I, opts ...StartOption) (O, error) {
	var zero O
	if err := w.usable(); err != nil {
		return zero, err
	}
	if err := e.writes(ctx, "a call", "Ctx.Child"); err != nil {
		return zero, fmt.Errorf("call workflow %q: %w", w.name, err)
	}
	if !e.inner.Executes(w.name) {
		return zero, fmt.Errorf("%w: %q: add it to Config.Workflows of this engine, or use Start and let another process execute it", ErrNotRegistered, w.name)
	}
	if err := e.inner.Outside(ctx, "a call"); err != nil {
		return zero, fmt.Errorf("call workflow %q: %w", w.name, err)
	}
	executed, failed, detach := e.inner.Attach(ctx)
	if !executed {
		e.inner.Unattended(w.name)
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

// errNoWorker ends the wait of a Call whose worker could not begin, or had to stop.
var errNoWorker = errors.New("durable: the worker of this process could not begin, or had to stop")
