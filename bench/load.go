package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// load is a number of concurrent callers. Each of them executes one workflow after the other (a closed
// loop).
type load struct {
	callers      int
	warm, window time.Duration // the window lasts until at least one workflow has ended in it
	begin, end   func() error  // of the window; may be nil
}

// outcome is the result of a load.
type outcome struct {
	window    time.Duration   // as it was
	workflows int             // that ended in it
	steps     int             // that were done in it
	latencies []time.Duration // of those workflows, whenever they began
	all       int             // workflows, with the warm-up's
}

// A caller executes one workflow. It calls did after each step, or for all steps at the end. When did
// returns false, the time is over, and the caller need not finish the workflow.
type caller func(did func() bool) error

const (
	warming = iota
	measuring
	over
)

// run creates the callers with newCaller, runs them concurrently, and counts what they execute.
func (l load) run(ctx context.Context, newCaller func() (caller, error)) (*outcome, error) {
	var (
		phase   atomic.Int32
		ended   atomic.Bool // a workflow, in the window
		parts   = newParts(l.callers)
		failed  = newFailure()
		callers sync.WaitGroup
	)
	for i := range l.callers {
		call, err := newCaller()
		if err != nil {
			failed.set(err)
			break
		}
		callers.Go(func() { failed.set(parts[i].repeat(&phase, &ended, call)) })
	}
	ends := failed.sleep(ctx, l.warm)
	if ends == nil && l.begin != nil {
		ends = l.begin()
	}
	began := time.Now()
	phase.Store(measuring)
	if ends == nil {
		ends = failed.sleep(ctx, l.window)
	}
	for ends == nil && !ended.Load() { // on a slow machine a window without an end says nothing
		if ends = failed.sleep(ctx, time.Millisecond); ends == nil && time.Since(began) > l.window+stallTimeout {
			ends = fmt.Errorf("no workflow ended within %v", l.window+stallTimeout)
		}
	}
	phase.Store(over)
	o := &outcome{window: time.Since(began)}
	if ends == nil && l.end != nil {
		ends = l.end()
	}
	callers.Wait()
	for _, p := range parts {
		o.workflows += p.workflows
		o.steps += p.steps
		o.all += p.all
		o.latencies = append(o.latencies, p.latencies...)
	}
	if err := failed.get(); err != nil {
		return nil, err
	}
	return o, ends
}

// part holds the counters of one caller.
type part struct {
	workflows, steps, all int
	latencies             []time.Duration
	_                     [64]byte // the next one's counters are on another cache line
}

func newParts(n int) []*part {
	parts := make([]*part, n)
	for i := range parts {
		parts[i] = new(part)
	}
	return parts
}

func (p *part) repeat(phase *atomic.Int32, ended *atomic.Bool, call caller) error {
	did := func() bool {
		now := phase.Load()
		if now == measuring {
			p.steps++
		}
		return now != over
	}
	for phase.Load() != over {
		began := time.Now()
		if err := call(did); err != nil {
			return err
		}
		p.all++
		if phase.Load() == measuring {
			p.workflows++
			ended.Store(true)
			p.latencies = append(p.latencies, time.Since(began))
		}
	}
	return nil
}

// failure is the first error of several goroutines.
type failure struct {
	once sync.Once
	err  error
	came chan struct{}
}

func newFailure() *failure { return &failure{came: make(chan struct{})} }

func (f *failure) set(err error) {
	if err != nil {
		f.once.Do(func() {
			f.err = err
			close(f.came)
		})
	}
}

func (f *failure) get() error {
	select {
	case <-f.came:
		return f.err
	default:
		return nil
	}
}

// sleep waits. It returns an error if a goroutine fails or ctx ends.
func (f *failure) sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-f.came:
		return f.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
