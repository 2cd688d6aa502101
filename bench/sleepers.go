package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

const (
	night     = time.Hour // longer than the whole measurement
	bedsides  = 1000      // concurrent callers that start one run at a time
	nurses    = 4         // concurrent callers that start many runs in one call
	batchSize = 1000      // runs in one call of a nurse
)

// sleepingRuns holds the workflow of the sleeping runs, and how late each run woke up.
type sleepingRuns struct {
	*worker
	workflow *durable.Workflow[int64, int]

	mu   sync.Mutex
	late []time.Duration
}

// newDormitory defines a workflow whose input is the time when the run is due, by this process's
// clock. The workflow records how much later it was entered.
func newDormitory() *sleepingRuns {
	d := new(sleepingRuns)
	d.workflow = durable.Define("sleeper", func(_ *durable.Ctx, due int64) (int, error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.late = append(d.late, time.Since(time.Unix(0, due)))
		return 0, nil
	})
	return d
}

// startSleepers starts n runs, each of which begins after its delay.
func (d *sleepingRuns) startSleepers(ctx context.Context, n int, delay func(i int) time.Duration) error {
	var (
		next    atomic.Int64
		callers sync.WaitGroup
		failed  = newFailure()
	)
	for range min(n, bedsides) {
		callers.Go(func() {
			for failed.get() == nil {
				i := int(next.Add(1)) - 1
				if i >= n {
					return
				}
				after := delay(i)
				_, err := d.workflow.Start(ctx, d.engine, time.Now().Add(after).UnixNano(), durable.Delay(after))
				failed.set(err)
			}
		})
	}
	callers.Wait()
	return failed.get()
}

// startManySleepers starts n runs that begin after the delay, many of them in one call.
func (d *sleepingRuns) startManySleepers(ctx context.Context, n int, delay time.Duration) error {
	var (
		next    atomic.Int64
		callers sync.WaitGroup
		failed  = newFailure()
	)
	for range nurses {
		callers.Go(func() {
			for failed.get() == nil {
				from := int(next.Add(batchSize)) - batchSize
				if from >= n {
					return
				}
				items := make([]durable.StartItem[int64], min(batchSize, n-from))
				due := time.Now().Add(delay).UnixNano()
				for i := range items {
					items[i].Input = due
				}
				_, err := d.workflow.StartMany(ctx, d.engine, items, durable.Delay(delay))
				failed.set(err)
			}
		})
	}
	callers.Wait()
	return failed.get()
}

// sleepers measures the cost of runs that were started and are not due: how fast they are started,
// how much space they take in the database and in this process, and how late the due runs among
// them begin.
func (b *bench) sleepers(at *site) (err error) {
	d := newDormitory()
	s, err := at.open(b.ctx)
	if err != nil {
		return err
	}
	seam := &watch{Store: s}
	if d.worker, err = startWorker(b.ctx, seam, durable.Config{Workflows: []durable.Definition{d.workflow}}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, d.dismiss()) }()
	if err := d.startManySleepers(b.ctx, min(20000, b.options.sleepers), night); err != nil { // then pools, caches and stacks have their largest size
		return err
	}
	memory, database, err := at.measureSizes(b.ctx)
	if err != nil {
		return err
	}
	began := time.Now()
	if err := d.startManySleepers(b.ctx, b.options.sleepers, night); err != nil {
		return err
	}
	took := time.Since(began)
	moreMemory, moreDatabase, err := at.measureSizes(b.ctx)
	if err != nil {
		return err
	}
	n := float64(b.options.sleepers)
	due := min(1000, b.options.sleepers/10)
	seam.all()
	if err := d.wake(b.ctx, due, time.Second, 3*time.Second/time.Duration(due)); err != nil {
		return err
	}
	late, claims := milliseconds(d.late), milliseconds(seam.all())
	b.add(&result.Row{Mode: "sleepers", Store: at.store, Figures: []result.Figure{
		{Name: "runs", Value: result.Number(n)},
		{Name: "started_per_s", Value: result.Number(n / took.Seconds())},
		{Name: "db_bytes_per_run", Value: result.Number(float64(moreDatabase-database) / n)},
		{Name: "rss_bytes_per_run", Value: result.Number(float64(moreMemory-memory) / n)},
		{Name: "claim_p50_ms", Value: quantile(claims, 0.5)},
		{Name: "claim_p99_ms", Value: quantile(claims, 0.99)},
		{Name: "late_p50_ms", Value: quantile(late, 0.5)},
		{Name: "late_p99_ms", Value: quantile(late, 0.99)},
	}})
	return nil
}

// wake starts runs that are due one after the other, and waits until all have begun.
func (d *sleepingRuns) wake(ctx context.Context, n int, first, apart time.Duration) error {
	if err := d.startSleepers(ctx, n, func(i int) time.Duration { return first + time.Duration(i)*apart }); err != nil {
		return err
	}
	for limit := time.Now().Add(first + time.Duration(n)*apart + stallTimeout); d.woken() < n; {
		if time.Now().After(limit) {
			return fmt.Errorf("%d of %d runs did not begin when they were due", n-d.woken(), n)
		}
		if !sleep(ctx, 10*time.Millisecond) {
			return context.Cause(ctx)
		}
	}
	return nil
}

func (d *sleepingRuns) woken() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.late)
}

// measureSizes returns the size of this process's memory, after it has released unused memory, and of the
// database, both in bytes.
func (at *site) measureSizes(ctx context.Context) (memory, database int64, err error) {
	if err := at.settle(ctx); err != nil {
		return 0, 0, err
	}
	if database, err = at.size(ctx); err != nil {
		return 0, 0, err
	}
	runtime.GC()
	debug.FreeOSMemory() // collects garbage too: the second collection frees what pools released in the first
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return 0, 0, fmt.Errorf("measure the memory of the process, which only Linux tells: %w", err)
	}
	var all, pages int64
	_, err = fmt.Sscan(string(text), &all, &pages)
	return pages * int64(os.Getpagesize()), database, err
}

// size returns the bytes of durable's tables with their indexes or, for SQLite, of the file and its
// WAL.
func (at *site) size(ctx context.Context) (bytes int64, err error) {
	if at.pg != nil {
		conn, err := pgx.Connect(ctx, at.address)
		if err != nil {
			return 0, err
		}
		defer conn.Close(context.Background())
		err = conn.QueryRow(ctx, statement("size.postgres.sql")).Scan(&bytes)
		return bytes, err
	}
	found, err := filepath.Glob(at.address + "*")
	if err != nil {
		return 0, err
	}
	for _, name := range found {
		if name != at.address && name != at.address+"-wal" {
			continue
		}
		info, err := os.Stat(name)
		if err != nil {
			return 0, err
		}
		bytes += info.Size()
	}
	return bytes, nil
}
