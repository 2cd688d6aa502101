package main

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

const (
	fleetProcesses = 4    // at most; the engines are divided among them
	fleetSlots     = 1600 // of all engines together
	reportInterval = 20 * time.Millisecond
)

// fleetMember is the main function of a process of mode fleet. Its engines share a store. They begin when the parent says so, and
// the process reports how many executions have ended.
func fleetMember(ctx context.Context, j *job, s durable.Store, said <-chan string) (err error) {
	w := define(j.Steps, j.Payload)
	engines := make([]*durable.Engine, j.Workers)
	for i := range engines {
		if engines[i], err = durable.New(s, durable.Config{Workflows: []durable.Definition{w, greeting()}, Concurrency: j.Slots, Grace: -1}); err != nil {
			return err
		}
	}
	say("ready")
	select {
	case <-said:
	case <-ctx.Done():
		return nil
	}
	ended := make(chan error, len(engines))
	for _, e := range engines {
		go func() { ended <- e.Run(ctx) }()
	}
	for reported := int64(0); sleep(ctx, reportInterval); {
		sum := int64(0)
		for _, e := range engines {
			sum += e.Stats().EndedExecutions
		}
		if sum != reported {
			say("ended", sum)
			reported = sum
		}
	}
	for range engines {
		err = errors.Join(err, <-ended)
	}
	return err
}

// fleet measures the throughput of the claimed path with different numbers of engines that have the same number of slots in sum,
// and the dispatch to them when they are idle. Then it measures the largest fleet again before a backlog of due runs. It measures
// nothing on SQLite, which one machine uses.
func (b *bench) fleet(at *site) error {
	if at.pg == nil {
		return nil
	}
	var rows []*result.Row
	var best, largest result.Number
	for _, engines := range b.engines {
		row, rate, err := b.fleetOf(at, engines, b.fleetRuns, 0)
		if err != nil {
			return fmt.Errorf("%d engines: %w", engines, err)
		}
		rows, best, largest = append(rows, row), max(best, rate), rate
	}
	row, rate, err := b.fleetOf(at, b.engines[len(b.engines)-1], b.fleetRuns, b.backlog)
	if err != nil {
		return fmt.Errorf("a backlog of %d runs: %w", b.backlog, err)
	}
	for _, r := range rows {
		r.Figures = append(r.Figures, result.Figure{Name: "best_ratio", Value: r.Get("wf_per_s") / best})
		b.add(r)
	}
	row.Figures = append(row.Figures, result.Figure{Name: "time_ratio", Value: largest / rate})
	b.add(row)
	return nil
}

// fleetOf measures one fleet, before which there are that many due runs. It executes the first of them.
func (b *bench) fleetOf(at *site, engines, runs, backlog int) (row *result.Row, rate result.Number, err error) {
	if err := at.settle(b.ctx); err != nil {
		return nil, 0, err
	}
	s, err := at.open(b.ctx)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	client, err := durable.New(s, durable.Config{})
	if err != nil {
		return nil, 0, err
	}
	from, err := s.Now(b.ctx)
	if err != nil {
		return nil, 0, err
	}
	if err := startAll(b.ctx, define(b.steps, b.payload).Workflow, client, runs+backlog); err != nil {
		return nil, 0, err
	}
	var processes []*process
	defer func() {
		for _, p := range processes {
			err = errors.Join(err, p.stop())
		}
	}()
	count := min(engines, fleetProcesses)
	counts := make([]atomic.Int64, count)
	entered := make(chan string, 1024)
	for i := range count {
		p, err := at.spawn(job{Role: "fleet", Workers: (engines + i) / count, Slots: fleetSlots / engines, Steps: b.steps, Payload: b.payload})
		if err != nil {
			return nil, 0, err
		}
		processes = append(processes, p)
		if _, err := p.expect(b.ctx, "ready"); err != nil {
			return nil, 0, err
		}
	}
	before, _, err := at.activity(b.ctx)
	if err != nil {
		return nil, 0, err
	}
	for i, p := range processes {
		go func() {
			for line := range p.lines {
				if n := int64(0); scanned(line, "ended %d", &n) {
					counts[i].Store(n)
				} else {
					entered <- line
				}
			}
		}()
		if err := p.tell("go"); err != nil {
			return nil, 0, err
		}
	}
	if err := b.awaitEnded(counts, int64(runs)); err != nil {
		return nil, 0, err
	}
	after, conns, err := at.activity(b.ctx)
	if err != nil {
		return nil, 0, err
	}
	ended, seconds, err := at.endedSince(b.ctx, from)
	if err != nil {
		return nil, 0, err
	}
	rate = result.Number(0.8 * ended / seconds)
	row = &result.Row{Mode: "fleet", Store: at.store, Path: "empty", Figures: []result.Figure{
		{Name: "engines", Value: result.Number(engines)},
		{Name: "processes", Value: result.Number(count)},
		{Name: "slots", Value: result.Number(fleetSlots / engines * engines)},
		{Name: "runs", Value: result.Number(runs)},
		{Name: "wf_per_s", Value: rate},
		{Name: "xacts_per_wf", Value: result.Number((after - before) / ended)},
		{Name: "conns", Value: result.Number(conns)},
	}}
	if backlog > 0 { // a further run would stand behind it
		row.Path = "backlog"
		row.Figures = append(row.Figures, result.Figure{Name: "backlog", Value: result.Number(backlog)})
		return row, rate, nil
	}
	late, err := b.dispatchTo(at, entered)
	if err != nil {
		return nil, 0, fmt.Errorf("dispatch: %w", err)
	}
	row.Figures = append(row.Figures, result.Figure{Name: "dispatch_p50_ms", Value: quantile(late, 0.5)}, result.Figure{Name: "dispatch_p99_ms", Value: quantile(late, 0.99)})
	return row, rate, nil
}

// awaitEnded waits until the processes have ended that many executions.
func (b *bench) awaitEnded(counts []atomic.Int64, runs int64) error {
	for before, moved := int64(-1), time.Now(); ; {
		sum := int64(0)
		for i := range counts {
			sum += counts[i].Load()
		}
		switch {
		case sum >= runs:
			return nil
		case sum != before:
			before, moved = sum, time.Now()
		case time.Since(moved) > stallTimeout:
			return fmt.Errorf("%d of %d runs have ended, and none for %v", sum, runs, stallTimeout)
		}
		if !sleep(b.ctx, reportInterval) {
			return context.Cause(b.ctx)
		}
	}
}

// endedSince returns how many runs of the default workflow have ended since a time, and in how many seconds the middle eight tenths
// of them did.
func (at *site) endedSince(ctx context.Context, from time.Time) (ended, seconds float64, err error) {
	conn, err := pgx.Connect(ctx, at.address)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(ctx, statement("fleet.postgres.sql"), from, workflowName).Scan(&ended, &seconds)
	return ended, seconds, err
}

// startAll starts n runs with the inputs 0 to n-1, many of them in one call.
func startAll(ctx context.Context, w *durable.Workflow[int, int], e *durable.Engine, n int, opts ...durable.StartOption) error {
	for from := 0; from < n; from += batchSize {
		items := make([]durable.StartItem[int], min(batchSize, n-from))
		for i := range items {
			items[i].Input = from + i
		}
		if _, err := w.StartMany(ctx, e, items, opts...); err != nil {
			return err
		}
	}
	return nil
}

// scanned reports whether the line has the format.
func scanned(line, format string, values ...any) bool {
	n, err := fmt.Sscanf(line, format, values...)
	return err == nil && n == len(values)
}
