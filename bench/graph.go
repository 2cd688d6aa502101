package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// The workflows of mode graph: a chain and a diamond of ten steps, each declared as a graph and written by hand.
func graphWorkflows(payload int) map[string]*durable.Workflow[int, receipt] {
	out, names := newReceipt(payload), stepNames(10)
	last := len(names) - 1
	node := func(context.Context, *durable.NodeInput) (receipt, error) { return out, nil }
	step := func(context.Context) (receipt, error) { return out, nil }
	return map[string]*durable.Workflow[int, receipt]{
		"chain-graph": durable.DefineGraph("chain", func(g *durable.Graph[int]) *durable.Node[receipt] {
			n := g.Step(names[0], node)
			for _, name := range names[1:] {
				n = g.Step(name, node, durable.Needs(n))
			}
			return n
		}),
		"chain-hand": durable.Define("chain", func(c *durable.Ctx, _ int) (r receipt, err error) {
			for _, name := range names {
				if r, err = c.Step(name, step); err != nil {
					return r, err
				}
			}
			return r, nil
		}),
		"diamond-graph": durable.DefineGraph("diamond", func(g *durable.Graph[int]) *durable.Node[receipt] {
			top := g.Step(names[0], node)
			var sides []durable.AnyNode
			for _, name := range names[1:last] {
				sides = append(sides, g.Step(name, node, durable.Needs(top)))
			}
			return g.Step(names[last], node, durable.Needs(sides...))
		}),
		"diamond-hand": durable.Define("diamond", func(c *durable.Ctx, _ int) (receipt, error) {
			if r, err := c.Step(names[0], step); err != nil {
				return r, err
			}
			var sides []*durable.Future[receipt]
			for _, name := range names[1:last] {
				sides = append(sides, c.Go(name, func(c *durable.Ctx) (receipt, error) { return c.Step("step", step) }))
			}
			if _, err := durable.All(sides...); err != nil {
				return receipt{}, err
			}
			return c.Step(names[last], step)
		}),
	}
}

// graph measures graphs against the same workflows written by hand, in turns, and one EachChild.
func (b *bench) graph(at *site) error {
	workflows := graphWorkflows(b.payload)
	for _, callers := range b.callers {
		for _, shape := range []string{"chain", "diamond"} {
			rates, cpus := make(map[string][]result.Number), make(map[string][]result.Number)
			for range b.options.rounds {
				for _, by := range []string{"hand", "graph"} {
					rate, cpu, err := b.rateOf(at, workflows[shape+"-"+by], callers)
					if err != nil {
						return err
					}
					rates[by], cpus[by] = append(rates[by], rate), append(cpus[by], cpu)
				}
			}
			graph, hand := median(rates["graph"]), median(rates["hand"])
			graphCPU, handCPU := median(cpus["graph"]), median(cpus["hand"])
			b.add(&result.Row{Mode: "graph", Store: at.store, Path: shape, C: callers, Figures: []result.Figure{
				{Name: "graph_wf_per_s", Value: graph},
				{Name: "hand_wf_per_s", Value: hand},
				{Name: "ratio", Value: graph / hand},
				{Name: "graph_cpu_us", Value: graphCPU},
				{Name: "hand_cpu_us", Value: handCPU},
				{Name: "cpu_ratio", Value: graphCPU / handCPU},
			}})
		}
	}
	return b.eachChild(at)
}

// rateOf returns how many of the workflows the callers execute a second, and the processor time of this process for each, in µs.
func (b *bench) rateOf(at *site, w *durable.Workflow[int, receipt], callers int) (rate, cpu result.Number, err error) {
	if err := at.settle(b.ctx); err != nil {
		return 0, 0, err
	}
	process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w}, Concurrency: max(256, 2*callers)})
	if err != nil {
		return 0, 0, err
	}
	defer func() { err = errors.Join(err, process.dismiss()) }()
	began := processorTime()
	o, err := b.load(callers).run(b.ctx, func() (caller, error) {
		return func(func() bool) error {
			_, err := w.Call(b.ctx, process.engine, 1)
			return err
		}, nil
	})
	if err != nil {
		return 0, 0, err
	}
	cpu = result.Number(float64((processorTime() - began).Microseconds()) / float64(process.engine.Stats().EndedExecutions))
	return result.Number(float64(o.workflows) / o.window.Seconds()), cpu, nil
}

// eachChild measures one EachChild of as many children as mode fanout has items. Another worker executes them, more slowly than they
// are started, so that the parent leaves memory while they end.
func (b *bench) eachChild(at *site) (err error) {
	kid := durable.Define("kid", func(c *durable.Ctx, i int) (int, error) {
		return c.Step("step", func(ctx context.Context) (int, error) {
			sleep(ctx, rand.N(200*time.Millisecond))
			return i, nil
		})
	})
	w := durable.DefineGraph("each", func(g *durable.Graph[int]) *durable.Node[int] {
		list := g.Step("list", func(_ context.Context, in *durable.NodeInput) ([]int, error) { return make([]int, g.Input(in)), nil })
		kids := g.EachChild("kids", list, kid)
		return g.Step("count", func(_ context.Context, in *durable.NodeInput) (int, error) { return len(kids.Of(in)), nil }, durable.Needs(kids))
	})
	process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.dismiss()) }()
	kids, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{kid}, Concurrency: 64})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, kids.dismiss()) }()
	began := time.Now()
	n, err := w.Call(b.ctx, process.engine, b.items, durable.ID("each"))
	if err != nil || n != b.items {
		return cmp.Or(err, fmt.Errorf("%d of %d children were counted", n, b.items))
	}
	took := time.Since(began)
	run, err := process.engine.Get(b.ctx, "each")
	if err != nil {
		return err
	}
	tree, err := process.engine.Tree(b.ctx, "each")
	if err != nil {
		return err
	}
	var last time.Time // when the last child ended
	for _, child := range tree.Children {
		if child.EndedAt.After(last) {
			last = child.EndedAt
		}
	}
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b.add(&result.Row{Mode: "graph", Store: at.store, Path: "each-child", Figures: []result.Figure{
		{Name: "children", Value: result.Number(b.items)},
		{Name: "seconds", Value: result.Number(took.Seconds())},
		{Name: "executions", Value: result.Number(run.Epoch)},
		{Name: "seconds_after_last_child", Value: result.Number(run.EndedAt.Sub(last).Seconds())},
		{Name: "memory_mb", Value: result.Number(memory.Sys) / 1e6},
	}})
	return nil
}
