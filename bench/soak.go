package main

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

const (
	soakCallers = 100
	soakParts   = 10 // the last part is compared with the first; by default each takes a minute
)

// health holds the state of a database at one moment of the soak.
type health struct {
	ended       int64 // runs that have ended in this process
	table       int64 // bytes of the runs and steps, without indexes
	index       int64 // bytes of their indexes
	wake        int64 // bytes of the index of due runs, which contains few rows at any time
	dead        int64 // dead rows, according to the statistics
	autovacuums int64 // runs of autovacuum and autoanalyze on both tables
}

// soak measures the local path for a long time, and compares the last part with the first: the data
// of ended runs must not slow the path down.
func (b *bench) soak(at *site) error {
	w := define(b.steps, b.payload)
	process, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w.Workflow}, Concurrency: 256})
	if err != nil {
		return err
	}
	l := b.load(b.callerCount(soakCallers))
	l.window = b.options.soak
	part := b.options.soak / soakParts
	var looks []health
	looked := make(chan error, 1)
	ctx, stop := context.WithCancel(b.ctx)
	defer stop()
	l.begin = func() error {
		first, err := at.health(ctx, process.engine)
		looks = append(looks, first)
		go func() { looked <- b.sampleHealth(ctx, at, process.engine, part, &looks) }()
		return err
	}
	_, err = l.run(b.ctx, func() (caller, error) {
		return func(func() bool) error {
			_, err := w.Call(b.ctx, process.engine, 1)
			return err
		}, nil
	})
	if err == nil {
		err = <-looked
	}
	stop()
	if err = errors.Join(err, process.dismiss()); err != nil {
		return err
	}
	b.add(soaked(at.store, l.callers, looks, part))
	return nil
}

// sampleHealth reads the health of the database at the end of each part, and prints it.
func (b *bench) sampleHealth(ctx context.Context, at *site, e *durable.Engine, part time.Duration, looks *[]health) error {
	began := time.Now()
	for i := range soakParts {
		if !sleep(ctx, time.Until(began.Add(time.Duration(i+1)*part))) {
			return context.Cause(ctx)
		}
		before := (*looks)[i]
		h, err := at.health(ctx, e)
		if err != nil {
			return err
		}
		*looks = append(*looks, h)
		b.say("soak %s: part %d of %d: %.0f workflows/s, tables %.0f MB, indexes %.0f MB, index of what is due %.1f MB, %d dead rows, %d autovacuums",
			at.store, i+1, soakParts, float64(h.ended-before.ended)/part.Seconds(),
			float64(h.table)/1e6, float64(h.index)/1e6, float64(h.wake)/1e6, h.dead, h.autovacuums)
	}
	return nil
}

// soaked returns the result. The bytes of a run in the tables and in the indexes are their growth
// in a part, divided by the number of runs that ended in it.
func soaked(store string, callers int, looks []health, part time.Duration) *result.Row {
	n := len(looks) - 1
	first, last := looks[1], looks[n]
	rate := func(i int) result.Number {
		return result.Number(float64(looks[i].ended-looks[i-1].ended) / part.Seconds())
	}
	perRun := func(i int, of func(health) int64) result.Number {
		return result.Number(float64(of(looks[i])-of(looks[i-1])) / float64(looks[i].ended-looks[i-1].ended))
	}
	table := func(h health) int64 { return h.table }
	index := func(h health) int64 { return h.index }
	r := &result.Row{Mode: "soak", Store: store, Path: pathLocal, C: callers, Figures: []result.Figure{
		{Name: "seconds", Value: result.Number(part.Seconds() * float64(n))},
		{Name: "first_wf_per_s", Value: rate(1)},
		{Name: "last_wf_per_s", Value: rate(n)},
		{Name: "last_ratio", Value: rate(n) / rate(1)},
		{Name: "runs", Value: result.Number(last.ended - looks[0].ended)},
		{Name: "first_table_bytes_per_run", Value: perRun(1, table)},
		{Name: "last_table_bytes_per_run", Value: perRun(n, table)},
		{Name: "first_index_bytes_per_run", Value: perRun(1, index)},
		{Name: "last_index_bytes_per_run", Value: perRun(n, index)},
		{Name: "first_wake_index_mb", Value: result.Number(float64(first.wake) / 1e6)},
		{Name: "last_wake_index_mb", Value: result.Number(float64(last.wake) / 1e6)},
		{Name: "dead_rows", Value: result.Number(last.dead)},
		{Name: "autovacuums", Value: result.Number(last.autovacuums)},
	}}
	if last.index == 0 { // SQLite has one file, and no figures of its tables
		for i := range r.Figures {
			if slices.Contains([]string{"first_index_bytes_per_run", "last_index_bytes_per_run", "first_wake_index_mb", "last_wake_index_mb", "dead_rows", "autovacuums"}, r.Figures[i].Name) {
				r.Figures[i].Value = result.Unknown
			}
		}
	}
	return r
}

// health reads the statistics of the database or, for SQLite, only the size of its files.
func (at *site) health(ctx context.Context, e *durable.Engine) (h health, err error) {
	h.ended = e.Stats().EndedExecutions
	if at.pg == nil {
		h.table, err = at.size(ctx)
		return h, err
	}
	conn, err := pgx.Connect(ctx, at.address)
	if err != nil {
		return h, err
	}
	defer conn.Close(context.Background())
	err = conn.QueryRow(ctx, statement("health.postgres.sql")).Scan(&h.table, &h.index, &h.wake, &h.dead, &h.autovacuums)
	return h, err
}
