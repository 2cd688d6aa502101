package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
)

// greeting returns a workflow that prints the time at which its function was called.
func greeting() *durable.Workflow[int, int] {
	return durable.Define("greeting", func(_ *durable.Ctx, in int) (int, error) {
		say("entered", in, time.Now().UnixNano())
		return in, nil
	})
}

// greetingRole is the role of the process that executes greeting.
func greetingRole(ctx context.Context, _ *job, s durable.Store, _ <-chan string) error {
	return serve(ctx, s, durable.Config{Workflows: []durable.Definition{greeting()}})
}

// serve runs an engine until ctx ends, and tells the parent when it is ready. The caller closes the
// store.
func serve(ctx context.Context, s durable.Store, cfg durable.Config) error {
	e, err := durable.New(s, cfg)
	if err != nil {
		return err
	}
	return <-begin(ctx, e)
}

// begin runs an engine, and tells the parent when it claims runs. The channel receives the result of
// Engine.Run.
func begin(ctx context.Context, e *durable.Engine) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for e.Stats().ClaimQueries == 0 && sleep(ctx, time.Millisecond) {
	}
	say("ready")
	return ended
}

// dispatch measures the time from the call of Start in this process until an idle other process calls
// the workflow's function. It includes the commit of the start.
func (b *bench) dispatch(at *site) (err error) {
	s, err := at.open(b.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	client, err := durable.New(s, durable.Config{})
	if err != nil {
		return err
	}
	there, err := at.spawn(job{Role: "greeter"})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, there.stop()) }()
	if _, err := there.expect(b.ctx, "ready"); err != nil {
		return err
	}
	const unmeasured = 3 // connections are made and statements prepared
	var entered, started []time.Duration
	for i := range unmeasured + b.samples {
		if err := b.pause(dispatchPause()); err != nil {
			return err
		}
		began := time.Now()
		if _, err := greeting().Start(b.ctx, client, i); err != nil {
			return err
		}
		start := time.Since(began)
		when, err := enteredAt(b.ctx, there, i)
		if err != nil {
			return err
		}
		if i >= unmeasured {
			entered, started = append(entered, when.Sub(began)), append(started, start)
		}
	}
	late := milliseconds(entered)
	b.add(&result.Row{Mode: "dispatch", Store: at.store, Figures: []result.Figure{
		{Name: "runs", Value: result.Number(len(late))},
		{Name: "p50_ms", Value: quantile(late, 0.5)},
		{Name: "p99_ms", Value: quantile(late, 0.99)},
		{Name: "max_ms", Value: quantile(late, 1)},
		{Name: "start_p50_ms", Value: quantile(milliseconds(started), 0.5)},
	}})
	return nil
}

// dispatchPause returns a pause before a start. It is long enough for the other processes to be idle, and varies against their polls.
func dispatchPause() time.Duration { return 20*time.Millisecond + rand.N(60*time.Millisecond) }

// enteredAt waits until the process has called the function of the run with that number.
func enteredAt(ctx context.Context, p *process, number int) (time.Time, error) {
	for {
		which, when, err := nextEntered(ctx, p)
		if err != nil || which == strconv.Itoa(number) { // another was entered twice, after a crash
			return when, err
		}
	}
}

// nextEntered waits until the process has called a workflow's function, and returns the number of the
// run.
func nextEntered(ctx context.Context, p *process) (number string, when time.Time, err error) {
	rest, err := p.expect(ctx, "entered ")
	if err != nil {
		return "", time.Time{}, err
	}
	number, text, _ := strings.Cut(rest, " ")
	ns, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return "", time.Time{}, fmt.Errorf("read when it was entered: %w", err)
	}
	return number, time.Unix(0, ns), nil
}
