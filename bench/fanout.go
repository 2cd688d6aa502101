package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// widths are the numbers of items of the Map that are executed at once: the default, and many.
var widths = []int{16, 256}

// fanout measures one run with one Map of many items.
func (b *bench) fanout(at *site) error {
	items := make([]int, b.items)
	for i := range items {
		items[i] = i
	}
	for _, width := range widths {
		rows := make([]result.Number, 0, b.options.rounds)
		var batch result.Number
		for range b.options.rounds {
			if err := at.settle(b.ctx); err != nil {
				return err
			}
			took, stats, err := b.fan(at, items, width)
			if err != nil {
				return err
			}
			rows, batch = append(rows, result.Number(took.Seconds())), result.Number(stats.MeanFlushRows())
		}
		seconds := median(rows)
		b.add(&result.Row{Mode: "fanout", Store: at.store, Path: fmt.Sprintf("parallel-%d", width), Figures: []result.Figure{
			{Name: "items", Value: result.Number(b.items)},
			{Name: "seconds", Value: seconds},
			{Name: "items_per_s", Value: result.Number(b.items) / seconds},
			{Name: "batch", Value: batch},
		}})
	}
	return nil
}

func (b *bench) fan(at *site, items []int, width int) (took time.Duration, stats durable.Stats, err error) {
	out := newReceipt(b.payload)
	w := durable.Define("fan", func(c *durable.Ctx, n int) (int, error) {
		done, err := c.Map("items", items[:n], func(context.Context, int) (receipt, error) { return out, nil }, durable.Parallel(width))
		return len(done), err
	})
	process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		return 0, stats, err
	}
	defer func() { err = errors.Join(err, process.dismiss()) }()
	if _, err := w.Call(b.ctx, process.engine, min(len(items), 10)); err != nil { // a warm-up
		return 0, stats, err
	}
	began := time.Now()
	n, err := w.Call(b.ctx, process.engine, len(items))
	if err == nil && n != len(items) {
		err = fmt.Errorf("the Map returned %d of %d items", n, len(items))
	}
	return time.Since(began), process.engine.Stats(), err
}
