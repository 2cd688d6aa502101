package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

const (
	ask   = 15 * time.Millisecond  // between two queries of the database
	quiet = 150 * time.Millisecond // how long a paused run must send no request
	soon  = 30 * time.Second       // the time limit of every wait
)

// operator pauses, resumes and cancels orders from outside of the workers.
type operator struct {
	engine *durable.Engine       // a client
	counts func() map[string]int // number of requests to the shop, by order
	one    sync.RWMutex          // write-locked while all orders are paused
}

// withdraw cancels an order for its customer.
func (o *operator) withdraw(ctx context.Context, id string) error {
	o.one.RLock()
	defer o.one.RUnlock()
	_, err := o.engine.Cancel(ctx, id, durable.Reason("found it cheaper"), durable.Actor("customer"))
	return err
}

// hold pauses an order, calls during, checks that the paused order sends no requests, and resumes
// it.
func (o *operator) hold(ctx context.Context, id string, during func() error) error {
	o.one.RLock()
	defer o.one.RUnlock()
	const reason, actor = "a strange address", "fraud desk"
	if _, err := o.engine.Pause(ctx, id, durable.Reason(reason), durable.Actor(actor)); err != nil {
		return err
	}
	paused := func(run *durable.RunInfo) bool { return run.Status == durable.StatusPaused }
	run, err := o.until(ctx, id, "paused", paused)
	if err != nil {
		return err
	}
	if run.Reason != reason || run.PausedBy != actor {
		return fmt.Errorf("%s was paused by %q (%s), not by %q (%s)", id, run.PausedBy, run.Reason, actor, reason)
	}
	before := o.counts()[id]
	if err := during(); err != nil {
		return err
	}
	if !pause(ctx, quiet) {
		return context.Cause(ctx)
	}
	if run, err = o.engine.Get(ctx, id); err != nil {
		return err
	}
	if now := o.counts()[id]; !paused(run) || now != before {
		return fmt.Errorf("%s was paused; now it is %s, and has sent %d requests since", id, run.Status, now-before)
	}
	_, err = o.engine.Resume(ctx, id, durable.Reason("it is real"), durable.Actor(actor))
	return err
}

// freeze pauses all orders, calls during, checks that the paused runs send no requests, and resumes
// the orders.
func (o *operator) freeze(ctx context.Context, during func() error) error {
	o.one.Lock()
	defer o.one.Unlock()
	const reason, actor = "stocktaking", "warehouse"
	orders := durable.Filter{Workflow: "checkout"}
	if _, err := o.engine.PauseAll(ctx, orders, durable.Reason(reason), durable.Actor(actor)); err != nil {
		return err
	}
	if err := during(); err != nil {
		return err
	}
	frozen, err := o.awaitAllPaused(ctx)
	if err != nil {
		return err
	}
	before := o.counts()
	if !pause(ctx, quiet) {
		return context.Cause(ctx)
	}
	after := o.counts()
	for _, run := range frozen {
		if after[run.ID] != before[run.ID] {
			return fmt.Errorf("%s (%s) is paused, and has sent %d requests", run.ID, run.RunID, after[run.ID]-before[run.ID])
		}
		if run.Workflow == "checkout" && (run.Reason != reason || run.PausedBy != actor) {
			return fmt.Errorf("%s was paused by %q (%s), not by %q (%s)", run.ID, run.PausedBy, run.Reason, actor, reason)
		}
	}
	orders.Status = []durable.Status{durable.StatusPaused}
	effect, err := o.engine.ResumeAll(ctx, orders, durable.Reason("all is there"), durable.Actor(actor))
	if err == nil && effect.Done < len(frozen) {
		err = fmt.Errorf("%d runs were paused, and %d resumed", len(frozen), effect.Done)
	}
	return err
}

// awaitAllPaused waits until every live run is paused, except runs whose cancel was requested, and returns
// the paused runs.
func (o *operator) awaitAllPaused(ctx context.Context) ([]durable.RunInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, soon, fmt.Errorf("not everything was paused within %v", soon))
	defer cancel()
	for {
		live, err := o.live(ctx)
		if err != nil {
			return nil, err
		}
		var paused []durable.RunInfo
		busy := 0
		for _, run := range live {
			if run.Status == durable.StatusPaused {
				paused = append(paused, run)
			} else if run.Requested != "cancel" {
				busy++
			}
		}
		if busy == 0 {
			return paused, nil
		}
		if !pause(ctx, ask) {
			return nil, context.Cause(ctx)
		}
	}
}

// live returns every run that has not ended: the runs of orders, and their descendants.
func (o *operator) live(ctx context.Context) ([]durable.RunInfo, error) {
	filter := durable.Filter{Status: []durable.Status{
		durable.StatusPending, durable.StatusRunning, durable.StatusWaiting, durable.StatusPaused,
	}}
	var all []durable.RunInfo
	for page := (durable.Page{Limit: 10}); ; {
		answer, err := o.engine.List(ctx, filter, page)
		if err != nil {
			return nil, err
		}
		all = append(all, answer.Runs...)
		if page.Cursor = answer.Next; page.Cursor == "" {
			return all, nil
		}
	}
}

// until waits until reached returns true for the run, and returns the run.
func (o *operator) until(ctx context.Context, id, what string, reached func(*durable.RunInfo) bool) (*durable.RunInfo, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, soon, fmt.Errorf("%s was not %s within %v", id, what, soon))
	defer cancel()
	for {
		run, err := o.engine.Get(ctx, id)
		if err != nil || reached(run) {
			return run, err
		}
		if !pause(ctx, ask) {
			return nil, fmt.Errorf("%w: it is %s", context.Cause(ctx), run.Status)
		}
	}
}
