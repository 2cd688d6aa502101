package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// claimed measures workflows that another process starts, and that this process claims and executes, as
// many at once as there are callers. The database always holds a few times as many due runs, so that
// there is always one to claim. Whenever a sixth of them have ended, the other process starts as many
// again, in one transaction.
func (b *bench) claimed(at *site, callers int, opening int64) (*sample, error) {
	w := define(b.steps, b.payload)
	return b.measureClaimed(at, &claimedLoad{
		workflow: w, callers: callers, opening: opening,
		config:  durable.Config{Workflows: []durable.Definition{w.Workflow}, Concurrency: callers},
		starter: job{Role: "starter"},
	})
}

// claimedLoad is one measurement of the claimed path.
type claimedLoad struct {
	workflow *tenSteps
	callers  int
	opening  int64
	config   durable.Config // of the worker in this process
	starter  job            // of the other process
	watch    *watch         // the worker's store; nil: it is not watched
}

// measureClaimed measures the claimed path with a load.
func (b *bench) measureClaimed(at *site, l *claimedLoad) (_ *sample, err error) {
	before, err := at.gauge(b.ctx)
	if err != nil {
		return nil, err
	}
	store, err := at.open(b.ctx)
	if err != nil {
		return nil, err
	}
	seam := store
	if l.watch != nil {
		l.watch.Store = store
		seam = l.watch
	}
	here, err := startWorker(b.ctx, seam, l.config)
	if err != nil {
		return nil, err
	}
	dismissed := false
	defer func() {
		if !dismissed {
			err = errors.Join(err, here.dismiss())
		}
	}()
	j := l.starter
	j.Steps, j.Payload = b.steps, b.payload
	there, err := at.spawn(j)
	if err != nil {
		return nil, err
	}
	f := &runFeeder{starterProcess: there, engine: here.engine, workflow: l.workflow, targetBacklog: int64(4*l.callers + 16)}
	m, err := f.measure(b.ctx, b.warm(), b.window, here.store)
	if err = errors.Join(err, there.stop()); err != nil {
		return nil, err
	}
	if err := f.finish(b.ctx); err != nil {
		return nil, err
	}
	stats := here.engine.Stats()
	dismissed = true
	if err := here.dismiss(); err != nil {
		return nil, err
	}
	after, err := at.gauge(b.ctx)
	if err != nil {
		return nil, err
	}
	s, err := m.sample(b.ctx, at)
	if err != nil {
		return nil, err
	}
	s.addJournalStats(stats)
	s.addUsage(at, before, after, l.opening, int(stats.EndedExecutions), b.steps, stats)
	if stats.EndedExecutions > 0 && after.cpu > before.cpu {
		spent := after.cpu - before.cpu + there.cmd.ProcessState.UserTime() + there.cmd.ProcessState.SystemTime()
		s.cpu = result.Number(float64(spent.Microseconds()) / float64(stats.EndedExecutions))
	}
	return s, nil
}

// runFeeder makes the other process start further runs as runs end.
type runFeeder struct {
	starterProcess *process
	engine         *durable.Engine
	workflow       *tenSteps
	targetBacklog  int64 // runs that are in the database and have not ended
	requested      int64
}

// windowCounts is the number of runs that ended, and of steps that were executed, in a window of time.
type windowCounts struct {
	from, to time.Time // on the database's clock
	took     time.Duration
	ended    int64
	steps    int64
}

// stallTimeout is the time without an ended run after which the measurement fails.
const stallTimeout = 20 * time.Second

func (f *runFeeder) measure(ctx context.Context, warm, window time.Duration, s durable.Store) (m windowCounts, err error) {
	// The other process has begun to start runs when the first run has ended.
	if err := f.requestUntil(ctx, func() bool { return f.engine.Stats().EndedExecutions > 0 }); err != nil {
		return m, err
	}
	timer := time.Now().Add(warm)
	if err := f.requestUntil(ctx, func() bool { return time.Now().After(timer) }); err != nil {
		return m, err
	}
	if m.from, err = s.Now(ctx); err != nil {
		return m, err
	}
	began, ended, steps := time.Now(), f.engine.Stats().EndedExecutions, f.workflow.done.Load()
	if err := f.requestUntil(ctx, func() bool { return time.Since(began) >= window && f.engine.Stats().EndedExecutions > ended }); err != nil {
		return m, err
	}
	m.ended, m.steps, m.took = f.engine.Stats().EndedExecutions-ended, f.workflow.done.Load()-steps, time.Since(began)
	m.to, err = s.Now(ctx)
	return m, err
}

