package main

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// sample is one measurement of one path.
type sample struct {
	workflows, steps result.Number // a second
	p50, p99         result.Number // ms
	xacts            result.Number // a workflow
	bytes            result.Number // a step
	batch            result.Number // writes of a flush, on average
	flush            result.Number // ms of a flush, on average
	cpu              result.Number // µs of processor time of all processes for a workflow; only of path claimed
}

// sample is the load as rates; a step's share of a workflow counts where the workflow was
// not finished.
func (o *outcome) sample(steps int) *sample {
	per := float64(o.steps) / o.window.Seconds()
	latencies := milliseconds(o.latencies)
	return &sample{
		workflows: result.Number(per / float64(steps)), steps: result.Number(per),
		p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99),
		xacts: result.Unknown, bytes: result.Unknown, batch: result.Unknown, flush: result.Unknown, cpu: result.Unknown,
	}
}

// addJournalStats adds what the engine says of its own writes.
func (s *sample) addJournalStats(st durable.Stats) {
	if st.Flushes > 0 {
		s.batch = result.Number(st.MeanFlushRows())
		s.flush = result.Number(inMS(st.TotalFlushTime) / float64(st.Flushes))
	}
}

// gauge reads what a database counts: once before an engine is opened, once after it is closed.
type gauge struct {
	commits int64         // of PostgreSQL
	cpu     time.Duration // of this process and of PostgreSQL
	bytes   int64         // of the checkpoints in PostgreSQL
}

// gauge returns once everybody has left the database: a backend tells of its last
// transactions when it goes.
func (at *site) gauge(ctx context.Context) (g gauge, err error) {
	if at.pg == nil {
		g.cpu = processorTime()
		return g, nil
	}
	for {
		var present int
		err := at.admin.QueryRow(ctx, statement("commits.postgres.sql"), at.name).Scan(&g.commits, &present)
		if err != nil {
			return g, err
		}
		if present == 0 {
			break
		}
		if !sleep(ctx, 5*time.Millisecond) {
			return g, context.Cause(ctx)
		}
	}
	if g.cpu, err = at.serverTime(ctx); err != nil {
		return g, err
	}
	g.cpu += processorTime()
	conn, err := pgx.Connect(ctx, at.address)
	if err != nil {
		return g, err
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(ctx, statement("step_bytes.postgres.sql")).Scan(&g.bytes)
	return g, err
}

// opening counts what it takes to open an engine that does nothing, and to close it, with
// what gauge itself adds. It is no workflow's.
func (b *bench) opening(at *site) (int64, error) {
	w, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{define(b.steps, b.payload).Workflow}})
	if err != nil { // that made the tables
		return 0, err
	}
	if err := w.dismiss(); err != nil {
		return 0, err
	}
	before, err := at.gauge(b.ctx)
	if err != nil {
		return 0, err
	}
	if w, err = at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{define(b.steps, b.payload).Workflow}}); err != nil {
		return 0, err
	}
	if err := w.dismiss(); err != nil {
		return 0, err
	}
	after, err := at.gauge(b.ctx)
	return after.commits - before.commits, err
}

// addUsage adds to the sample what the database counted between two gauges, over all
// workflows that were executed meanwhile.
func (s *sample) addUsage(at *site, before, after gauge, opening int64, workflows, steps int, st durable.Stats) {
	if workflows == 0 {
		return
	}
	if at.pg == nil {
		s.xacts = result.Number(float64(st.Flushes+min(st.ClaimQueries, st.ClaimedRuns)) / float64(workflows))
		return
	}
	s.xacts = result.Number(float64(after.commits-before.commits-opening) / float64(workflows))
	s.bytes = result.Number(float64(after.bytes-before.bytes) / float64(workflows*steps))
}
