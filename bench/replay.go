package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// replays is how often the run is replayed.
const replays = 21

// longHistory returns a workflow with many steps, which then waits for one signal per replay. It sends the
// time to back when it has executed its steps.
func longHistory(names []string, payload int, back chan<- time.Time) *durable.Workflow[int, int] {
	out := newReceipt(payload)
	return durable.Define("long", func(c *durable.Ctx, times int) (int, error) {
		for _, name := range names {
			if _, err := c.Step(name, func(context.Context) (receipt, error) { return out, nil }); err != nil {
				return 0, err
			}
		}
		back <- time.Now()
		for i := range times {
			if _, err := c.Receive[int](replaySignal(i)); err != nil {
				return 0, err
			}
		}
		return times, nil
	})
}

func replaySignal(i int) string { return "again-" + strconv.Itoa(i) }

// replay measures how long the replay of a run with a long history takes: from the beginning of the
// claim, which loads the history, until the whole history has been replayed.
func (b *bench) replay(at *site) (err error) {
	back := make(chan time.Time, 1)
	w := longHistory(stepNames(b.history), b.payload, back)
	s, err := at.open(b.ctx)
	if err != nil {
		return err
	}
	seam := &watch{Store: s}
	process, err := startWorker(b.ctx, seam, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, process.dismiss()) }()
	began := time.Now()
	run, err := w.Start(b.ctx, process.engine, replays, durable.ID("long"))
	if err != nil {
		return err
	}
	recorded, err := receive(b.ctx, back)
	if err != nil {
		return err
	}
	var whole, claims []time.Duration
	for i := range replays {
		if err := b.parked(process.engine, int64(i+1)); err != nil {
			return err
		}
		if err := process.engine.Signal(b.ctx, run.ID(), replaySignal(i), i); err != nil {
			return err
		}
		passed, err := receive(b.ctx, back)
		if err != nil {
			return err
		}
		claimed, took := seam.latest()
		whole, claims = append(whole, passed.Sub(claimed)), append(claims, took)
	}
	if _, err := run.Result(b.ctx); err != nil {
		return err
	}
	ms := milliseconds(whole)
	b.add(&result.Row{Mode: "replay", Store: at.store, Figures: []result.Figure{
		{Name: "steps", Value: result.Number(b.history)},
		{Name: "p50_ms", Value: quantile(ms, 0.5)},
		{Name: "max_ms", Value: quantile(ms, 1)},
		{Name: "claim_p50_ms", Value: quantile(milliseconds(claims), 0.5)},
		{Name: "first_run_ms", Value: result.Number(inMS(recorded.Sub(began)))},
	}})
	return nil
}

func receive[T any](ctx context.Context, from <-chan T) (got T, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("nothing came within a minute"))
	defer cancel()
	select {
	case got = <-from:
		return got, nil
	case <-ctx.Done():
		return got, context.Cause(ctx)
	}
}

// parked waits until n executions have been unloaded from memory.
func (b *bench) parked(e *durable.Engine, n int64) error {
	for began := time.Now(); e.Stats().ParkedExecutions < n; {
		if time.Since(began) > stallTimeout {
			return fmt.Errorf("a run that waits did not leave memory within %v", stallTimeout)
		}
		if err := b.pause(time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}
