package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/seed8ec063be/durable"
)

// outstanding is how many orders live at once.
const outstanding = 24

// load starts orders, and sees to them until they end.
type load struct {
	boss *boss
	seed uint64

	mu     sync.Mutex
	orders []*order
	under  sync.WaitGroup
	giveUp context.CancelFunc
}

// order is one root run with a plan.
type order struct {
	id        string
	plan      *plan
	runID     string // once the start was acknowledged
	timeout   time.Duration
	asked     bool             // to be cancelled
	cancelled bool             // and that was acknowledged
	end       *durable.RunInfo // as it was first seen to have ended
	err       error            // what kept it from being seen to the end
}

func newLoad(b *boss, seed uint64) *load { return &load{boss: b, seed: seed} }

// begin starts orders until ctx ends. The function answered waits for the last start.
func (l *load) begin(ctx context.Context) (done func()) {
	life, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	l.giveUp = giveUp
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		free := make(chan struct{}, outstanding)
		for n := uint64(0); ; n++ {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return
			}
			r := rand.New(rand.NewPCG(l.seed, 1000+n))
			o := &order{id: fmt.Sprintf("order-%d", n), plan: draw(r, 2)}
			l.mu.Lock()
			l.orders = append(l.orders, o)
			l.mu.Unlock()
			l.under.Go(func() {
				defer func() { <-free }()
				o.err = l.see(life, o, r)
			})
		}
	}()
	return func() { <-ended }
}

// settle waits until all orders, and their detached children, have ended.
func (l *load) settle(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		l.under.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-ctx.Done():
	}
	l.giveUp()
	<-ended
	for {
		page, err := l.boss.List(ctx, durable.Filter{
			Workflow: l.boss.order.Name(), Status: []durable.Status{durable.StatusPending, durable.StatusRunning, durable.StatusWaiting, durable.StatusPaused},
		}, durable.Page{Limit: 5})
		if err != nil && ctx.Err() == nil && !errors.Is(err, durable.ErrUnavailable) {
			return err
		}
		if err == nil && len(page.Runs) == 0 {
			return nil
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			var stuck []error
			for _, r := range page.Runs {
				stuck = append(stuck, fmt.Errorf("I7: run %s (%s) is still %s (%s, %d crashes), asked to %q, wakes at %v", r.ID, r.RunID, r.Status, r.Reason, r.Crashes, r.Requested, r.WakeAt))
			}
			return errors.Join(stuck...)
		}
	}
}

// see starts an order, does to it what is drawn, and waits for its end.
func (l *load) see(ctx context.Context, o *order, r *rand.Rand) error {
	opts := []durable.StartOption{durable.ID(o.id), durable.WithTag("soak.kind", "order")}
	if r.IntN(12) == 0 {
		o.timeout = time.Duration(300+r.IntN(1500)) * time.Millisecond
		opts = append(opts, durable.Timeout(o.timeout))
	}
	if r.IntN(10) == 0 {
		opts = append(opts, durable.Delay(time.Duration(r.IntN(800))*time.Millisecond))
	}
	var run *durable.Run[[]string]
	_, err := l.boss.retry(ctx, func() (err error) {
		run, err = l.boss.order.Start(ctx, l.boss.Engine, *o.plan, opts...)
		return err
	})
	if err != nil {
		return fmt.Errorf("start %s: %w", o.id, err)
	}
	o.runID = run.RunID()
	if r.IntN(3) == 0 {
		l.early(ctx, o)
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
			_, err := l.boss.retry(ctx, func() (err error) {
				o.end, err = l.boss.Get(ctx, o.id)
				return err
			})
			return err
		case ctx.Err() != nil:
			return fmt.Errorf("I7: %s (%s) has not ended", o.id, o.runID)
		case !errors.Is(err, durable.ErrUnavailable):
			return fmt.Errorf("result of %s: %w", o.id, err)
		}
		if wait(ctx, 50*time.Millisecond) != nil {
			return fmt.Errorf("I7: %s (%s) has not ended", o.id, o.runID)
		}
	}
}

// early sends the order its signals before it waits for them.
func (l *load) early(ctx context.Context, o *order) {
	o.plan.walk(func(a act) {
		if a.Do == doReceive || a.Do == doWithin {
			l.boss.send(ctx, entry{Run: o.runID, Step: a.Name, Do: a.Do})
		}
	})
}

// interrupt cancels the order in a while, or pauses it for a while.
func (l *load) interrupt(ctx context.Context, o *order, r *rand.Rand) error {
	first, second := time.Duration(r.IntN(800))*time.Millisecond, time.Duration(r.IntN(600))*time.Millisecond
	verbs := []func(context.Context, string, ...durable.ControlOption) (durable.Effect, error){l.boss.Pause, l.boss.Resume}
	if r.IntN(2) == 0 {
		verbs = verbs[:0]
		verbs, o.asked = append(verbs, l.boss.Cancel), true
	}
	for i, verb := range verbs {
		if wait(ctx, []time.Duration{first, second}[i]) != nil {
			return fmt.Errorf("I7: %s has not ended", o.id)
		}
		_, err := l.boss.retry(ctx, func() error {
			_, err := verb(ctx, o.id, durable.Reason("soak"), durable.Actor("boss"))
			return err
		})
		switch {
		case err == nil:
			o.cancelled = len(verbs) == 1
		case !errors.Is(err, durable.ErrState):
			return fmt.Errorf("interrupt %s: %w", o.id, err)
		}
	}
	return nil
}
