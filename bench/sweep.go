package main

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// deletions is a log that adds up how many runs retention has deleted.
type deletions struct {
	slog.Handler
	runs atomic.Int64
}

// Handle implements slog.Handler.
func (d *deletions) Handle(_ context.Context, r slog.Record) error {
	if r.Message == "retention deleted what is no longer kept" {
		r.Attrs(func(a slog.Attr) bool {
			if a.Key == "count" {
				d.runs.Add(a.Value.Int64())
			}
			return true
		})
	}
	return nil
}

// WithAttrs implements slog.Handler.
func (d *deletions) WithAttrs([]slog.Attr) slog.Handler { return d }

// Enabled implements slog.Handler.
func (d *deletions) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelInfo }

// sweep measures the local path while retention deletes the older half of the finished runs in the tables, in turns with the
// same without retention.
func (b *bench) sweep(at *site) error {
	if err := b.makeTables(at); err != nil {
		return err
	}
	if err := b.age(at, b.options.swept); err != nil {
		return err
	}
	defer func() { b.configure = nil }()
	log := &deletions{Handler: slog.DiscardHandler}
	samples := map[string][]*sample{}
	swept := time.Duration(0)
	for range b.options.rounds {
		for _, name := range []string{"idle", "sweeping"} {
			b.configure = func(c *durable.Config) {
				c.Logger, c.Poll = slog.New(log), 10*time.Millisecond // a sweep begins within one Poll
				if name == "sweeping" {
					c.Retention = durable.Retention{Runs: durable.KeepFor(15 * 24 * time.Hour)}
				}
			}
			if err := at.settle(b.ctx); err != nil {
				return err
			}
			if err := b.pause(b.loadPause()); err != nil {
				return err
			}
			began := time.Now()
			s, err := b.path(at, pathLocal, b.callerCount(agedCallers), 0)
			if err != nil {
				return err
			}
			if name == "sweeping" {
				swept += time.Since(began)
			}
			samples[name] = append(samples[name], s)
		}
	}
	sweeping := row(at.store, "sweeping", b.callerCount(agedCallers), samples)
	idle := row(at.store, "idle", b.callerCount(agedCallers), samples)
	b.add(&result.Row{Mode: "sweep", Store: at.store, Path: pathLocal, C: b.callerCount(agedCallers), Figures: []result.Figure{
		{Name: "old_runs", Value: result.Number(b.options.swept)},
		{Name: "wf_per_s", Value: sweeping.Get("wf_per_s")},
		{Name: "idle_wf_per_s", Value: idle.Get("wf_per_s")},
		{Name: "idle_ratio", Value: sweeping.Get("wf_per_s") / idle.Get("wf_per_s")},
		{Name: "p99_ms", Value: sweeping.Get("p99_ms")},
		{Name: "idle_p99_ms", Value: idle.Get("p99_ms")},
		{Name: "swept_per_s", Value: result.Number(float64(log.runs.Load()) / swept.Seconds())},
	}})
	return nil
}
