package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"syscall"
	"time"
)

// faults injects faults into the workers, one kind after the other, in an order that the seed
// determines. It also starts the faults of the servers.
type faults struct {
	place   place
	workers *workers
	rand    *rand.Rand
	killer  *killerRun
	kinds   []func(context.Context)

	mu      sync.Mutex
	busy    []bool // whether a fault is under way, by worker
	kill9   int
	sigstop int
	errs    []error
	running sync.WaitGroup // a goroutine for each fault that is under way
}

func newFaults(p place, w *workers, seed uint64) *faults {
	f := &faults{place: p, workers: w, rand: rand.New(rand.NewPCG(seed, 1)), busy: make([]bool, len(w.processes)), killer: &killerRun{place: p}}
	f.kinds = []func(context.Context){f.kill, f.stop}
	return f
}

// injectFaults injects faults until ctx ends, each kind at least once. All workers and the servers are up again when it
// returns.
func (f *faults) injectFaults(ctx context.Context) error {
	killed := f.killer.begin(ctx)
	if f.place.servers != nil {
		f.running.Go(func() {
			if err := f.place.servers.injectFaults(ctx); err != nil {
				f.fail(fmt.Errorf("the servers: %w", err))
			}
		})
	}
	order := f.rand.Perm(len(f.kinds))
	for n := 0; sleepCtx(ctx, time.Duration(600+f.rand.IntN(1000))*time.Millisecond) == nil; n++ {
		kind := f.rand.IntN(len(f.kinds))
		if n < len(order) {
			kind = order[n]
		}
		f.kinds[kind](ctx)
	}
	f.running.Wait()
	killed()
	return errors.Join(append(f.errs, f.workers.startMissing())...)
}

// fail records the error of a fault that could not be injected.
func (f *faults) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.errs = append(f.errs, err)
}

// pickWorker returns a worker to which no other fault is under way, or -1 if there is none.
func (f *faults) pickWorker() int {
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

// injectInto calls do, which injects a fault into worker i, in a new goroutine.
func (f *faults) injectInto(i int, do func() error) {
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
func (f *faults) kill(ctx context.Context) {
	i, delay := f.pickWorker(), time.Duration(f.rand.IntN(400))*time.Millisecond
	if i < 0 {
		return
	}
	f.kill9++
	f.injectInto(i, func() error {
		f.workers.kill(i)
		_ = sleepCtx(ctx, delay) // ctx may end first
		return f.workers.start(i)
	})
}

// stop stops a worker (SIGSTOP) for longer than its leases last, and continues it.
func (f *faults) stop(ctx context.Context) {
	i, delay := f.pickWorker(), lease*time.Duration(120+f.rand.IntN(100))/100
	if i < 0 {
		return
	}
	f.sigstop++
	p := f.workers.worker(i)
	f.injectInto(i, func() error {
		if err := p.signal(syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stop a worker: %w", err)
		}
		_ = sleepCtx(context.WithoutCancel(ctx), delay) // ctx does not shorten the wait, because a shorter stop would cause no fault
		return p.signal(syscall.SIGCONT)
	})
}

// sleepCtx waits for d. It returns the error of ctx if that ends first.
func sleepCtx(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
