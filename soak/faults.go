package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	_ "embed"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

//go:embed terminate.sql
var terminateQuery string

// faults injects faults, one kind after the other, as the seed draws them.
type faults struct {
	place   place
	workers *workers
	rand    *rand.Rand
	killer  *killerRun
	kinds   []func(context.Context) error

	mu         sync.Mutex
	busy       []bool // whether a fault is under way, by worker
	kill9      int
	sigstop    int
	immediate  int
	terminated int
	errs       []error
	running    sync.WaitGroup // a goroutine for each fault that is under way
}

func newFaults(p place, w *workers, seed uint64) *faults {
	f := &faults{place: p, workers: w, rand: rand.New(rand.NewPCG(seed, 1)), busy: make([]bool, len(w.processes)), killer: &killerRun{place: p}}
	f.kinds = []func(context.Context) error{f.kill, f.stop}
	if p.server != nil {
		f.kinds = append(f.kinds, f.terminate, f.immediately)
	}
	return f
}

// run injects faults until ctx ends, each kind at least once. All workers and the server are up again when it
// returns.
func (f *faults) run(ctx context.Context) error {
	killing := f.killer.begin(ctx)
	order := f.rand.Perm(len(f.kinds))
	for n := 0; ; n++ {
		if wait(ctx, time.Duration(400+f.rand.IntN(800))*time.Millisecond) != nil {
			break
		}
		kind := f.rand.IntN(10)
		switch {
		case n < len(order):
			kind = order[n]
		case kind < 4:
			kind = 0
		case kind < 8:
			kind = 1
		default:
			kind = f.rand.IntN(len(f.kinds))
		}
		if err := f.kinds[kind](ctx); err != nil {
			f.errs = append(f.errs, err)
			break
		}
	}
	f.running.Wait()
	killing()
	return errors.Join(append(f.errs, f.workers.startMissing())...)
}

// pick returns a worker to which no other fault is under way, or -1 if there is none.
func (f *faults) pick() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, i := range f.rand.Perm(len(f.busy)) {
		if !f.busy[i] {
			f.busy[i] = true
			return i
		}
	}
	return -1
}

// during calls do, a fault of worker i, in a goroutine of its own.
func (f *faults) during(i int, do func() error) {
	f.running.Go(func() {
		err := do()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.busy[i] = false
		if err != nil {
			f.errs = append(f.errs, err)
		}
	})
}

// kill kills a worker, and starts another less than 400 ms later.
func (f *faults) kill(ctx context.Context) error {
	i, delay := f.pick(), time.Duration(f.rand.IntN(400))*time.Millisecond
	if i < 0 {
		return nil
	}
	f.kill9++
	f.during(i, func() error {
		f.workers.kill(i)
		_ = wait(ctx, delay) // ctx may end first
		return f.workers.start(i)
	})
	return nil
}

// stop stops a worker (SIGSTOP) for longer than its leases last, and continues it.
func (f *faults) stop(ctx context.Context) error {
	i, delay := f.pick(), lease*time.Duration(120+f.rand.IntN(100))/100
	if i < 0 {
		return nil
	}
	f.sigstop++
	p := f.workers.worker(i)
	f.during(i, func() error {
		if err := p.signal(syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stop a worker: %w", err)
		}
		_ = wait(context.WithoutCancel(ctx), delay) // a shorter time would be no fault
		return p.signal(syscall.SIGCONT)
	})
	return nil
}

// terminate ends the connections of all workers and of the controller.
func (f *faults) terminate(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, f.place.Address)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var n int
	if err := conn.QueryRow(ctx, terminateQuery).Scan(&n); err != nil {
		return unlessEnded(ctx, err)
	}
	f.terminated += n
	return nil
}

// immediately stops the server in immediate mode, and starts it again.
func (f *faults) immediately(ctx context.Context) error {
	if err := f.place.server.Stop(pgtest.Immediate); err != nil {
		return err
	}
	f.immediate++
	_ = wait(ctx, time.Duration(50+f.rand.IntN(500))*time.Millisecond)
	return f.place.server.Restart(context.WithoutCancel(ctx))
}

// unlessEnded returns nil if ctx has ended, and err otherwise.
func unlessEnded(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// wait waits for d. It returns the error of ctx if that ends first.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