// requestUntil requests new runs as others end, until enough returns true.
func (f *runFeeder) requestUntil(ctx context.Context, enough func() bool) error {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	ended, moved := int64(-1), time.Now()
	for !enough() {
		now := f.engine.Stats().EndedExecutions
		if now != ended {
			ended, moved = now, time.Now()
		} else if time.Since(moved) > stallTimeout {
			return fmt.Errorf("no run has ended for %v: %+v", stallTimeout, f.engine.Stats())
		}
		// If the other process started one run at a time, its starts would cost as much as the claims.
		if more := f.targetBacklog + now - f.requested; more > 0 && more >= f.targetBacklog/6 {
			if err := f.starterProcess.tell(more); err != nil {
				return err
			}
			f.requested += more
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

// finish waits until all requested runs have ended, so that none is left for the next measurement. The
// other process has ended, so all of them are started.
func (f *runFeeder) finish(ctx context.Context) error {
	f.targetBacklog = 0
	return f.requestUntil(ctx, func() bool { return f.engine.Stats().EndedExecutions >= f.requested })
}

// startRole is the role of the other process. It starts the requested number of runs, and returns when its
// input has ended and all of them are started.
func startRole(ctx context.Context, j *job, s durable.Store, said <-chan string) error {
	ctx = context.WithoutCancel(ctx) // what was asked for is started, even if no more is
	w := define(j.Steps, j.Payload)
	e, err := durable.New(s, durable.Config{})
	if err != nil {
		return err
	}
	for {
		n, open, err := readNumbers(said)
		if err != nil {
			return err
		}
		for n > 0 {
			items := make([]durable.StartItem[int], min(n, 500))
			for i := range items {
				items[i].Input = 1
			}
			if _, err := w.StartMany(ctx, e, items); err != nil {
				return err
			}
			n -= len(items)
		}
		if !open {
			return nil
		}
	}
}

// readNumbers waits for a number, and returns the sum of it and all further numbers that have arrived.
func readNumbers(said <-chan string) (sum int, open bool, err error) {
	line, open := <-said
	for open {
		n, err := strconv.Atoi(line)
		if err != nil {
			return 0, true, err
		}
		sum += n
		select {
		case line, open = <-said:
		default:
			return sum, true, nil
		}
	}
	return sum, false, nil
}

// sample reads the latencies from the rows of the runs: from the start in the other process to the end
// in this one.
func (m *windowCounts) sample(ctx context.Context, at *site) (*sample, error) {
	latencies, err := at.latencies(ctx, m.from, m.to, workflowName)
	if err == nil && len(latencies) == 0 { // the rows have the times before the commits, which a slow disk may delay into the window
		latencies, err = at.latencies(ctx, m.from.Add(-stallTimeout), m.to, workflowName)
	}
	if err != nil {
		return nil, err
	}
	return &sample{
		workflows: result.Number(float64(m.ended) / m.took.Seconds()), steps: result.Number(float64(m.steps) / m.took.Seconds()),
		p50: quantile(latencies, 0.5), p99: quantile(latencies, 0.99),
		xacts: result.Unknown, bytes: result.Unknown, batch: result.Unknown, flush: result.Unknown, cpu: result.Unknown,
	}, nil
}

func (at *site) latencies(ctx context.Context, from, to time.Time, workflow string) ([]float64, error) {
	if at.pg != nil {
		conn, err := pgx.Connect(ctx, at.address)
		if err != nil {
			return nil, err
		}
		defer conn.Close(context.Background())
		rows, err := conn.Query(ctx, statement("latencies.postgres.sql"), from, to, workflow)
		if err != nil {
			return nil, err
		}
		return pgx.CollectRows(rows, pgx.RowTo[float64])
	}
	db, err := at.file(at.address)
	if err != nil {
		return nil, err
	}
	defer db.Close()
	return scan(db.QueryContext(ctx, statement("latencies.sqlite.sql"), from.UnixMicro(), to.UnixMicro(), workflow))
}

func scan(rows *sql.Rows, err error) (values []float64, _ error) {
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var v float64
		if err := rows.Scan(&v); err != nil {
			return nil, err
		}
		values = append(values, v)
	}
	return values, rows.Err()
}
