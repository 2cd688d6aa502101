package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// killing is the run that kills its process each time, with workers of its own, one
// after the other.
type killing struct {
	place place
	kills int
	err   error
}

// begin hires a worker whenever there is none, until ctx ends; wait returns then.
func (k *killing) begin(ctx context.Context) (done func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil && k.err == nil {
			k.err = k.work(ctx)
		}
	}()
	return func() { <-ended }
}

// work is the life of one worker.
func (k *killing) work(ctx context.Context) error {
	p, err := start(job{Place: k.place, Killer: true})
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
		if !p.killed() {
			return fmt.Errorf("the killer's worker ended otherwise: %w", p.end())
		}
		k.kills++
		return wait(context.WithoutCancel(ctx), 100*time.Millisecond)
	case <-ctx.Done():
		return p.drainKiller(k)
	}
}

// drainKiller ends a worker that may be killed by its run meanwhile.
func (p *process) drainKiller(k *killing) error {
	err := p.drain()
	if err != nil && p.killed() {
		k.kills++
		return nil
	}
	return err
}

// settle goes on until the run is set aside, cancels it, and waits for its end: executed
// again, it finds itself cancelled before it kills.
func (k *killing) settle(ctx context.Context, b *boss) error {
	if k.err != nil {
		return k.err
	}
	working, enough := context.WithCancel(ctx)
	defer enough()
	done := k.begin(working)
	err := b.until(ctx, killerID, func(i *durable.RunInfo) bool { return i.Status == durable.StatusPaused })
	if err == nil {
		_, err = b.retry(ctx, func() error {
			_, err := b.Cancel(ctx, killerID)
			return err
		})
	}
	if err == nil {
		err = b.until(ctx, killerID, func(i *durable.RunInfo) bool { return i.Status == durable.StatusCancelled })
	}
	enough()
	done()
	if err != nil {
		return fmt.Errorf("I8: the run that kills its process was not set aside and cancelled: %w", errors.Join(err, k.err))
	}
	return k.err
}
