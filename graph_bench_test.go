package durable_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

// BenchmarkGraph executes chains and diamonds of ten steps, declared as graphs and written by hand, 16 at once, without a database.
// ns/op and allocs/op are per workflow.
func BenchmarkGraph(b *testing.B) {
	type receipt struct {
		Number int    `json:"number"`
		Text   string `json:"text"`
	}
	out := receipt{1, "forty bytes of text, or perhaps some more"}
	names := []string{"step-0", "step-1", "step-2", "step-3", "step-4", "step-5", "step-6", "step-7", "step-8", "step-9"}
	last := len(names) - 1
	ends := make([]chan struct{}, 1024)
	for i := range ends {
		ends[i] = make(chan struct{}, 1)
	}
	step := func(context.Context) (receipt, error) { return out, nil }
	node := func(context.Context, *durable.NodeInput) (receipt, error) { return out, nil }
	// The store keeps nothing, so the run could not be read later: the last step tells its caller.
	end := func(caller int) (receipt, error) {
		ends[caller] <- struct{}{}
		return out, nil
	}
	lastNode := func(g *durable.Graph[int]) func(context.Context, *durable.NodeInput) (receipt, error) {
		return func(_ context.Context, in *durable.NodeInput) (receipt, error) { return end(g.Input(in)) }
	}
	workflows := []struct {
		name string
		w    *durable.Workflow[int, receipt]
	}{
		{"chain/hand", durable.Define("chain", func(c *durable.Ctx, caller int) (r receipt, err error) {
			for _, name := range names[:last] {
				if r, err = c.Step(name, step); err != nil {
					return r, err
				}
			}
			return c.Step(names[last], func(context.Context) (receipt, error) { return end(caller) })
		})},
		{"chain/graph", durable.DefineGraph("chain", func(g *durable.Graph[int]) *durable.Node[receipt] {
			n := g.Step(names[0], node)
			for _, name := range names[1:last] {
				n = g.Step(name, node, durable.Needs(n))
			}
			return g.Step(names[last], lastNode(g), durable.Needs(n))
		})},
		{"diamond/hand", durable.Define("diamond", func(c *durable.Ctx, caller int) (receipt, error) {
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
			return c.Step(names[last], func(context.Context) (receipt, error) { return end(caller) })
		})},
		{"diamond/graph", durable.DefineGraph("diamond", func(g *durable.Graph[int]) *durable.Node[receipt] {
			top := g.Step(names[0], node)
			var sides []durable.AnyNode
			for _, name := range names[1:last] {
				sides = append(sides, g.Step(name, node, durable.Needs(top)))
			}
			return g.Step(names[last], lastNode(g), durable.Needs(sides...))
		})},
	}
	for _, flow := range workflows {
		b.Run(flow.name, func(b *testing.B) {
			e := engineWith(b, instant{openStore(b)}, durable.Config{Workflows: []durable.Definition{flow.w}, Concurrency: 1000})
			running(b, e)
			for e.Stats().Heartbeats == 0 { // before the first heartbeat the worker would claim the run instead of executing it from its start
				runtime.Gosched()
			}
			b.ReportAllocs()
			b.SetParallelism(8)
			var callers atomic.Int64
			b.RunParallel(func(pb *testing.PB) {
				me := int(callers.Add(1))
				for pb.Next() {
					if _, err := flow.w.Start(b.Context(), e, me); err != nil {
						b.Error(err)
						return
					}
					<-ends[me]
				}
			})
		})
	}
}
