package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/bench/result"
	"github.com/seed8ec063be/durable/internal/store"
)

// holding returns a workflow that prints when it is entered, and does not end by itself.
func holding() *durable.Workflow[int, int] {
	return durable.Define("holding", func(c *durable.Ctx, in int) (int, error) {
		say("entered", in, time.Now().UnixNano())
		return c.Step("hold", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		})
	})
}

// holdingRole is the main function of a process that starts and executes such runs: those whose numbers it
// reads, and those of dead processes.
func holdingRole(ctx context.Context, j *job, s durable.Store, said <-chan string) error {
	w := holding()
	// The settings are the defaults, except that the process does not wait for its steps when it
	// stops, and may have another lease.
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1, Lease: j.Lease})
	if err != nil {
		return err
	}
	ended := begin(ctx, e)
	for line := range said {
		n, err := strconv.Atoi(line)
		if err != nil {
			return err
		}
		if _, err := w.Start(ctx, e, n, durable.ID(held(n))); err != nil {
			return err
		}
	}
	return <-ended
}

// blindHoldingRole is hold without the accelerator: the process does not detect dead workers, and waits
// until leases expire.
func blindHoldingRole(ctx context.Context, j *job, s durable.Store, said <-chan string) error {
	return holdingRole(ctx, j, blindStore{s}, said)
}

// blindStore is a store that cannot detect dead workers, as a store behind a connection pooler.
type blindStore struct{ durable.Store }

func (blindStore) DeadWorkers(context.Context, uuid.UUID, []uuid.UUID) (store.DeadWorkersResult, error) {
	return store.DeadWorkersResult{}, nil
}

func held(n int) string { return "held-" + strconv.Itoa(n) }

// takeover measures the time from kill -9 of a process until another process enters the function of
// the killed process's run. With the accelerator, processes are killed one after the other. Without
// it, they are killed at about the same time, because each takeover takes a lease.
func (b *bench) takeover(at *site) (err error) {
	s, err := at.open(b.ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	client, err := durable.New(s, durable.Config{})
	if err != nil {
		return err
	}
	seen, err := b.detectedTakeovers(at, client)
	if err != nil {
		return fmt.Errorf("with the accelerator: %w", err)
	}
	b.took(at, "accelerated", seen)
	unseen, err := b.undetectedTakeovers(at, client)
	if err != nil {
		return fmt.Errorf("by the leases' expiry: %w", err)
	}
	b.took(at, "lease", unseen)
	return nil
}

func (b *bench) took(at *site, path string, times []time.Duration) {
	ms := milliseconds(times)
	b.add(&result.Row{Mode: "takeover", Store: at.store, Path: path, Figures: []result.Figure{
		{Name: "kills", Value: result.Number(len(ms))},
		{Name: "p50_ms", Value: quantile(ms, 0.5)},
		{Name: "p99_ms", Value: quantile(ms, 0.99)},
		{Name: "max_ms", Value: quantile(ms, 1)},
	}})
}

// holder starts a process, and returns when the process executes runs.
func (b *bench) holder(at *site, j job) (*process, error) {
	p, err := at.spawn(j)
	if err != nil {
		return nil, err
	}
	if _, err := p.expect(b.ctx, "ready"); err != nil {
		return nil, errors.Join(err, p.stop())
	}
	return p, nil
}

// detectedTakeovers kills processes one after the other while another process is idle. Each killed process holds
// a run.
func (b *bench) detectedTakeovers(at *site, client *durable.Engine) (times []time.Duration, err error) {
	idle, err := b.holder(at, job{Role: "holder"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, idle.stop()) }()
	for i := range b.takeovers {
		took, err := b.takeoverOnce(at, i, idle)
		if err != nil {
			return nil, err
		}
		times = append(times, took)
		if _, err := client.Cancel(b.ctx, held(i)); err != nil {
			return nil, err
		}
	}
	return times, nil
}

func (b *bench) takeoverOnce(at *site, number int, idle *process) (time.Duration, error) {
	doomed, err := b.holder(at, job{Role: "holder"})
	if err != nil {
		return 0, err
	}
	if err := b.occupy(doomed, number); err != nil {
		return 0, errors.Join(err, doomed.kill())
	}
	killed := time.Now()
	if err := doomed.kill(); err != nil {
		return 0, err
	}
	return b.since(killed, idle, number)
}

// occupy has the process start a run, and waits until the run has been executed for a while.
func (b *bench) occupy(p *process, number int) error {
	if err := p.tell(number); err != nil {
		return err
	}
	if _, err := enteredAt(b.ctx, p, number); err != nil {
		return err
	}
	return b.pause(50*time.Millisecond + rand.N(100*time.Millisecond)) // the step's started marker is written after 20 ms
}

func (b *bench) since(killed time.Time, p *process, number int) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(b.ctx, time.Minute, errors.New("nobody took over within a minute"))
	defer cancel()
	when, err := enteredAt(ctx, p, number)
	return when.Sub(killed), err
}

// undetectedTakeovers kills many processes within about a second. It then measures how long a process that
// cannot detect dead workers takes to take over each run.
func (b *bench) undetectedTakeovers(at *site, client *durable.Engine) (times []time.Duration, err error) {
	j := job{Role: "blind"}
	if b.tight {
		j.Lease = 600 * time.Millisecond
	}
	idle, err := b.holder(at, j)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, idle.stop()) }()
	const first = 1000 // the number of the first of these runs
	doomed := make([]*process, 0, b.takeovers)
	defer func() {
		for _, p := range doomed {
			err = errors.Join(err, p.kill())
		}
	}()
	for i := range b.takeovers {
		p, err := b.holder(at, j)
		if err != nil {
			return nil, err
		}
		doomed = append(doomed, p)
		if err := b.occupy(p, first+i); err != nil {
			return nil, err
		}
	}
	killed := make(map[string]time.Time)
	for i := range b.takeovers {
		p := doomed[0]
		doomed = doomed[1:]
		killed[strconv.Itoa(first+i)] = time.Now()
		if err := p.kill(); err != nil {
			return nil, err
		}
		if err := b.pause(rand.N(100 * time.Millisecond)); err != nil {
			return nil, err
		}
	}
	for len(killed) > 0 {
		number, when, err := nextEntered(b.ctx, idle)
		if err != nil {
			return nil, err
		}
		if at, ok := killed[number]; ok {
			times = append(times, when.Sub(at))
			delete(killed, number)
		}
	}
	for i := range b.takeovers {
		if _, err := client.Cancel(b.ctx, held(first+i)); err != nil {
			return nil, err
		}
	}
	return times, nil
}
