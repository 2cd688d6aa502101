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

// strikes does faults, one kind after the other, as the seed draws them.
type strikes struct {
	place  place
	crew   *crew
	rand   *rand.Rand
	killer *killing
	kinds  []func(context.Context) error

	mu         sync.Mutex
	busy       []bool // a worker to which something is being done
	kill9      int
	sigstop    int
	immediate  int
	terminated int
	errs       []error
	under      sync.WaitGroup // faults under way
}

func newStrikes(p place, c *crew, seed uint64) *strikes {
	s := &strikes{place: p, crew: c, rand: rand.New(rand.NewPCG(seed, 1)), busy: make([]bool, len(c.workers)), killer: &killing{place: p}}
	s.kinds = []func(context.Context) error{s.kill, s.stop}
	if p.server != nil {
		s.kinds = append(s.kinds, s.terminate, s.immediately)
	}
	return s
}

// run does faults until ctx ends, each kind at least once, and puts everything right
// again: all workers and the server are up when it returns.
func (s *strikes) run(ctx context.Context) error {
	killing := s.killer.begin(ctx)
	order := s.rand.Perm(len(s.kinds))
	for n := 0; ; n++ {
		if wait(ctx, time.Duration(400+s.rand.IntN(800))*time.Millisecond) != nil {
			break
		}
		kind := s.rand.IntN(10)
		switch {
		case n < len(order):
			kind = order[n]
		case kind < 4:
			kind = 0
		case kind < 8:
			kind = 1
		default:
			kind = s.rand.IntN(len(s.kinds))
		}
		if err := s.kinds[kind](ctx); err != nil {
			s.errs = append(s.errs, err)
			break
		}
	}
	s.under.Wait()
	killing()
	return errors.Join(append(s.errs, s.crew.fill())...)
}

// pick chooses a worker to which nothing is being done; -1 if there is none.
func (s *strikes) pick() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, i := range s.rand.Perm(len(s.busy)) {
		if !s.busy[i] {
			s.busy[i] = true
			return i
		}
	}
	return -1
}

// during does something to a worker while other faults go on.
func (s *strikes) during(i int, do func() error) {
	s.under.Go(func() {
		err := do()
		s.mu.Lock()
		defer s.mu.Unlock()
		s.busy[i] = false
		if err != nil {
			s.errs = append(s.errs, err)
		}
	})
}

// kill kills a worker, and hires another a little later.
func (s *strikes) kill(ctx context.Context) error {
	i, pause := s.pick(), time.Duration(s.rand.IntN(400))*time.Millisecond
	if i < 0 {
		return nil
	}
	s.kill9++
	s.during(i, func() error {
		s.crew.kill(i)
		_ = wait(ctx, pause) // shorter at the end
		return s.crew.hire(i)
	})
	return nil
}

// stop stops a worker for longer than its leases last, and lets it go on.
func (s *strikes) stop(ctx context.Context) error {
	i, pause := s.pick(), lease*time.Duration(120+s.rand.IntN(100))/100
	if i < 0 {
		return nil
	}
	s.sigstop++
	p := s.crew.worker(i)
	s.during(i, func() error {
		if err := p.signal(syscall.SIGSTOP); err != nil {
			return fmt.Errorf("stop a worker: %w", err)
		}
		_ = wait(context.WithoutCancel(ctx), pause) // also at the end: only so is it a fault
		return p.signal(syscall.SIGCONT)
	})
	return nil
}

// terminate ends all connections of workers and clients.
func (s *strikes) terminate(ctx context.Context) error {
	conn, err := pgx.Connect(ctx, s.place.Address)
	if err != nil {
		return s.over(ctx, err)
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var n int
	if err := conn.QueryRow(ctx, terminateQuery).Scan(&n); err != nil {
		return s.over(ctx, err)
	}
	s.terminated += n
	return nil
}

// immediately stops the server in immediate mode, and starts it again.
func (s *strikes) immediately(ctx context.Context) error {
	if err := s.place.server.Stop(pgtest.Immediate); err != nil {
		return err
	}
	s.immediate++
	_ = wait(ctx, time.Duration(50+s.rand.IntN(500))*time.Millisecond)
	return s.place.server.Restart(context.WithoutCancel(ctx))
}

// over forgets an error of a context that has ended.
func (s *strikes) over(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// wait waits for d, or less if ctx ends, and answers why.
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
