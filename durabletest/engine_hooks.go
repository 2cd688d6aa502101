package durabletest

import (
	"context"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// engineHooks connects one engine to the test. It implements engine.HookedStore and engine.TestHooks.
type engineHooks struct {
	*observedStore
	clock    *manualClock // nil: real time
	recorder *testRecorder
	engine   atomic.Pointer[engine.Engine]
}

var (
	_ engine.HookedStore = (*engineHooks)(nil)
	_ engine.TestHooks   = (*engineHooks)(nil)
)

func newEngineHooks(s store.Store, c *manualClock, log *testRecorder, f *simulatedProcess) *engineHooks {
	return &engineHooks{observedStore: newObservedStore(s, f), clock: c, recorder: log}
}

// Hooks implements engine.HookedStore.
func (n *engineHooks) Hooks() engine.TestHooks { return n }

// AttachEngine implements engine.TestHooks.
func (n *engineHooks) AttachEngine(e *engine.Engine) { n.engine.Store(e) }

// Clock implements engine.TestHooks.
func (n *engineHooks) Clock() engine.ManualClock {
	if n.clock == nil {
		return nil
	}
	return n.clock
}

// OnCall implements engine.TestHooks.
func (n *engineHooks) OnCall(c engine.HookedCall) {
	if !n.process.isDead() {
		n.recorder.onCall(c)
	}
}

// ExecuteAttempt implements engine.TestHooks.
func (n *engineHooks) ExecuteAttempt(ctx context.Context, c engine.HookedCall, next func() (engine.AttemptOutput, *record.Failure)) (engine.AttemptOutput, *record.Failure) {
	out, failure, again := n.process.executeAttempt(c, func() (engine.AttemptOutput, *record.Failure) {
		n.recorder.onAttempt(c)
		return n.recorder.executeAttemptOrReplacement(ctx, c, next)
	})
	if again {
		n.recorder.onRerun(c)
	}
	return out, failure
}

// OutputToCommit implements engine.TestHooks.
func (n *engineHooks) OutputToCommit(c engine.HookedCall, output []byte) []byte {
	return n.recorder.ownOrFixedOutput(c, output)
}

// describeRunsInMemory returns what the engine is doing. Busy is empty if the engine does nothing until a time comes or something
// from outside happens.
func (n *engineHooks) describeRunsInMemory() engine.LoadedRunsActivity {
	e := n.engine.Load()
	if e == nil {
		return engine.LoadedRunsActivity{}
	}
	flying := n.activeCalls.Load() > 0 // read before LoadedRunsActivity: a call that ends in between leaves work in memory
	rest := e.LoadedRunsActivity()
	if rest.BusyRun == "" && flying {
		rest.BusyRun = "a call of the database"
	}
	return rest
}
