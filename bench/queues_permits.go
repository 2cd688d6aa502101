package main

import (
	"context"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// queuesPermits measures the local path with steps that need a permit of a limit.
func (b *bench) queuesPermits(at *site) error {
	const none = "unlimited"
	paths := []string{none, "concurrent", "rate", "waiting"}
	for _, callers := range b.callers {
		limits := make(map[string]*durable.Limit) // the bounds that were declared first apply, so each number of callers has limits of its own
		for path, bounds := range map[string][]durable.LimitOption{
			"concurrent": {durable.Concurrent(2 * callers)},
			"rate":       {durable.Rate(1_000_000, time.Second), durable.Burst(1000)},
			"waiting":    {durable.Concurrent(max(1, callers/4))},
		} {
			limits[path] = durable.NewLimit(path+"-"+strconv.Itoa(callers), bounds...)
		}
		samples, err := inTurns(b, at, paths, func(path string) (*sample, error) {
			return b.permitted(at, callers, limits[path])
		})
		if err != nil {
			return err
		}
		steps := func(s *sample) result.Number { return s.steps }
		for _, path := range paths {
			b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: "steps-" + path, C: callers, Figures: []result.Figure{
				figure("permits_per_s", samples[path], steps),
				ratio("unlimited_ratio", samples[path], samples[none], steps),
				figure("p50_ms", samples[path], func(s *sample) result.Number { return s.p50 }),
				figure("p99_ms", samples[path], func(s *sample) result.Number { return s.p99 }),
			}})
		}
	}
	return nil
}

// permitted measures workflows whose steps need a permit of the limit, which may be nil.
func (b *bench) permitted(at *site, callers int, limit *durable.Limit) (*sample, error) {
	names, out := stepNames(b.steps), newReceipt(b.payload)
	var opts []durable.StepOption
	if limit != nil {
		opts = append(opts, limit.Permit())
	}
	var done atomic.Int64
	w := durable.Define("permitted", func(c *durable.Ctx, in int) (int, error) {
		for _, name := range names {
			if _, err := c.Step(name, func(context.Context) (receipt, error) { return out, nil }, opts...); err != nil {
				return 0, err
			}
			done.Add(1)
		}
		return in, nil
	})
	process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w}, Concurrency: max(256, 2*callers)})
	if err != nil {
		return nil, err
	}
	l := b.load(callers)
	var first, last int64
	l.begin = func() error { first = done.Load(); return nil }
	l.end = func() error { last = done.Load(); return nil }
	o, err := l.run(b.ctx, func() (caller, error) {
		return func(func() bool) error {
			_, err := w.Call(b.ctx, process.engine, 1)
			return err
		}, nil
	})
	if closed := process.dismiss(); err == nil {
		err = closed
	}
	if err != nil {
		return nil, err
	}
	o.steps = int(last - first)
	return o.sample(b.steps), nil
}
