package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// queuesSchedules measures what an idle schedule costs, and how long schedules that are due at once and a large
// Backfill take.
func (b *bench) queuesSchedules(at *site) error {
	if err := b.idleSchedule(at); err != nil {
		return err
	}
	return b.busySchedules(at)
}

// idleSchedule compares an idle worker with one that has a schedule which is not due.
func (b *bench) idleSchedule(at *site) error {
	const without, with = "without", "with"
	type cost struct{ cpu, xacts result.Number }
	window := b.window
	if !b.tight {
		window = max(window, 3*time.Second)
	}
	w := durable.Define("scheduled", func(_ *durable.Ctx, in int) (int, error) { return in, nil })
	costs, err := inTurns(b, at, []string{without, with}, func(path string) (c cost, err error) {
		client, err := b.queueClient(at)
		if err != nil {
			return c, err
		}
		if path == with {
			err = client.engine.SetSchedule(b.ctx, w.Schedule(1, durable.Schedule{Name: "idle", Cron: "@yearly"}))
		} else if err = client.engine.DeleteSchedule(b.ctx, "idle"); errors.Is(err, durable.ErrNotFound) {
			err = nil
		}
		if err = errors.Join(err, client.store.Close()); err != nil {
			return c, err
		}
		before, err := at.gauge(b.ctx)
		if err != nil {
			return c, err
		}
		here, err := at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{w}})
		if err != nil {
			return c, err
		}
		began := processorTime()
		err = b.pause(window)
		c.cpu = result.Number((processorTime() - began).Seconds() / window.Seconds() * 100)
		if err = errors.Join(err, here.dismiss()); err != nil {
			return c, err
		}
		after, err := at.gauge(b.ctx)
		c.xacts = result.Unknown
		if at.pg != nil {
			c.xacts = result.Number(float64(after.commits-before.commits) / window.Seconds())
		}
		return c, err
	})
	if err != nil {
		return err
	}
	cpu := func(c cost) result.Number { return c.cpu }
	xacts := func(c cost) result.Number { return c.xacts }
	b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: "idle-schedule", Figures: []result.Figure{
		figure("cpu_percent", costs[with], cpu),
		figure("without_cpu_percent", costs[without], cpu),
		figure("xacts_per_s", costs[with], xacts),
		figure("without_xacts_per_s", costs[without], xacts),
	}})
	return nil
}

// scheduleTest is a worker that executes the runs of schedules, a schedule that fires each second, and a client that starts
// other runs meanwhile.
type scheduleTest struct {
	*bench
	here, client *worker
	fired        *durable.Workflow[int, int]
	probe        *durable.Workflow[int64, int]

	begun  atomic.Int64 // runs of fired
	mu     sync.Mutex
	late   []time.Duration // of the schedule that fires each second
	probes []time.Duration // from the call of Start to the call of the function
}

func (b *bench) openAgenda(at *site) (_ *scheduleTest, err error) {
	a := &scheduleTest{bench: b}
	a.fired = durable.Define("fired", func(_ *durable.Ctx, in int) (int, error) { a.begun.Add(1); return in, nil })
	a.probe = durable.Define("probe", func(_ *durable.Ctx, at int64) (int, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.probes = append(a.probes, time.Since(time.Unix(0, at)))
		return 0, nil
	})
	pulse := durable.Define("pulse", func(c *durable.Ctx, in int) (int, error) {
		a.mu.Lock()
		defer a.mu.Unlock()
		a.late = append(a.late, time.Since(durable.ScheduledAt(c)))
		return in, nil
	})
	if a.client, err = b.queueClient(at, a.fired); err != nil {
		return nil, err
	}
	if a.here, err = at.openWorker(b.ctx, durable.Config{Workflows: []durable.Definition{a.fired, a.probe, pulse}}); err != nil {
		return nil, errors.Join(err, a.client.store.Close())
	}
	err = a.client.engine.SetSchedule(b.ctx, pulse.Schedule(1, durable.Schedule{Name: "pulse", Every: time.Second, Overlap: durable.OverlapAllow}))
	if err != nil {
		return nil, errors.Join(err, a.close())
	}
	return a, nil
}

func (a *scheduleTest) close() error {
	return errors.Join(a.here.dismiss(), a.client.store.Close())
}

// during starts a run of probe every 20 ms while work is done, and returns the quantiles of their dispatch, and how late
// the schedule of each second was at most.
func (a *scheduleTest) during(work func() error) (figures []result.Figure, err error) {
	a.mu.Lock()
	a.probes, a.late = nil, nil
	a.mu.Unlock()
	ctx, stop := context.WithCancel(a.ctx)
	failed := newFailure()
	var probing sync.WaitGroup
	probing.Go(func() {
		for sleep(ctx, 20*time.Millisecond) {
			_, err := a.probe.Start(a.ctx, a.client.engine, time.Now().UnixNano())
			failed.set(err)
		}
	})
	err = work()
	if err == nil && !a.tight {
		err = a.pause(2 * time.Second) // the probes that have been started are executed, and the second after
	}
	stop()
	probing.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	probes, late := milliseconds(a.probes), milliseconds(a.late)
	return []result.Figure{
		{Name: "probe_p50_ms", Value: quantile(probes, 0.5)},
		{Name: "probe_p99_ms", Value: quantile(probes, 0.99)},
		{Name: "probe_max_ms", Value: quantile(probes, 1)},
		{Name: "second_late_max_ms", Value: quantile(late, 1)},
	}, errors.Join(err, failed.get())
}

