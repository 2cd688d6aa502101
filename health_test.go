package durable_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// Ready follows the life of Run, and Live reports only what a restart mends.
func TestHealth(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })
		e := engineOn(t, s, w)
		health := durable.Health(e)
		notReady := func(reason string) {
			t.Helper()
			if err := health.Ready(within(t)); !errors.Is(err, durable.ErrNotReady) || !strings.Contains(err.Error(), reason) {
				t.Errorf("Ready returns %v, not %q", err, reason)
			}
			if err := health.Live(within(t)); err != nil {
				t.Errorf("Live returns %v", err)
			}
		}
		if err := durable.Health(engineOn(t, s)).Ready(within(t)); err != nil {
			t.Errorf("a client is not ready: %v", err)
		}
		notReady("Engine.Run was not called")
		stop := running(t, e)
		for ctx := within(t); ; runtime.Gosched() {
			err := health.Ready(ctx)
			if err == nil {
				break
			}
			if ctx.Err() != nil {
				t.Fatalf("the worker never becomes ready: %v", err)
			}
		}
		stop()
		notReady("its context has ended")

		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(within(t))
		defer cancel()
		gone, stopGone := context.WithCancel(ctx)
		stopGone()
		if err := health.Ready(gone); !errors.Is(err, durable.ErrNotReady) {
			t.Errorf("a database that does not reply in time gives %v", err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		notReady("the database does not reply")
		go func() { ended <- e.Run(ctx) }()
		if err := <-ended; !errors.Is(err, durable.ErrClosed) {
			t.Fatalf("Run on a closed store returns %v", err)
		}
		if err := health.Live(ctx); !errors.Is(err, durable.ErrNotReady) || !errors.Is(err, durable.ErrClosed) {
			t.Errorf("after Run had to stop, Live returns %v", err)
		}
	})
	for _, h := range []*durable.HealthChecks{durable.Health(nil), durable.Health(new(durable.Engine))} {
		if err := errors.Join(h.Ready(t.Context()), h.Live(t.Context())); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("without an engine: %v", err)
		}
	}
}
