package durabletest

import (
	"context"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/record"
	"github.com/seed8ec063be/durable/internal/store"
)

// engineProbe connects one engine to the test. It implements engine.Probed and engine.Probe.
type engineProbe struct {
	*observedStore
	clock    *manualClock // nil: real time
	recorder *testRecorder
	engine   atomic.Pointer[engine.Engine]
}

var (
	_ engine.ProbedStore = (*engineProbe)(nil)
	_ engine.TestProbe   = (*engineProbe)(nil)
)

func newProbe(s store.Store, c *manualClock, log *testRecorder, f *simulatedProcess) *engineProbe {
	return &engineProbe{observedStore: newObservedStore(s, f), clock: c, recorder: log}
}

// Probe implements engine.ProbedStore.
func (n *engineProbe) Probe() engine.TestProbe { return n }

// AttachEngine implements engine.TestProbe.
func (n *engineProbe) AttachEngine(e *engine.Engine) { n.engine.Store(e) }

// Clock implements engine.TestProbe.
func (n *engineProbe) Clock() engine.ManualClock {
	if n.clock == nil {
		return nil
	}
	return n.clock
}

// OnCall implements engine.TestProbe.
func (n *engineProbe) OnCall(c engine.ProbedCall) {
	if !n.process.isDead() {
		n.recorder.onCall(c)
	}
}

// ExecuteAttempt implements engine.TestProbe.
func (n *engineProbe) ExecuteAttempt(ctx context.Context, c engine.ProbedCall, next func() (engine.AttemptOutput, *record.Failure)) (engine.AttemptOutput, *record.Failure) {
	if n.recorder.replay != nil && c.Kind != store.KindPatch {
		return n.recorder.replay.blockAttempt(ctx)
	}
	out, failure, again := n.process.executeAttempt(c, func() (engine.AttemptOutput, *record.Failure) {
		n.recorder.onAttempt(c)
		return n.recorder.executeWithReplacements(ctx, c, next)
	})
	if again {
		n.recorder.onRerun(c)
	}
	return out, failure
}

// OutputToCommit implements engine.TestProbe.
func (n *engineProbe) OutputToCommit(c engine.ProbedCall, output []byte) []byte {
	return n.recorder.outputToCommit(c, output)
}

// describeRunsInMemory returns what the engine is doing. Busy is empty if the engine does nothing until a time comes or something
// from outside happens.
func (n *engineProbe) describeRunsInMemory() engine.LoadedRunsActivity {
	e := n.engine.Load()
	if e == nil {
		return engine.LoadedRunsActivity{}
	}
	flying := n.activeCalls.Load() > 0 // read before Rest: a call that ends in between leaves work in memory
	rest := e.LoadedRunsActivity()
	if rest.BusyRun == "" && flying {
		rest.BusyRun = "a call of the database"
	}
	return rest
}
