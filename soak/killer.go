package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// killerRun executes the run that kills its process, in worker processes of its own, one
// after the other.
type killerRun struct {
	place place
	kills int
	err   error
}

// begin starts a worker whenever there is none, until ctx ends. done waits for the last worker.
func (k *killerRun) begin(ctx context.Context) (done func()) {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ctx.Err() == nil && k.err == nil {
			k.err = k.work(ctx)
		}
	}()
	return func() { <-ended }
}

// work starts one worker, and waits until it is killed, or drains it when ctx ends.
func (k *killerRun) work(ctx context.Context) error {
	p, err := startProcess(job{Place: k.place, Killer: true})
	if err != nil {
		return err
	}
	select {
	case <-p.ended:
		if !p.wasKilled() {
			return fmt.Errorf("the worker of the run that kills its process was not ended by SIGKILL: %w", p.end())
		}
		k.kills++
		return sleepCtx(context.WithoutCancel(ctx), 100*time.Millisecond)
	case <-ctx.Done():
		return p.drainKiller(k)
	}
}

// drainKiller drains a worker that its run may kill meanwhile.
func (p *process) drainKiller(k *killerRun) error {
	err := p.drain()
	if err != nil && p.wasKilled() {
		k.kills++
		return nil
	}
	return err
}

// finish executes the run until it is paused by its crashes, cancels it, and waits for its end: the
// cancelled run does not call its step again.
func (k *killerRun) finish(ctx context.Context, c *controller) error {
	if k.err != nil {
		return k.err
	}
	working, enough := context.WithCancel(ctx)
	defer enough()
	done := k.begin(working)
	err := c.awaitRun(ctx, killerID, func(i *durable.RunInfo) bool { return i.Status == durable.StatusPaused })
	if err == nil {
		_, err = c.retry(ctx, func() error {
			_, err := c.Cancel(ctx, killerID)
			return err
		})
	}
	if err == nil {
		err = c.awaitRun(ctx, killerID, func(i *durable.RunInfo) bool { return i.Status == durable.StatusCancelled })
	}
	enough()
	done()
	if err != nil {
		return fmt.Errorf("I8: the run that kills its process was not paused and cancelled: %w", errors.Join(err, k.err))
	}
	return k.err
}
