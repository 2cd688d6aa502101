package faults

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// pace is how long small queries take while a test does something else. A test that bounds a time adds a
// multiple of it, so that its bound holds on the machine as it is at that moment.
type pace struct {
	stop  context.CancelFunc
	ended chan struct{}
	worst time.Duration // valid when ended is closed
}

// measure begins to measure the machine and the database of e.
func measure(t testing.TB, e *durable.Engine) *pace {
	ctx, stop := context.WithCancel(context.Background())
	p := &pace{stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		const rest = 5 * time.Millisecond
		for began := time.Now(); ctx.Err() == nil; began = time.Now() {
			_, _ = e.Workers(ctx) // an error is as slow as a result
			realtime.Pass(rest, "measuring must not be a load of its own")
			p.worst = max(p.worst, time.Since(began)-rest)
		}
	}()
	t.Cleanup(func() { p.slack() })
	return p
}

// slack ends the measurement, and returns how long twenty of the slowest queries would take.
func (p *pace) slack() time.Duration {
	p.stop()
	<-p.ended
	return 20 * p.worst
}
