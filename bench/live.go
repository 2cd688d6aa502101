package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

const (
	liveProcesses = 10
	spareSlots    = 100 // of each process, beside those of the runs that execute all the time
	nap           = time.Second
	nobodysQueue  = "nobody" // no worker takes runs of it
	startBranches = 50       // in which a parent starts its children
)

// listening returns a workflow that waits for a signal, and prints when it has received it.
func listening() *durable.Workflow[int, int] {
	return durable.Define("listening", func(c *durable.Ctx, in int) (int, error) {
		v, err := c.Receive[int]("go")
		if err == nil {
			say("entered", v, time.Now().UnixNano())
		}
		return in, err
	})
}

// napping returns a workflow that sleeps, and prints the nanoseconds between the end of the time and its return.
func napping() *durable.Workflow[int, int] {
	return durable.Define("napping", func(c *durable.Ctx, in int) (int, error) {
		began, err := c.Now("began")
		if err != nil {
			return 0, err
		}
		if err := c.SleepUntil("nap", began.Add(nap)); err != nil {
			return 0, err
		}
		say("late", in, time.Since(began.Add(nap)).Nanoseconds())
		return in, nil
	})
}

// family returns a workflow that starts as many children as its input says, which no worker executes, and waits.
func family() *durable.Workflow[int, int] {
	child := durable.Define("child", func(_ *durable.Ctx, in int) (int, error) { return in, nil })
	return durable.Define("family", func(c *durable.Ctx, n int) (int, error) {
		var starts []*durable.Future[int]
		for b := range startBranches {
			starts = append(starts, c.Go(strconv.Itoa(b), func(c *durable.Ctx) (int, error) {
				for i := b; i < n; i += startBranches {
					if _, err := c.StartChild(strconv.Itoa(i), child, i, durable.InQueue(nobodysQueue)); err != nil {
						return 0, err
					}
				}
				return 0, nil
			}))
		}
		if _, err := durable.All(starts...); err != nil {
			return 0, err
		}
		say("family", n)
		return c.Receive[int]("never")
	})
}

// liveMember is the main function of a process that executes the runs of mode live.
func liveMember(ctx context.Context, j *job, s durable.Store, _ <-chan string) error {
	return serve(ctx, s, durable.Config{
		Workflows:   []durable.Definition{greeting(), holding(), listening(), napping(), family(), newDormitory().workflow},
		Concurrency: j.Slots, Grace: -1,
	})
}

