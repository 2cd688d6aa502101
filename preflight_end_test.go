package durable_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A preflight and a replay of an export end with their contexts, also while a workflow function blocks, and return the context's error and its cause.
func TestPreflightEndsWithItsContext(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		entered, open := make(chan struct{}, 1), make(chan struct{})
		t.Cleanup(func() { close(open) })
		w := durable.Define("blocks", func(*durable.Ctx, int) (int, error) {
			entered <- struct{}{}
			<-open
			return 0, nil
		})
		e := engineOn(t, s, w)
		read(w.Start(within(t), e, 1, durable.ID("run")))(t)
		document := read(e.Export(within(t), "run"))(t)
		for name, call := range map[string]func(context.Context) error{
			"Preflight":    func(ctx context.Context) error { _, err := e.Preflight(ctx, durable.Filter{}); return err },
			"ReplayExport": func(ctx context.Context) error { _, err := e.ReplayExport(ctx, document); return err },
		} {
			ctx, cancel := context.WithCancelCause(within(t))
			ended := make(chan error, 1)
			go func() { ended <- call(ctx) }()
			<-entered
			cancelled := time.Now()
			cancel(errDeclined)
			if err := <-ended; !errors.Is(err, context.Canceled) || !errors.Is(err, errDeclined) {
				t.Errorf("%s: %v, want context.Canceled and its cause", name, err)
			}
			if d := time.Since(cancelled); d > 5*time.Second { // the function may take 10 s
				t.Errorf("%s returned %v after its context ended", name, d)
			}
		}
	})
}

// A run whose function calls runtime.Goexit would fail, as in a worker, and does not fit.
func TestPreflightReportsGoexitAsFailing(t *testing.T) {
	s := openStore(t)
	w := durable.Define("exits", func(*durable.Ctx, int) (int, error) { runtime.Goexit(); return 0, nil })
	e := engineOn(t, s, w)
	run := read(w.Start(within(t), e, 1, durable.ID("run")))(t)
	got := read(e.Preflight(within(t), durable.Filter{}))(t)
	if got.Failing != 1 || got.Fit != 0 {
		t.Fatalf("got %+v", got)
	}
	running(t, e)
	var failed *durable.RunError
	if _, err := run.Result(within(t)); !errors.As(err, &failed) || failed.Message != got.Runs[0].Err {
		t.Errorf("the preflight reports %q, and the run ended with %v", got.Runs[0].Err, err)
	}
	if replayed := read(e.ReplayExport(within(t), read(e.Export(within(t), "run"))(t)))(t); replayed.Diverged {
		t.Errorf("the replay of the export: %+v", replayed)
	}
}
