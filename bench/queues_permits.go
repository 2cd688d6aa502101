package main

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// The paths whose steps take a millisecond and pass four permits from one to the next: in one worker, and in two, each with a store of
// its own as two processes have.
const (
	pathHandOff  = "handoff"
	pathHandOffs = "handoff-2"
)

// queuesPermits measures the local path with steps that need a permit of a limit.
func (b *bench) queuesPermits(at *site) error {
	const none = "unlimited"
	paths := []string{none, "concurrent", "rate", "waiting", pathHandOff, pathHandOffs}
	for _, callers := range b.callers {
		limits := make(map[string]*durable.Limit) // the bounds that were declared first apply, so each number of callers has limits of its own
		for path, bounds := range map[string][]durable.LimitOption{
			"concurrent": {durable.Concurrent(2 * callers)},
			"rate":       {durable.Rate(1_000_000, time.Second), durable.Burst(1000)},
			"waiting":    {durable.Concurrent(max(1, callers/4))},
			pathHandOff:  {durable.Concurrent(4)},
			pathHandOffs: {durable.Concurrent(4)},
		} {
			limits[path] = durable.NewLimit(path+"-"+strconv.Itoa(callers), bounds...)
		}
		samples, err := inTurns(b, at, paths, func(path string) (*sample, error) {
			switch path {
			case pathHandOff:
				return b.permitted(at, callers, limits[path], 1, time.Millisecond)
			case pathHandOffs:
				return b.permitted(at, callers, limits[path], 2, time.Millisecond)
			}
			return b.permitted(at, callers, limits[path], 1, 0)
		})
		if err != nil {
			return err
		}
		steps := func(s *sample) result.Number { return s.steps }
		for _, path := range paths {
			b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: "steps-" + path, C: callers, Figures: []result.Figure{
				figure("permits_per_s", samples[path], steps),
				figure("xacts_per_wf", samples[path], func(s *sample) result.Number { return s.xacts }),
				ratio("unlimited_ratio", samples[path], samples[none], steps),
				figure("p50_ms", samples[path], func(s *sample) result.Number { return s.p50 }),
				figure("p99_ms", samples[path], func(s *sample) result.Number { return s.p99 }),
			}})
		}
	}
	return nil
}

// permitted measures workflows whose steps take a time and need a permit of the limit, which may be nil, in a number of workers.
func (b *bench) permitted(at *site, callers int, limit *durable.Limit, workers int, took time.Duration) (_ *sample, err error) {
	names, out := stepNames(b.steps), newReceipt(b.payload)
	var opts []durable.StepOption
	if limit != nil {
		opts = append(opts, limit.Permit())
	}
	var done atomic.Int64
	w := durable.Define("permitted", func(c *durable.Ctx, in int) (int, error) {
		for _, name := range names {
			_, err := c.Step(name, func(ctx context.Context) (receipt, error) {
				if took > 0 {
					sleep(ctx, took)
				}
				done.Add(1) // not after the step: a replay passes it again
				return out, nil
			}, opts...)
			if err != nil {
				return 0, err
			}
		}
		return in, nil
	})
	before, err := at.gauge(b.ctx)
	if err != nil {
		return nil, err
	}
	var open []*worker
	dismiss := func() (err error) {
		for _, process := range open {
			err = errors.Join(err, process.dismiss())
		}
		return err
	}
	for range workers {
		process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w}, Concurrency: max(256, 2*callers)})
		if err != nil {
			return nil, errors.Join(err, dismiss())
		}
		open = append(open, process)
	}
	l := b.load(callers)
	var first, last int64
	l.begin = func() error { first = done.Load(); return nil }
	l.end = func() error { last = done.Load(); return nil }
	number := 0
	o, err := l.run(b.ctx, func() (caller, error) {
		engine := open[number%workers].engine
		number++
		return func(func() bool) error {
			_, err := w.Call(b.ctx, engine, 1)
			return err
		}, nil
	})
	if err = errors.Join(err, dismiss()); err != nil {
		return nil, err
	}
	after, err := at.gauge(b.ctx)
	if err != nil {
		return nil, err
	}
	o.steps = int(last - first)
	s := o.sample(b.steps)
	if at.pg != nil && o.all > 0 {
		s.xacts = result.Number(float64(after.commits-before.commits) / float64(o.all))
	}
	return s, nil
}
