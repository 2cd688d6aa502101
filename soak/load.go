package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// maxLiveOrders is the number of orders that are live at a time.
const maxLiveOrders = 24

// load starts orders, and follows each until it ends.
type load struct {
	controller *controller
	seed       uint64

	mu       sync.Mutex
	orders   []*order
	followed sync.WaitGroup // a goroutine for each order
	giveUp   context.CancelFunc
}

// order is one root run with a plan.
type order struct {
	id        string
	plan      *plan
	runID     string // set once the start was acknowledged
	timeout   time.Duration
	requested bool             // its cancel was requested
	cancelled bool             // its cancel was acknowledged
	end       *durable.RunInfo // the first result that showed its end
	err       error            // the error because of which it was not followed to its end
}

func newLoad(c *controller, seed uint64) *load { return &load{controller: c, seed: seed} }

// begin starts orders until ctx ends. The function that it returns waits for the last start.
func (l *load) begin(ctx context.Context) (done func()) {
	life, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	l.giveUp = giveUp
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		free := make(chan struct{}, maxLiveOrders)
		for n := uint64(0); ; n++ {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			r := rand.New(rand.NewPCG(l.seed, 1000+n))
			o := &order{id: fmt.Sprintf("order-%d", n), plan: drawPlan(r, 2)}
			l.mu.Lock()
			l.orders = append(l.orders, o)
			l.mu.Unlock()
			l.followed.Go(func() {
				defer func() { <-free }()
				o.err = l.follow(life, o, r)
			})
		}
	}()
	return func() { <-ended }
}

// finish waits until all orders, and their detached children, have ended. The error names those that have not.
func (l *load) finish(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		l.followed.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	l.giveUp()
	<-ended
	for _, w := range []*durable.Workflow[plan, []string]{l.controller.plans.order, l.controller.plans.changing} {
		if err := l.awaitEnds(ctx, w.Name()); err != nil {
			return err
		}
	}
	return nil
}

// awaitEnds waits until no run of the workflow is live.
func (l *load) awaitEnds(ctx context.Context, workflow string) error {
	for {
		page, err := l.controller.List(ctx, durable.Filter{
			Workflow: workflow, Status: []durable.Status{durable.StatusPending, durable.StatusRunning, durable.StatusWaiting, durable.StatusPaused},
		}, durable.Page{Limit: 5})
		if err != nil && ctx.Err() == nil && !errors.Is(err, durable.ErrUnavailable) {
			return err
		}
		if err == nil && len(page.Runs) == 0 {
			return nil
		}
		if sleepCtx(ctx, 50*time.Millisecond) != nil {
			var stuck []error
			for _, r := range page.Runs {
				stuck = append(stuck, fmt.Errorf("I7: run %s (%s) is still %s (%s, %d crashes), requested %q, wakes at %v", r.ID, r.RunID, r.Status, r.Reason, r.Crashes, r.Requested, r.WakeAt))
			}
			return errors.Join(stuck...)
		}
	}
}

// follow starts an order, sends it the signals and controls that were drawn, and waits for its end.
func (l *load) follow(ctx context.Context, o *order, r *rand.Rand) error {
	opts := []durable.StartOption{durable.ID(o.id), durable.Tag("soak.kind", "order")}
	if r.IntN(12) == 0 {
		o.timeout = time.Duration(300+r.IntN(1500)) * time.Millisecond
		opts = append(opts, durable.Timeout(o.timeout))
	}
	if r.IntN(10) == 0 {
		opts = append(opts, durable.Delay(time.Duration(r.IntN(800))*time.Millisecond))
	}
	var run *durable.Run[[]string]
	_, err := l.controller.retry(ctx, func() (err error) {
		run, err = l.controller.plans.workflow(o.plan).Start(ctx, l.controller.Engine, *o.plan, opts...)
		return err
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", o.id, err)
	}
	o.runID = run.RunID()
	if r.IntN(3) == 0 {
		l.sendEarly(ctx, o)
	}
	if r.IntN(6) == 0 {
		if err := l.interrupt(ctx, o, r); err != nil {
			return err
		}
	}
	for {
		_, err := run.Result(ctx)
		var ended *durable.RunError
		switch {
		case err == nil || errors.As(err, &ended):
			_, err := l.controller.retry(ctx, func() (err error) {
				o.end, err = l.controller.getReplicated(ctx, o.id)
				return err
			})
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("I7: %s (%s) has not ended", o.id, o.runID)
		case !errors.Is(err, durable.ErrUnavailable):
			return fmt.Errorf("result of %s: %w", o.id, err)
		}
		if sleepCtx(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("I7: %s (%s) has not ended", o.id, o.runID)
		}
	}
}

// sendEarly sends the order its signals before it waits for them.
func (l *load) sendEarly(ctx context.Context, o *order) {
	o.plan.eachAct(func(a act) {
		if a.Do == doReceive || a.Do == doWithin {
			l.controller.send(ctx, entry{Run: o.runID, Step: a.Name, Do: a.Do})
		}
	})
}

// interrupt cancels the order after a random delay, or pauses it and resumes it.
func (l *load) interrupt(ctx context.Context, o *order, r *rand.Rand) error {
	first, second := time.Duration(r.IntN(800))*time.Millisecond, time.Duration(r.IntN(600))*time.Millisecond
	verbs := []func(context.Context, string, ...durable.ControlOption) (durable.ControlResult, error){l.controller.Pause, l.controller.Resume}
	if r.IntN(2) == 0 {
		verbs = verbs[:0]
		verbs, o.requested = append(verbs, l.controller.Cancel), true
	}
	for i, verb := range verbs {
		if sleepCtx(ctx, []time.Duration{first, second}[i]) != nil {
			return fmt.Errorf("I7: %s has not ended", o.id)
		}
		var effect durable.ControlResult
		_, err := l.controller.retry(ctx, func() (err error) {
			effect, err = verb(ctx, o.id, durable.Reason("soak"), durable.Actor("controller"))
			return err
		})
		switch {
		case err == nil:
			// A cancel of an order that has ended is no error if it cancels a detached child that is live.
			o.cancelled = len(verbs) == 1 && slices.Contains(slices.Concat(effect.DoneIDs, effect.RequestedIDs), o.runID)
		case !errors.Is(err, durable.ErrState):
			return fmt.Errorf("interrupt %s: %w", o.id, err)
		}
	}
	return nil
}
