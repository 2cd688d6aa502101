package main

import (
	"context"
	"time"

	"github.com/seed8ec063be/durable"
)

// worker holds an engine that runs in this process.
type worker struct {
	store  durable.Store
	engine *durable.Engine
	stop   context.CancelFunc
	ended  chan error
}

// openWorker opens the store and runs an engine on it.
func (at *site) openWorker(ctx context.Context, cfg durable.Config) (*worker, error) {
	store, err := at.open(ctx)
	if err != nil {
		return nil, err
	}
	return startWorker(ctx, store, cfg)
}

// startWorker runs an engine on the store, and returns after the engine's first heartbeat.
func startWorker(ctx context.Context, store durable.Store, cfg durable.Config) (*worker, error) {
	engine, err := durable.New(store, cfg)
	if err != nil {
		_ = store.Close() // the first error is returned
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	w := &worker{store: store, engine: engine, stop: stop, ended: make(chan error, 1)}
	go func() { w.ended <- engine.Run(ctx) }()
	for engine.Stats().Heartbeats == 0 && len(w.ended) == 0 {
		if !sleep(ctx, time.Millisecond) {
			break
		}
	}
	return w, nil
}

// dismiss drains and stops the engine, and closes the store.
func (w *worker) dismiss() error {
	w.stop()
	err := <-w.ended
	if closed := w.store.Close(); err == nil {
		err = closed
	}
	return err
}

// sleep waits for d, and reports false if ctx ends first.
func sleep(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}
