package durabletest

import (
	"context"
	"sync/atomic"

	"github.com/seed8ec063be/durable/internal/engine"
	"github.com/seed8ec063be/durable/internal/store"
)

// node is one engine as the test holds it: it implements engine.Probed, and engine.Probe.
type node struct {
	*seam
	clock *clock // nil: real time
	log   *record
	inner atomic.Pointer[engine.Engine]
}

var (
	_ engine.Probed = (*node)(nil)
	_ engine.Probe  = (*node)(nil)
)

func newNode(s store.Store, c *clock, log *record, f *fault) *node {
	return &node{seam: newSeam(s, f), clock: c, log: log}
}

// Probe implements engine.Probed.
func (n *node) Probe() engine.Probe { return n }

// Attach implements engine.Probe.
func (n *node) Attach(e *engine.Engine) { n.inner.Store(e) }

// Clock implements engine.Probe.
func (n *node) Clock() engine.Clock {
	if n.clock == nil {
		return nil
	}
	return n.clock
}

// Called implements engine.Probe.
func (n *node) Called(c engine.Call) {
	if !n.fault.dead() {
		n.log.called(c)
	}
}

// Attempt implements engine.Probe.
func (n *node) Attempt(ctx context.Context, c engine.Call, next func() (engine.Output, *engine.Failure)) (engine.Output, *engine.Failure) {
	if n.log.replay != nil {
		return n.log.replay.attempt(ctx)
	}
	out, failure, again := n.fault.attempt(c, func() (engine.Output, *engine.Failure) {
		n.log.attempted(c)
		return n.log.replaced(ctx, c, next)
	})
	if again {
		n.log.again(c)
	}
	return out, failure
}

// Sealing implements engine.Probe.
func (n *node) Sealing(c engine.Call, output []byte) []byte { return n.log.sealing(c, output) }

// rest is what happens here now. Busy is empty if nothing does before a time comes, or
// somebody does something.
func (n *node) rest() engine.Rest {
	e := n.inner.Load()
	if e == nil {
		return engine.Rest{}
	}
	flying := n.flying.Load() > 0 // first: a call that ends meanwhile leaves something in memory
	rest := e.Rest()
	if rest.Busy == "" && flying {
		rest.Busy = "a call of the database"
	}
	return rest
}
