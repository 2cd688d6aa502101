package durabletest

import (
	"context"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/sqlite"
)

// Engine is an engine that executes the workflows of a test. Pass its embedded Engine to Workflow.Start and
// Workflow.Call.
type Engine struct {
	*durable.Engine
	t        testing.TB
	hooks    *engineHooks
	driver   *clockDriver // nil if the engine uses real time
	settings *testSettings
	stop     func()
}

// New starts an engine that executes the workflows on a temporary SQLite file, with a clock of its own (see the package
// comment). The engine runs until the test ends.
func New(t testing.TB, workflows ...durable.Definition) *Engine {
	t.Helper()
	return NewWithOptions(t, workflows)
}

// NewWithOptions starts an engine as [New] does, with the given options.
func NewWithOptions(t testing.TB, workflows []durable.Definition, opts ...Option) *Engine {
	t.Helper()
	set := newSettings(t, "NewWithOptions", opts)
	s := set.store
	if s == nil {
		s = temporaryStore(t)
	}
	log := &testRecorder{replacements: set.replacements}
	t.Cleanup(func() { log.failOnUnusedReplacements(t) }) // registered first, so that it is called after the engine has stopped
	var p *clockDriver
	if !set.usesRealTime {
		p = newClockDriver(t, newClock(set.startTime))
		t.Cleanup(p.close)
	}
	return startEngine(t, s, p, log, nil, set, workflows)
}

// StartAnother starts a second engine on the same database and with the same clock, such as a worker with other workflows or
// with newer code. The second engine runs until the test ends, or until [Engine.Stop]. Engines report their versions
// (durable.Config.Version) in real time. If the test moves the clock by more than the grace period of durable.Pinned, or by
// more than a minute for other workflows, an engine can therefore execute runs of another version although an engine of that
// version still lives.
func (e *Engine) StartAnother(workflows ...durable.Definition) *Engine {
	e.t.Helper()
	return startEngine(e.t, e.hooks.WrappedStore(), e.driver, e.hooks.recorder, nil, e.settings, workflows)
}

// Stop stops the engine and releases its runs, in the same way as when the context of Run ends. Stop gives running steps no
// time to finish: it ends their contexts at once, because Config.Grace of the engine is negative unless [Configure] sets it.
// The end of the test also stops the engine.
func (e *Engine) Stop() { e.stop() }

// Store returns the store that the engine uses.
func (e *Engine) Store() durable.Store { return e.hooks.WrappedStore() }

// startEngine creates an engine and runs it.
func startEngine(t testing.TB, s store.Store, p *clockDriver, log *testRecorder, f *simulatedProcess, set *testSettings, workflows []durable.Definition) *Engine {
	t.Helper()
	n := newEngineHooks(s, nil, log, f)
	cfg := durable.Config{Workflows: append(workflows, set.workflows...), Grace: -1}
	if p != nil {
		n.clock = p.clock
		cfg.Lease = leaseDuration
	}
	if f != nil {
		cfg.Patience = 1 // a dead process does not retry
	}
	for _, change := range set.configFuncs {
		change(&cfg)
	}
	made, err := durable.New(n, cfg)
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Engine: made, t: t, hooks: n, driver: p, settings: set}
	if p != nil {
		p.addEngineHooks(n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !f.isDead() {
			t.Errorf("durabletest: run the engine: %v", err)
		}
		if p != nil {
			p.removeEngineHooks(n)
		}
	})
	t.Cleanup(e.stop)
	if len(cfg.Workflows) > 0 {
		select {
		case <-n.firstClaim:
		case err := <-ended:
			ended <- err
			if err != nil && !f.isDead() {
				t.Fatalf("durabletest: run the engine: %v", err)
			}
		}
	}
	return e
}

// temporaryStore opens a store on a file that is removed at the end of the test.
func temporaryStore(t testing.TB) store.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "durable.db"), sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("durabletest: close the temporary database: %v", err)
		}
	})
	return s
}

// Now returns the time of the engine's clock.
func (e *Engine) Now() time.Time {
	e.t.Helper()
	return e.requireClockDriver("Now").clock.Now()
}

// Advance moves the clock forward by d. While Advance moves the clock, everything that becomes due happens in order, each at
// its own time. Advance returns when all runs wait again. With a d of zero, Advance only waits until all runs wait. Call
// Advance from the test's own goroutine.
func (e *Engine) Advance(d time.Duration) {
	e.t.Helper()
	p := e.requireClockDriver("Advance")
	if d < 0 {
		e.t.Fatalf("durabletest: Advance by %v: the clock cannot go back: pass zero or more", d)
	}
	if err := p.waitForTime(p.clock.Now().Add(d), nil); err != nil {
		e.t.Fatal(err)
	}
}

// AdvanceUntil moves the clock forward until cond returns true. AdvanceUntil calls cond whenever all runs wait. AdvanceUntil
// ends the test if nothing is due any more and cond has not returned true. Call AdvanceUntil from the test's own goroutine.
func (e *Engine) AdvanceUntil(cond func() bool) {
	e.t.Helper()
	if err := e.requireClockDriver("AdvanceUntil").waitForTime(time.Time{}, cond); err != nil {
		e.t.Fatal(err)
	}
}

// FreezeClock lets the clock move only in [Engine.Advance] and [Engine.AdvanceUntil], and not while the test waits for results,
// until [Engine.UnfreezeClock] is called.
func (e *Engine) FreezeClock() {
	e.t.Helper()
	e.requireClockDriver("FreezeClock").setFrozen(true)
}

// UnfreezeClock ends the effect of [Engine.FreezeClock].
func (e *Engine) UnfreezeClock() {
	e.t.Helper()
	e.requireClockDriver("UnfreezeClock").setFrozen(false)
}

// requireClockDriver returns the driver of the engine's clock. It ends the test if the engine uses real time.
func (e *Engine) requireClockDriver(what string) *clockDriver {
	e.t.Helper()
	if e.driver == nil {
		e.t.Fatalf("durabletest: %s needs the test clock, and this engine uses real time: leave out the option RealTime", what)
	}
	return e.driver
}
