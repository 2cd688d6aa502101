package main

import (
	"context"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// dormitory is who sleeps in this process's runs, and who woke.
type dormitory struct {
	beds chan struct{} // one is taken by each run from its start until it leaves memory

	mu    sync.Mutex
	clock *clock
	late  []time.Duration // of those that went on
}

func newDormitory(c *clock, awake int) *dormitory {
	return &dormitory{clock: c, beds: make(chan struct{}, awake)}
}

// define makes the workflow: it sleeps until the time given, once.
func (d *dormitory) define() *durable.Workflow[time.Time, struct{}] {
	return durable.Define("sleeper", func(c *durable.Ctx, until time.Time) (struct{}, error) {
		defer d.leave()
		if err := c.SleepUntil("sleep", until); err != nil {
			return struct{}{}, err // it leaves memory, and comes back when it is due
		}
		woke := time.Now()
		d.mu.Lock()
		defer d.mu.Unlock()
		d.late = append(d.late, d.clock.at(woke).Sub(until))
		return struct{}{}, nil
	})
}

// book takes n beds for runs that are about to start.
func (d *dormitory) book(ctx context.Context, n int) error {
	for range n {
		select {
		case d.beds <- struct{}{}:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// leave gives a bed back. Who comes back to go on has none, and comes when nobody starts.
func (d *dormitory) leave() {
	select {
	case <-d.beds:
	default:
	}
}

// empty reports whether every run that was started has left memory, or is about to.
func (d *dormitory) empty() bool { return len(d.beds) == 0 }

// now is the database's time.
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

// woken is how late each of those that went on did so.
func (d *dormitory) woken() []time.Duration {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]time.Duration(nil), d.late...)
}
