package main

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// queuePath is a way in which runs of the claimed path are queued.
type queuePath struct {
	name       string
	settings   func(callers int) durable.QueueSettings // nil: the queue has none
	keys       int
	priorities bool
}

// pathFree is the path whose queue has no settings, with which the others are compared.
const pathFree = "free"

// queuePaths are what part claimed compares.
var queuePaths = []queuePath{
	{name: pathFree},
	{name: "bound", settings: func(callers int) durable.QueueSettings { return durable.QueueSettings{MaxExecuting: 4 * callers} }},
	{name: "full", settings: func(callers int) durable.QueueSettings { return durable.QueueSettings{MaxExecuting: callers} }},
	{name: "keys", keys: 1000, settings: func(int) durable.QueueSettings { return durable.QueueSettings{MaxInProgressPerKey: 1} }},
	{name: "rate", settings: func(int) durable.QueueSettings {
		return durable.QueueSettings{Rate: durable.QueueRate{Count: 1_000_000, Period: time.Second, Burst: 1000}}
	}},
	{name: "lanes", priorities: true},
	{name: "priorities", priorities: true, settings: func(callers int) durable.QueueSettings {
		return durable.QueueSettings{MaxExecuting: 4 * callers}
	}},
}

// queuesClaimed measures the claimed path of queues with several settings, in turns.
func (b *bench) queuesClaimed(at *site) error {
	opening, err := b.opening(at)
	if err != nil {
		return err
	}
	var names []string
	byName := make(map[string]queuePath)
	for _, p := range queuePaths {
		names = append(names, p.name)
		byName[p.name] = p
	}
	for _, callers := range b.callers {
		for _, p := range queuePaths {
			if p.settings == nil {
				continue
			}
			if err := b.setQueue(at, p.name, p.settings(callers)); err != nil {
				return err
			}
		}
		samples, err := inTurns(b, at, names, func(path string) (*sample, error) {
			p := byName[path]
			w := define(b.steps, b.payload)
			return b.measureClaimed(at, &claimedLoad{
				workflow: w, callers: callers, opening: opening,
				config:  durable.Config{Workflows: []durable.Definition{w.Workflow}, Concurrency: callers},
				starter: job{Role: "queuer", Queue: p.name, Keys: p.keys, Priorities: p.priorities},
			})
		})
		if err != nil {
			return err
		}
		for _, name := range names {
			b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: name, C: callers, Figures: []result.Figure{
				figure("wf_per_s", samples[name], func(s *sample) result.Number { return s.workflows }),
				ratio("free_ratio", samples[name], samples[pathFree], func(s *sample) result.Number { return s.workflows }),
				figure("p50_ms", samples[name], func(s *sample) result.Number { return s.p50 }),
				figure("p99_ms", samples[name], func(s *sample) result.Number { return s.p99 }),
				figure("xacts_per_wf", samples[name], func(s *sample) result.Number { return s.xacts }),
				figure("cpu_us_per_wf", samples[name], func(s *sample) result.Number { return s.cpu }),
				ratio("free_cpu_ratio", samples[pathFree], samples[name], func(s *sample) result.Number { return s.cpu }),
			}})
		}
	}
	return nil
}

// startQueued is the role of a process that starts the requested number of runs in a queue. As others'
// runs have keys of their own, each run is started by a call of its own, at most 100 at once.
func startQueued(ctx context.Context, j *job, s durable.Store, said <-chan string) error {
	ctx = context.WithoutCancel(ctx) // what was asked for is started, even if no more is
	w := define(j.Steps, j.Payload)
	e, err := durable.New(s, durable.Config{})
	if err != nil {
		return err
	}
	started := 0
	for {
		n, open, err := readNumbers(said)
		if err != nil {
			return err
		}
		failed := newFailure()
		var callers sync.WaitGroup
		slots := make(chan struct{}, 100)
		for range n {
			slots <- struct{}{}
			opts := j.options(started)
			started++
			callers.Go(func() {
				_, err := w.Start(ctx, e, 1, opts...)
				failed.set(err)
				<-slots
			})
		}
		callers.Wait()
		if err := failed.get(); err != nil || !open {
			return err
		}
	}
}

// options returns the options of one start.
func (j *job) options(number int) []durable.StartOption {
	opts := []durable.StartOption{durable.InQueue(j.Queue)}
	if j.Keys > 0 {
		opts = append(opts, durable.GroupKey("key-"+strconv.Itoa(number%j.Keys)))
	}
	if j.Priorities {
		levels := durable.HighestPriority - durable.LowestPriority + 1
		opts = append(opts, durable.Priority(durable.LowestPriority+number%levels))
	}
	return opts
}

// queuesRegistered measures claims of a worker that executes many workflows and serves many queues, and
// of one that executes a single workflow. The runs are of one workflow.
func (b *bench) queuesRegistered(at *site) error {
	const one, many = "one", "registered"
	type claims struct {
		*sample
		p50 result.Number
	}
	for _, callers := range b.callers {
		samples, err := inTurns(b, at, []string{one, many}, func(path string) (claims, error) {
			w := define(b.steps, b.payload)
			cfg := durable.Config{Workflows: []durable.Definition{w.Workflow}, Concurrency: callers}
			if path == many {
				for i := range b.registers - 1 {
					cfg.Workflows = append(cfg.Workflows, durable.Define("workflow-"+strconv.Itoa(i), func(_ *durable.Ctx, in int) (int, error) { return in, nil }))
				}
				cfg.Queues = append(cfg.Queues, one)
				for i := range b.registers/10 - 1 {
					cfg.Queues = append(cfg.Queues, "queue-"+strconv.Itoa(i))
				}
			}
			seam := new(watch)
			s, err := b.measureClaimed(at, &claimedLoad{
				workflow: w, callers: callers, config: cfg, watch: seam, starter: job{Role: "queuer", Queue: one},
			})
			return claims{s, quantile(milliseconds(seam.all()), 0.5)}, err
		})
		if err != nil {
			return err
		}
		perSecond := func(s claims) result.Number { return s.workflows }
		claim := func(s claims) result.Number { return s.p50 }
		b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: many, C: callers, Figures: []result.Figure{
			{Name: "workflows", Value: result.Number(b.registers)},
			{Name: "queues", Value: result.Number(b.registers / 10)},
			figure("wf_per_s", samples[many], perSecond),
			ratio("one_ratio", samples[many], samples[one], perSecond),
			figure("claim_p50_ms", samples[many], claim),
			figure("one_claim_p50_ms", samples[one], claim),
			ratio("claim_ratio", samples[many], samples[one], claim),
		}})
	}
	return nil
}