// await waits until n runs of fired have begun.
func (a *scheduleTest) await(n int64) error {
	seen, moved := int64(-1), time.Now()
	for {
		now := a.begun.Load()
		switch {
		case now >= n:
			return nil
		case now != seen:
			seen, moved = now, time.Now()
		case time.Since(moved) > stallTimeout:
			return fmt.Errorf("%d of %d runs of schedules have begun, and no more for %v", now, n, stallTimeout)
		}
		if err := a.pause(time.Millisecond); err != nil {
			return err
		}
	}
}

func (b *bench) busySchedules(at *site) (err error) {
	a, err := b.openAgenda(at)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.close()) }()
	quiet, err := a.during(func() error { return b.pause(b.window) })
	if err != nil {
		return err
	}
	b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: "no-schedule-due", Figures: quiet})

	due, created, err := a.together(b.schedules)
	if err != nil {
		return err
	}
	var first, all time.Duration
	figures, err := a.during(func() error {
		if err := b.pause(time.Until(due)); err != nil {
			return err
		}
		if err := a.await(1); err != nil {
			return err
		}
		first = time.Since(due)
		err := a.await(int64(b.schedules))
		all = time.Since(due)
		return err
	})
	if err != nil {
		return err
	}
	b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: "schedules-at-once", Figures: append([]result.Figure{
		{Name: "schedules", Value: result.Number(b.schedules)},
		{Name: "created_per_s", Value: result.Number(float64(b.schedules) / created.Seconds())},
		{Name: "first_ms", Value: result.Number(inMS(first))},
		{Name: "all_ms", Value: result.Number(inMS(all))},
		{Name: "fired_per_s", Value: result.Number(float64(b.schedules) / all.Seconds())},
	}, figures...)})

	const backfilled = "backfilled"
	if err := a.client.engine.SetSchedule(b.ctx, a.fired.Schedule(1, durable.Schedule{Name: backfilled, Every: time.Second, Overlap: durable.OverlapAllow})); err != nil {
		return err
	}
	if err := a.client.engine.PauseSchedule(b.ctx, backfilled); err != nil {
		return err
	}
	before := a.begun.Load()
	to := time.Now().Add(-time.Hour).Truncate(time.Second)
	var started time.Duration
	figures, err = a.during(func() error {
		began := time.Now()
		done, err := a.client.engine.Backfill(b.ctx, backfilled, to.Add(-time.Duration(b.backfill)*time.Second), to)
		started = time.Since(began)
		if err == nil && done.Started != b.backfill {
			err = fmt.Errorf("backfill of %d times: %+v", b.backfill, done)
		}
		if err == nil {
			err = a.await(before + int64(b.backfill))
		}
		all = time.Since(began)
		return err
	})
	if err != nil {
		return err
	}
	b.add(&result.Row{Mode: modeQueues, Store: at.store, Path: "backfill", Figures: append([]result.Figure{
		{Name: "times", Value: result.Number(b.backfill)},
		{Name: "started_ms", Value: result.Number(inMS(started))},
		{Name: "all_ms", Value: result.Number(inMS(all))},
		{Name: "started_per_s", Value: result.Number(float64(b.backfill) / started.Seconds())},
	}, figures...)})
	return nil
}

// together creates schedules that are due at one moment, once, and returns that moment.
func (a *scheduleTest) together(n int) (due time.Time, took time.Duration, err error) {
	began := time.Now()
	due, every := commonTime(began.Add(2*time.Second + time.Duration(n)*8*time.Millisecond))
	if a.tight {
		due, every = commonTime(began.Add(time.Second))
	}
	failed := newFailure()
	var next atomic.Int64
	var callers sync.WaitGroup
	for range 16 {
		callers.Go(func() {
			for failed.get() == nil {
				i := int(next.Add(1))
				if i > n {
					return
				}
				failed.set(a.client.engine.SetSchedule(a.ctx, a.fired.Schedule(1, durable.Schedule{Name: "schedule-" + strconv.Itoa(i), Every: every})))
			}
		})
	}
	callers.Wait()
	if err := failed.get(); err != nil {
		return due, 0, err
	}
	took = time.Since(began)
	if time.Now().After(due) {
		err = fmt.Errorf("%d schedules were created in %v, after they were due: use fewer with -schedules", n, took)
	}
	return due, took, err
}

// commonTime returns a time from the given one on, and an interval of more than ten minutes with which a schedule fires at it;
// see Schedule.Every.
func commonTime(from time.Time) (at time.Time, every time.Duration) {
	for at = from.Truncate(time.Second).Add(time.Second); ; at = at.Add(time.Second) {
		for every = 10 * time.Minute; every < 24*time.Hour; every += time.Second {
			if at.Truncate(every).Equal(at) {
				return at, every
			}
		}
	}
}
