package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// permitPath is one way in which steps need permits.
type permitPath struct {
	name    string
	bounds  func(callers int) []durable.LimitOption // nil: the steps need no permits
	workers int                                     // each with a store of its own, as processes have
	took    time.Duration                           // of each step
}

// permitPaths begins with the path to which the others are compared. The last two pass four permits from one step to the next.
var permitPaths = []permitPath{
	{name: "unlimited", workers: 1},
	{name: "concurrent", workers: 1, bounds: func(callers int) []durable.LimitOption {
		return []durable.LimitOption{durable.Concurrent(2 * callers)}
	}},
	{name: "rate", workers: 1, bounds: func(int) []durable.LimitOption {
		return []durable.LimitOption{durable.Rate(1_000_000, time.Second), durable.Burst(1000)}
	}},
	{name: "waiting", workers: 1, bounds: func(callers int) []durable.LimitOption {
		return []durable.LimitOption{durable.Concurrent(max(1, callers/4))}
	}},
	{name: "handoff", workers: 1, took: time.Millisecond, bounds: fourPermits},
	{name: "handoff-2", workers: 2, took: time.Millisecond, bounds: fourPermits},
}

func fourPermits(int) []durable.LimitOption { return []durable.LimitOption{durable.Concurrent(4)} }

// queuesPermits measures the local path with steps that need a permit of a limit.
func (b *bench) queuesPermits(at *site) error {
	var names []string
	for _, p := range permitPaths {
		names = append(names, p.name)
	}
	for _, callers := range b.callers {
		limits := make(map[string]*durable.Limit) // the bounds that were declared first apply, so each number of callers has limits of its own
		for _, p := range permitPaths {
			if p.bounds != nil {
				limits[p.name] = durable.NewLimit(p.name+"-"+strconv.Itoa(callers), p.bounds(callers)...)
			}
		}
		samples, err := inTurns(b, at, names, func(name string) (*sample, error) {
			i := slices.Index(names, name)
			return b.permitted(at, callers, limits[name], permitPaths[i].workers, permitPaths[i].took)
		})
		if err != nil {
			return err
		}
		steps := func(s *sample) result.Number { return s.steps }
		for _, name := range names {
			b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: "steps-" + name, C: callers, Figures: []result.Figure{
				figure("permits_per_s", samples[name], steps),
				figure("xacts_per_wf", samples[name], func(s *sample) result.Number { return s.xacts }),
				ratio("unlimited_ratio", samples[name], samples[names[0]], steps),
				figure("p50_ms", samples[name], func(s *sample) result.Number { return s.p50 }),
				figure("p99_ms", samples[name], func(s *sample) result.Number { return s.p99 }),
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
