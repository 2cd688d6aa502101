package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	revisedName = "revised"
	revisedLive = 6 // runs that are live at a time
	chargeCall  = "charge"
	shipStep    = "ship"
)

// revised returns the workflow whose code differs between the versions: call "charge" is a step in the first one, and a sleep in the second
// one. A run that one version has begun is held when the other one executes it, until the first of them continues it. The ledger says
// which version called a function.
func revised(book *ledger, version string) *durable.Workflow[int, string] {
	return durable.Define(revisedName, func(c *durable.Ctx, n int) (string, error) {
		call := func(step string) error {
			return c.Do(step, func(context.Context) error {
				book.add(entry{Kind: kindRevisedStep, Run: c.RunID(), Step: step, Version: version})
				return nil
			})
		}
		charge := func() error { return call(chargeCall) }
		if version == secondVersion {
			charge = func() error { return c.Sleep(chargeCall, 10*time.Millisecond) }
		}
		if err := c.Compensate("refund", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		if err := charge(); err != nil {
			return "", err
		}
		if err := c.Sleep("wait", time.Duration(100+n*37%900)*time.Millisecond); err != nil {
			return "", err
		}
		return version, call(shipStep)
	})
}

// revisedLoad starts runs of workflow revised.
type revisedLoad struct {
	controller *controller
	revised    *durable.Workflow[int, string]

	followers
	started []string // the UUIDs of the runs whose starts were acknowledged
}

func newRevisedLoad(c *controller) *revisedLoad {
	return &revisedLoad{controller: c, revised: revised(c.ledger, firstVersion)}
}

// begin starts runs until ctx ends. The function that it returns waits for the last start.
func (l *revisedLoad) begin(ctx context.Context) (done func()) {
	var atWork sync.WaitGroup
	atWork.Go(func() { l.followers.begin(ctx, 300*time.Millisecond, revisedLive, l.follow) })
	return atWork.Wait
}

// follow starts a run, and waits until it has completed. Nobody resumes it when it is held.
func (l *revisedLoad) follow(ctx context.Context, n int) error {
	ctx, cancel := context.WithTimeout(ctx, 2*finishTimeout)
	defer cancel()
	id := fmt.Sprint(revisedName, "-", n)
	var run *durable.Run[string]
	_, err := l.controller.retry(ctx, func() (err error) {
		run, err = l.revised.Start(ctx, l.controller.Engine, n, durable.ID(id))
		return err
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", id, err)
	}
	l.mu.Lock()
	l.started = append(l.started, run.RunID())
	l.mu.Unlock()
	_, err = l.controller.retry(ctx, func() error {
		_, err := run.Result(ctx)
		return err
	})
	if err != nil {
		return fmt.Errorf("I7: result of %s (%s): %w", id, run.RunID(), err)
	}
	return nil
}

// finish waits until all runs have ended.
func (l *revisedLoad) finish(ctx context.Context) error {
	l.followed.Wait()
	l.fail(l.controller.awaitAll(ctx, revisedName))
	return l.joined()
}
