package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

const (
	agedCallers = 100
	agedBatch   = 100_000 // runs of one statement
)

// aged measures the local and the claimed path with tables full of finished runs. It alternates with
// empty tables on the same server. The finished runs ended during the last thirty days, and have two
// steps each.
func (b *bench) aged(at *site) (err error) {
	young, err := at.site(b.ctx, "young")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, young.remove()) }()
	if err := b.makeTables(young); err != nil { // makes the tables
		return err
	}
	if err := b.makeTables(at); err != nil {
		return err
	}
	if err := b.age(at, b.options.aged); err != nil {
		return err
	}
	samples := map[string]map[string][]*sample{pathLocal: {}, pathClaimed: {}}
	for range b.options.rounds {
		for _, path := range []string{pathLocal, pathClaimed} {
			for _, name := range []string{"young", "aged"} {
				where := map[string]*site{"young": young, "aged": at}[name]
				if err := where.settle(b.ctx); err != nil {
					return err
				}
				if err := b.pause(b.loadPause()); err != nil {
					return err
				}
				s, err := b.path(where, path, b.callerCount(agedCallers), 0)
				if err != nil {
					return err
				}
				samples[path][name] = append(samples[path][name], s)
			}
		}
	}
	for _, path := range []string{pathLocal, pathClaimed} {
		old := row(at.store, "aged", b.callerCount(agedCallers), samples[path])
		fresh := row(at.store, "young", b.callerCount(agedCallers), samples[path])
		b.add(&result.Row{Mode: "aged", Store: at.store, Path: path, C: b.callerCount(agedCallers), Figures: []result.Figure{
			{Name: "aged_runs", Value: result.Number(b.options.aged)},
			{Name: "wf_per_s", Value: old.Get("wf_per_s")},
			{Name: "young_wf_per_s", Value: fresh.Get("wf_per_s")},
			{Name: "young_ratio", Value: old.Get("wf_per_s") / fresh.Get("wf_per_s")},
			{Name: "p50_ms", Value: old.Get("p50_ms")},
			{Name: "young_p50_ms", Value: fresh.Get("p50_ms")},
			{Name: "p99_ms", Value: old.Get("p99_ms")},
			{Name: "young_p99_ms", Value: fresh.Get("p99_ms")},
		}})
	}
	return nil
}

// makeTables creates the tables, by opening and closing an engine.
func (b *bench) makeTables(at *site) error {
	w, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{define(b.steps, b.payload).Workflow}})
	if err != nil {
		return err
	}
	return w.dismiss()
}

// age inserts the finished runs, and updates the database's statistics.
func (b *bench) age(at *site, runs int) error {
	began := time.Now()
	insert, tidy, done, err := at.filler(b.ctx)
	if err != nil {
		return err
	}
	for from := 0; from < runs; from += agedBatch {
		to := min(from+agedBatch, runs)
		if err := insert(from, to, runs); err != nil {
			return errors.Join(fmt.Errorf("insert the finished runs %d to %d: %w", from, to, err), done())
		}
	}
	if err := errors.Join(tidy(), done()); err != nil {
		return err
	}
	bytes, err := at.size(b.ctx)
	b.say("%s: %d finished runs of two steps, %.1f GB, in %.0f s", at.store, runs, float64(bytes)/1e9, time.Since(began).Seconds())
	return err
}

// filler returns functions that insert finished runs, maintain the tables afterwards, and close the
// connection.
func (at *site) filler(ctx context.Context) (insert func(from, to, of int) error, tidy, done func() error, err error) {
	if at.pg != nil {
		conn, err := pgx.Connect(ctx, at.address)
		if err != nil {
			return nil, nil, nil, err
		}
		insert = func(from, to, of int) error {
			_, err := conn.Exec(ctx, statement("age.postgres.sql"), from, to, of, newReceipt(60).encode())
			return err
		}
		tidy = func() error {
			_, err := conn.Exec(ctx, statement("vacuum.postgres.sql"), pgx.QueryExecModeSimpleProtocol)
			return err
		}
		return insert, tidy, func() error { return conn.Close(context.Background()) }, nil
	}
	db, err := at.file(at.address)
	if err != nil {
		return nil, nil, nil, err
	}
	now := time.Now().UnixMicro()
	insert = func(from, to, of int) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer tx.Rollback() // nothing, once it has committed
		for _, file := range []string{"age_run.sqlite.sql", "age_step.sqlite.sql"} {
			if _, err := tx.ExecContext(ctx, statement(file), from, to, of, now, newReceipt(60).encode()); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
	return insert, func() error { return nil }, db.Close, nil
}
