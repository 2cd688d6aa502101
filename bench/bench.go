package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// bench is one run of the command.
type bench struct {
	*options
	ctx    context.Context
	out    io.Writer
	report *result.Report

	configure func(*durable.Config) // of the engines of the local path; nil: nothing more
}

// run measures every mode on every store.
func run(ctx context.Context, o *options, out io.Writer) (err error) {
	b := &bench{options: o, ctx: ctx, out: out, report: &result.Report{
		Taken: time.Now().UTC().Format(time.RFC3339), Go: runtime.Version(), CPUs: runtime.NumCPU(), Settings: map[string]string{"go": "GOGC=" + collect()},
	}}
	b.say("go: %s", b.report.Settings["go"])
	began := time.Now()
	for _, store := range o.stores {
		if err := b.measure(store); err != nil {
			return fmt.Errorf("%s: %w", store, err)
		}
	}
	b.table()
	b.say("%.0f s in all", time.Since(began).Seconds())
	if o.json == "" {
		return nil
	}
	return b.report.Write(o.json)
}

// measure runs the modes on one store. Each mode has a database of its own.
func (b *bench) measure(store string) (err error) {
	server, err := provide(b.ctx, store, b.maxConns)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, server.close()) }()
	if b.report.Settings[store], err = server.settings(b.ctx); err != nil {
		return err
	}
	b.say("%s: %s", store, b.report.Settings[store])
	for _, name := range b.modes {
		for _, m := range modes {
			if m.name != name {
				continue
			}
			s, err := server.site(b.ctx, name)
			if err != nil {
				return err
			}
			if err := m.run(b, s); err != nil {
				return fmt.Errorf("mode %s: %w", name, errors.Join(err, s.remove()))
			}
			if err := s.remove(); err != nil {
				return err
			}
		}
	}
	return nil
}

// say prints a comment line.
func (b *bench) say(format string, args ...any) { fmt.Fprintf(b.out, "# "+format+"\n", args...) }

// add prints a row, and adds it to the report.
func (b *bench) add(r *result.Row) {
	b.report.Rows = append(b.report.Rows, r)
	fmt.Fprintln(b.out, r.Line())
}

// pause waits, unless the command is interrupted.
func (b *bench) pause(d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}
