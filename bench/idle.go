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

// idlersPerProcess is how many workers one process of mode idle has. Each has a store, and so connections, of its own.
const idlersPerProcess = 5

// idleSettling is how long the workers are left alone before they are measured, so that connections that only the beginning needs
// are closed.
const idleSettling = 45 * time.Second

// idlers is the main function of a process with workers that wait for runs of the workflows of modes dispatch and takeover.
func idlers(ctx context.Context, j *job, _ durable.Store, _ <-chan string) (err error) {
	ended := make(chan error, j.Workers)
	began := make(chan struct{}, j.Workers)
	for range j.Workers {
		s, err := openStore(ctx, j.Store, j.Address)
		if err != nil {
			return err
		}
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{greeting(), holding()}, Grace: -1})
		if err != nil {
			return errors.Join(err, s.Close())
		}
		go func() { ended <- errors.Join(e.Run(ctx), s.Close()) }()
		go func() {
			for e.Stats().ClaimQueries == 0 && sleep(ctx, time.Millisecond) {
			}
			began <- struct{}{}
		}()
	}
	for range j.Workers {
		<-began
	}
	say("ready")
	for range j.Workers {
		err = errors.Join(err, <-ended)
	}
	return err
}

// idle measures what workers without work cost: transactions and connections as the server counts them, and processor time. Then it
// measures the dispatch to them, and the takeover by them of the run of a killed process.
func (b *bench) idle(at *site) (err error) {
	var fleet []*process
	defer func() {
		for _, p := range fleet {
			err = errors.Join(err, p.stop())
		}
	}()
	entered := make(chan string, 1024)
	for left := b.workers; left > 0; left -= idlersPerProcess {
		p, err := at.spawn(job{Role: "idlers", Workers: min(left, idlersPerProcess)})
		if err != nil {
			return err
		}
		fleet = append(fleet, p)
		if _, err := p.expect(b.ctx, "ready"); err != nil {
			return err
		}
	}
	processorTimes := func() (sum time.Duration) {
		for _, p := range fleet {
			sum += timesOf(strconv.Itoa(p.cmd.Process.Pid), 2)
		}
		return sum
	}
	if err := b.pause(b.settling()); err != nil {
		return err
	}
	began, used := time.Now(), processorTimes()
	before, _, err := at.activity(b.ctx)
	if err != nil {
		return err
	}
	var conns []float64
	for i := range 10 {
		if err := b.pause(time.Until(began.Add(b.watched * time.Duration(i+1) / 10))); err != nil {
			return err
		}
		_, now, err := at.activity(b.ctx)
		if err != nil {
			return err
		}
		conns = append(conns, now)
	}
	after, _, err := at.activity(b.ctx)
	if err != nil {
		return err
	}
	seconds, each := time.Since(began).Seconds(), float64(b.workers)
	cpu := (processorTimes() - used).Seconds()
	for _, p := range fleet {
		go func() {
			for line := range p.lines {
				entered <- line
			}
		}()
	}
	late, err := b.dispatchTo(at, entered)
	if err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	took, err := b.takeoversBy(at, entered)
	if err != nil {
		return fmt.Errorf("takeover: %w", err)
	}
	b.add(&result.Row{Mode: "idle", Store: at.store, Figures: []result.Figure{
		{Name: "workers", Value: result.Number(each)},
		{Name: "xacts_per_s_each", Value: result.Number((after - before) / seconds / each)},
		{Name: "conns_each", Value: quantile(conns, 0.5) / result.Number(each)},
		{Name: "cpu_percent_each", Value: result.Number(100 * cpu / seconds / each)},
		{Name: "dispatch_p50_ms", Value: quantile(late, 0.5)},
		{Name: "dispatch_p99_ms", Value: quantile(late, 0.99)},
		{Name: "takeover_p50_ms", Value: quantile(took, 0.5)},
		{Name: "takeover_p99_ms", Value: quantile(took, 0.99)},
	}})
	return nil
}

func (b *bench) settling() time.Duration {
	if b.tight {
		return time.Millisecond
	}
	return idleSettling
}

// activity returns the transactions that the server has counted in this database, and the connections to it. On SQLite both are
// unknown.
func (at *site) activity(ctx context.Context) (transactions, conns float64, err error) {
	if at.pg == nil {
		return float64(result.Unknown), float64(result.Unknown), nil
	}
	err = at.admin.QueryRow(ctx, statement("commits.postgres.sql"), at.name).Scan(&transactions, &conns)
	return transactions, conns, err
}

// dispatchTo measures the time from the call of Start in this process until one of the workers calls the function.
func (b *bench) dispatchTo(at *site, entered <-chan string) (late []float64, err error) {
	s, err := at.open(b.ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	client, err := durable.New(s, durable.Config{})
	if err != nil {
		return nil, err
	}
	const unmeasured = 3 // connections are made and statements prepared
	var times []time.Duration
	for i := range unmeasured + b.samples {
		if err := b.pause(dispatchPause()); err != nil {
			return nil, err
		}
		began := time.Now()
		if _, err := greeting().Start(b.ctx, client, i); err != nil {
			return nil, err
		}
		when, err := b.awaitEntered(entered, i)
		if err != nil {
			return nil, err
		}
		if i >= unmeasured {
			times = append(times, when.Sub(began))
		}
	}
	return milliseconds(times), nil
}

// takeoversBy measures the time from the kill of a process with a run until one of the workers calls the run's function.
func (b *bench) takeoversBy(at *site, entered <-chan string) (took []float64, err error) {
	var times []time.Duration
	for i := range b.takeovers {
		killed, err := b.holder(at, job{Role: "holder"})
		if err != nil {
			return nil, err
		}
		number := held0 + i
		if err := b.occupy(killed, number); err != nil {
			return nil, errors.Join(err, killed.kill())
		}
		began := time.Now()
		if err := killed.kill(); err != nil {
			return nil, err
		}
		when, err := b.awaitEntered(entered, number)
		if err != nil {
			return nil, err
		}
		times = append(times, when.Sub(began))
	}
	return milliseconds(times), nil
}

// held0 is the number of the first run that is taken over. Those of dispatchTo are smaller.
const held0 = 1 << 20

// awaitEntered waits until one of the workers has called the function of the run with that number.
func (b *bench) awaitEntered(entered <-chan string, number int) (time.Time, error) {
	ctx, cancel := context.WithTimeoutCause(b.ctx, time.Minute, fmt.Errorf("no worker has called the function of run %d within a minute", number))
	defer cancel()
	for {
		select {
		case line := <-entered:
			var which int
			var ns int64
			if _, err := fmt.Sscanf(line, "entered %d %d", &which, &ns); err == nil && which == number {
				return time.Unix(0, ns), nil
			}
		case <-ctx.Done():
			return time.Time{}, context.Cause(ctx)
		}
	}
}
