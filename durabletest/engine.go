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

// Engine is an engine that executes workflows, and the test's hold on it. Its embedded
// Engine is what Workflow.Start and Call take.
type Engine struct {
	*durable.Engine
	t        testing.TB
	probe    *probe
	driver   *clockDriver // nil: real time
	settings *settings
	stop     func()
}

// New makes an engine that executes the workflows, on a temporary SQLite file, in a time of
// its own (see the package's comment), and runs it until the test ends.
func New(t testing.TB, workflows ...durable.Definition) *Engine {
	t.Helper()
	return NewWithOptions(t, workflows)
}

// NewWithOptions is New with options.
func NewWithOptions(t testing.TB, workflows []durable.Definition, opts ...Option) *Engine {
	t.Helper()
	set := newSettings(t, "NewWithOptions", opts)
	s := set.store
	if s == nil {
		s = temporaryStore(t)
	}
	log := &recorder{replacements: set.replacements}
	t.Cleanup(func() { log.failUnused(t) }) // when the engine has stopped
	var p *clockDriver
	if !set.realTime {
		p = newClockDriver(t, newClock(set.startTime))
		t.Cleanup(p.close)
	}
	return startEngine(t, s, p, log, nil, set, workflows)
}

// StartAnother is a second engine on the same database and in the same time, such as a worker
// with other workflows, or with newer code. It runs until the test ends, or Stop.
func (e *Engine) StartAnother(workflows ...durable.Definition) *Engine {
	e.t.Helper()
	return startEngine(e.t, e.probe.Beneath(), e.driver, e.probe.recorder, nil, e.settings, workflows)
}

// Stop ends the engine as the end of Run's context does: runs are given back. It is called
// at the test's end.
func (e *Engine) Stop() { e.stop() }

// Store is the database that the engine works on.
func (e *Engine) Store() durable.Store { return e.probe.Beneath() }

// startEngine makes an engine and runs it.
func startEngine(t testing.TB, s store.Store, p *clockDriver, log *recorder, f *process, set *settings, workflows []durable.Definition) *Engine {
	t.Helper()
	n := newProbe(s, nil, log, f)
	cfg := durable.Config{Workflows: append(workflows, set.workflows...), Grace: -1}
	if p != nil {
		n.clock = p.clock
		cfg.Lease = leaseDuration
	}
	if f != nil {
		cfg.Patience = 1 // a process that is dead does not wait
	}
	for _, change := range set.configure {
		change(&cfg)
	}
	if log.replay != nil {
		cfg.StepConcurrency = 0 // its steps last until the end
	}
	made, err := durable.New(n, cfg)
	if err != nil {
		t.Fatal(err)
	}
	e := &Engine{Engine: made, t: t, probe: n, driver: p, settings: set}
	if p != nil {
		p.add(n)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- made.Run(ctx) }()
	e.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil && !f.dead() {
			t.Errorf("durabletest: run the engine: %v", err)
		}
		if p != nil {
			p.remove(n)
		}
	})
	t.Cleanup(e.stop)
	if len(cfg.Workflows) > 0 {
		select {
		case <-n.firstClaim:
		case err := <-ended:
			ended <- err
			if err != nil && !f.dead() {
				t.Fatalf("durabletest: run the engine: %v", err)
			}
		}
	}
	return e
}

// temporaryStore is a store on a file that lives as long as the test.
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

// Now is the engine's time.
func (e *Engine) Now() time.Time {
	e.t.Helper()
	return e.testClock("Now").clock.Now()
}

// Advance lets d pass: everything that is due by then happens, in order and each at its own
// time. It returns when all rests again. With zero it just waits for that. It is for the
// test's own goroutine.
func (e *Engine) Advance(d time.Duration) {
	e.t.Helper()
	p := e.testClock("Advance")
	if d < 0 {
		e.t.Fatalf("durabletest: Advance by %v: time does not go back", d)
	}
	if err := p.waitForTime(p.clock.Now().Add(d), nil); err != nil {
		e.t.Fatal(err)
	}
}

// AdvanceUntil lets time pass as Advance does, until cond holds, which is asked whenever all
// rests. It ends the test if nothing more is due before that. It is for the test's own
// goroutine.
func (e *Engine) AdvanceUntil(cond func() bool) {
	e.t.Helper()
	if err := e.testClock("AdvanceUntil").waitForTime(time.Time{}, cond); err != nil {
		e.t.Fatal(err)
	}
}

// FreezeClock lets time pass in Advance and Until only, until Thaw.
func (e *Engine) FreezeClock() {
	e.t.Helper()
	e.testClock("FreezeClock").setFrozen(true)
}

// UnfreezeClock ends Freeze.
func (e *Engine) UnfreezeClock() {
	e.t.Helper()
	e.testClock("UnfreezeClock").setFrozen(false)
}

func (e *Engine) testClock(what string) *clockDriver {
	e.t.Helper()
	if e.driver == nil {
		e.t.Fatalf("durabletest: %s of an engine in real time: leave out the option RealTime", what)
	}
	return e.driver
}
