package main

import (
	"errors"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// local measures workflows that are started and executed in this process. Each caller starts one run
// after the other, and waits for its result.
func (b *bench) local(at *site, callers int, opening int64) (*sample, error) {
	before, err := at.gauge(b.ctx)
	if err != nil {
		return nil, err
	}
	w := define(b.steps, b.payload)
	// A slot becomes free a moment after the caller has received the result. With twice as many slots
	// as callers, each start finds a free slot. Otherwise the run would have to be claimed.
	cfg := durable.Config{Workflows: []durable.Definition{w.Workflow}, Concurrency: max(256, 2*callers)}
	if b.configure != nil {
		b.configure(&cfg)
	}
	process, err := at.openWorker(b.ctx, cfg)
	if err != nil {
		return nil, err
	}
	l := b.load(callers)
	var first, last int64
	l.begin = func() error { first = w.done.Load(); return nil }
	l.end = func() error { last = w.done.Load(); return nil }
	o, err := l.run(b.ctx, func() (caller, error) {
		return func(func() bool) error {
			run, err := w.Start(b.ctx, process.engine, 1)
			if err == nil {
				_, err = run.Result(b.ctx)
			}
			return err
		}, nil
	})
	stats := process.engine.Stats()
	if err = errors.Join(err, process.dismiss()); err != nil {
		return nil, err
	}
	after, err := at.gauge(b.ctx)
	if err != nil {
		return nil, err
	}
	o.steps = int(last - first)
	s := o.sample(b.steps)
	s.workflows = result.Number(float64(o.workflows) / o.window.Seconds()) // whole ones only
	s.addJournalStats(stats)
	s.addUsage(at, before, after, opening, o.all, b.steps, stats)
	return s, nil
}