// live measures the dispatch, signals, timers and the control of a large tree while very many runs sleep, wait and are executed. It
// measures nothing on SQLite, where one process executes the runs.
func (b *bench) live(at *site) (err error) {
	if at.pg == nil {
		return nil
	}
	s, err := at.open(b.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	client, err := durable.New(s, durable.Config{})
	if err != nil {
		return err
	}
	l := &liveBench{bench: b, at: at, client: client, entered: make(chan string, 1024)}
	defer func() {
		for _, p := range l.processes {
			err = errors.Join(err, p.stop())
		}
	}()
	if err := l.populate(); err != nil {
		return err
	}
	dispatched, err := b.dispatchTo(at, l.entered)
	if err != nil {
		return fmt.Errorf("dispatch: %w", err)
	}
	signalled, err := l.signals()
	if err != nil {
		return fmt.Errorf("signals: %w", err)
	}
	late, err := l.timers()
	if err != nil {
		return fmt.Errorf("timers: %w", err)
	}
	figures := []result.Figure{
		{Name: "sleeping", Value: result.Number(b.options.sleepers)},
		{Name: "waiting", Value: result.Number(b.waiting)},
		{Name: "executing", Value: result.Number(b.executing)},
		{Name: "dispatch_p50_ms", Value: quantile(dispatched, 0.5)},
		{Name: "dispatch_p99_ms", Value: quantile(dispatched, 0.99)},
		{Name: "signal_p50_ms", Value: quantile(signalled, 0.5)},
		{Name: "signal_p99_ms", Value: quantile(signalled, 0.99)},
		{Name: "late_p50_ms", Value: quantile(late, 0.5)},
		{Name: "late_p99_ms", Value: quantile(late, 0.99)},
	}
	tree, err := l.control()
	if err != nil {
		return fmt.Errorf("control: %w", err)
	}
	b.add(&result.Row{Mode: "live", Store: at.store, Figures: append(figures, tree...)})
	return nil
}

// liveBench is one measurement of mode live.
type liveBench struct {
	*bench
	at        *site
	client    *durable.Engine
	processes []*process
	entered   chan string
}

// populate starts the runs and the processes, and waits until the runs that are to be executed are.
func (l *liveBench) populate() error {
	d := &sleepingRuns{worker: &worker{engine: l.client}, workflow: newDormitory().workflow}
	if err := d.startManySleepers(l.ctx, l.options.sleepers, night); err != nil {
		return err
	}
	for range liveProcesses {
		p, err := l.at.spawn(job{Role: "live", Slots: l.executing/liveProcesses + spareSlots})
		if err != nil {
			return err
		}
		l.processes = append(l.processes, p)
		if _, err := p.expect(l.ctx, "ready"); err != nil {
			return err
		}
		go func() {
			for line := range p.lines {
				l.entered <- line
			}
		}()
	}
	items := make([]durable.StartItem[int], l.waiting)
	for i := range items {
		items[i].ID = listener(i)
	}
	for len(items) > 0 {
		n := min(batchSize, len(items))
		if _, err := listening().StartMany(l.ctx, l.client, items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	if err := l.untilParked(); err != nil {
		return err
	}
	if err := startAll(l.ctx, holding(), l.client, l.executing); err != nil {
		return err
	}
	for range l.executing { // each says that it was entered
		if _, err := l.line(); err != nil {
			return err
		}
	}
	return l.at.settle(l.ctx)
}

func listener(i int) string { return "listener-" + strconv.Itoa(i) }

// untilParked waits until all listening runs wait.
func (l *liveBench) untilParked() error {
	conn, err := pgx.Connect(l.ctx, l.at.address)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	for before, moved := -1, time.Now(); ; {
		var n int
		if err := conn.QueryRow(l.ctx, statement("parked.postgres.sql"), listening().Name()).Scan(&n); err != nil {
			return err
		}
		switch {
		case n >= l.waiting:
			return nil
		case n != before:
			before, moved = n, time.Now()
		case time.Since(moved) > stallTimeout:
			return fmt.Errorf("%d of %d runs wait, and no further one for %v", n, l.waiting, stallTimeout)
		}
		if !sleep(l.ctx, 200*time.Millisecond) {
			return context.Cause(l.ctx)
		}
	}
}

// line returns the next line of one of the processes.
func (l *liveBench) line() (string, error) {
	ctx, cancel := context.WithTimeoutCause(l.ctx, 2*stallTimeout, errors.New("no process has reported anything for "+(2*stallTimeout).String()))
	defer cancel()
	select {
	case line := <-l.entered:
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

// signals measures the time from the call of Signal until the waiting run continues.
func (l *liveBench) signals() ([]float64, error) {
	var took []time.Duration
	n := min(l.samples, l.waiting)
	for i := range n {
		if err := l.pause(dispatchPause()); err != nil {
			return nil, err
		}
		began := time.Now()
		if err := l.client.Signal(l.ctx, listener(i*(l.waiting/n)), "go", held0+i); err != nil {
			return nil, err
		}
		when, err := l.awaitEntered(l.entered, held0+i)
		if err != nil {
			return nil, err
		}
		took = append(took, when.Sub(began))
	}
	return milliseconds(took), nil
}

// timers measures how late runs continue after a sleep.
func (l *liveBench) timers() ([]float64, error) {
	var late []time.Duration
	for i := range l.samples {
		if err := l.pause(dispatchPause()); err != nil {
			return nil, err
		}
		if _, err := napping().Start(l.ctx, l.client, i); err != nil {
			return nil, err
		}
	}
	for range l.samples {
		line, err := l.line()
		if err != nil {
			return nil, err
		}
		var number, ns int64
		if !scanned(line, "late %d %d", &number, &ns) {
			return nil, fmt.Errorf("a process said %q", line)
		}
		late = append(late, time.Duration(ns))
	}
	return milliseconds(late), nil
}

// control measures how long it takes to pause, resume and cancel a parent with its children, and for how long at the most the start
// of another run takes meanwhile.
func (l *liveBench) control() (figures []result.Figure, err error) {
	parent, err := family().Start(l.ctx, l.client, l.children)
	if err != nil {
		return nil, err
	}
	if _, err := l.line(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(l.ctx)
	slowest, failed := make(chan time.Duration, 1), newFailure()
	go func() {
		most := time.Duration(0)
		for ctx.Err() == nil {
			began := time.Now()
			_, err := greeting().Start(l.ctx, l.client, 0, durable.Delay(night))
			failed.set(err)
			most = max(most, time.Since(began))
			sleep(ctx, time.Millisecond)
		}
		slowest <- most
	}()
	for _, verb := range []struct {
		name string
		call func(context.Context, string, ...durable.ControlOption) (durable.ControlResult, error)
	}{{"pause_ms", l.client.Pause}, {"resume_ms", l.client.Resume}, {"cancel_ms", l.client.Cancel}} {
		began := time.Now()
		_, err := verb.call(l.ctx, parent.ID())
		failed.set(err)
		figures = append(figures, result.Figure{Name: verb.name, Value: result.Number(time.Since(began).Seconds() * 1000)})
	}
	stop()
	most := <-slowest
	return append([]result.Figure{{Name: "children", Value: result.Number(l.children)}}, append(figures,
		result.Figure{Name: "blocked_max_ms", Value: result.Number(most.Seconds() * 1000)})...), failed.get()
}
