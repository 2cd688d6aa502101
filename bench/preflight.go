package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// preflight measures how many live runs a second are replayed against the code of a process. Each run has executed its steps, and
// waits for a signal.
func (b *bench) preflight(at *site) (err error) {
	names, out := stepNames(b.steps), newReceipt(b.payload)
	w := durable.Define("live", func(c *durable.Ctx, _ int) (int, error) {
		for _, name := range names {
			if _, err := c.Step(name, func(context.Context) (receipt, error) { return out, nil }); err != nil {
				return 0, err
			}
		}
		return c.Receive[int]("go on")
	})
	process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.dismiss()) }()
	for left := b.checked; left > 0; left -= batchSize {
		if _, err := w.StartMany(b.ctx, process.engine, make([]durable.StartItem[int], min(batchSize, left))); err != nil {
			return err
		}
	}
	if err := b.parked(process.engine, int64(b.checked)); err != nil {
		return err
	}
	var took []time.Duration
	for range b.options.rounds {
		began := time.Now()
		report, err := process.engine.Preflight(b.ctx, durable.Filter{})
		if err != nil {
			return err
		}
		if took = append(took, time.Since(began)); report.Fit != b.checked {
			return fmt.Errorf("the code fits %d of %d runs", report.Fit, b.checked)
		}
	}
	middle := quantile(milliseconds(took), 0.5)
	b.add(&result.Row{Mode: "preflight", Store: at.store, Figures: []result.Figure{
		{Name: "runs", Value: result.Number(b.checked)},
		{Name: "steps", Value: result.Number(b.steps)},
		{Name: "runs_per_s", Value: result.Number(b.checked) / middle * 1000},
	}})
	return nil
}
