package durable_test

import (
	"context"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

func TestMain(m *testing.M) {
	os.Exit(leaktest.Main(pgtest.Main(m)))
}

// openStore is a store on a temporary file, closed when the test ends, which must leave no
// goroutine behind. Not for tests that run beside others: see onStores.
func openStore(t testing.TB) durable.Store {
	t.Helper()
	leaktest.Test(t)
	return openFile(t)
}

func openFile(t testing.TB) durable.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "durable.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// engineOn is an engine that executes the workflows; it does not run yet.
func engineOn(t testing.TB, s durable.Store, workflows ...durable.Definition) *durable.Engine {
	t.Helper()
	return engineWith(t, s, durable.Config{Workflows: workflows})
}

func engineWith(t testing.TB, s durable.Store, cfg durable.Config) *durable.Engine {
	t.Helper()
	e, err := durable.New(s, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// running runs the engine until the test ends, or stop is called.
func running(t testing.TB, e *durable.Engine) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- e.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// within bounds a test that would hang.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// call executes one workflow function on a fresh database.
func call[I, O any](t *testing.T, in I, fn func(*durable.Ctx, I) (O, error)) (O, error) {
	t.Helper()
	w := durable.Define("test", fn)
	return w.Call(within(t), engineOn(t, openStore(t), w), in, durable.ID("run"))
}

// onStores runs a test on a fresh database of each kind.
func onStores(t *testing.T, test func(t *testing.T, s durable.Store)) {
	leaktest.Test(t) // of both
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, openFile(t))
	})
	t.Run("postgres", func(t *testing.T) {
		t.Parallel()
		s, err := postgres.Open(within(t), pgtest.URL(t), postgres.Schema(pgtest.Schema(t)))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
		test(t, s)
	})
}

// gate is a step that can be held.
type gate struct{ entered, open chan struct{} }

func newGate() gate { return gate{make(chan struct{}, 100), make(chan struct{})} }

func (g gate) pass(ctx context.Context) error {
	g.entered <- struct{}{}
	select {
	case <-g.open:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// must is a verb's effect.
func must(t *testing.T) func(durable.Effect, error) durable.Effect {
	return func(e durable.Effect, err error) durable.Effect {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
}

func historyOf(t testing.TB, e *durable.Engine, id string) []durable.Checkpoint {
	t.Helper()
	history, err := e.History(within(t), id)
	if err != nil {
		t.Fatal(err)
	}
	return history
}

// read is what must be answered: read(e.Get(ctx, id))(t).
func read[T any](v T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func dbNow(t testing.TB, s durable.Store) time.Time {
	t.Helper()
	return read(s.Now(within(t)))(t)
}

// waitFor waits for what another goroutine brings about.
func waitFor(t testing.TB, done func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for ctx := within(t); !done(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatal("it did not come")
		}
	}
}
