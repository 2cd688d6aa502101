package main

import (
	"context"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// dormitory tracks which runs of this process are in memory, and how late each run woke up.
type dormitory struct {
	beds chan struct{} // each run takes an element from its start until it is unloaded from memory

	mu    sync.Mutex
	clock *clock
	late  []time.Duration // one value for each run that has continued
}

func newDormitory(c *clock, awake int) *dormitory {
	return &dormitory{clock: c, beds: make(chan struct{}, awake)}
}

// define defines the workflow, which sleeps once, until the given time.
func (d *dormitory) define() *durable.Workflow[time.Time, struct{}] {
	return durable.Define("sleeper", func(c *durable.Ctx, until time.Time) (struct{}, error) {
		defer d.returnSlot()
		if err := c.SleepUntil("sleep", until); err != nil {
			return struct{}{}, err // the run is unloaded from memory, and executed again when it is due
		}
		woke := time.Now()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.late = append(d.late, d.clock.at(woke).Sub(until))
		return struct{}{}, nil
	})
}

// reserve takes n beds for runs that are about to start, and waits until they are free.
func (d *dormitory) reserve(ctx context.Context, n int) error {
	for range n {
		select {
		case d.beds <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// returnSlot returns a bed. A run that continues after its sleep has no bed, and continues only when no
// runs are being started.
func (d *dormitory) returnSlot() {
	select {
	case <-d.beds:
	default:
	}
}

// empty reports whether every started run was unloaded from memory, or is about to be.
func (d *dormitory) empty() bool { return len(d.beds) == 0 }

// now returns the database's time.
func (d *dormitory) now() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.clock.at(time.Now())
}

func (d *dormitory) set(c *clock) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.clock = c
}

// woken returns how late each run continued, for the runs that have continued.
func (d *dormitory) woken() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]time.Duration(nil), d.late...)
}
