package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

// leaveOldRun executes "renewal-3" with the code of version v1 up to its wait. Version v2 has renamed the step before it, so the run is
// held as soon as it continues.
func (s *shop) leaveOldRun(ctx context.Context, store durable.Store) error {
	old := s.renewal("price")
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{old}, Name: "worker-0", Version: "v1", QueueSettings: queues})
	if err != nil {
		return err
	}
	working, stop := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- engine.Run(working) }()
	err = awaitWait(ctx, engine, old, "renewal-3")
	stop()
	if err := errors.Join(err, <-done); err != nil {
		return err
	}
	client, err := durable.New(store, durable.Config{}) // version v1 has ended, so it cannot receive the signal
	if err != nil {
		return err
	}
	return client.Signal(ctx, "renewal-3", "confirm", true)
}

// awaitWait starts a run, and returns when it waits.
func awaitWait(ctx context.Context, e *durable.Engine, w *durable.Workflow[string, string], id string) error {
	if _, err := w.Start(ctx, e, "bob", durable.ID(id)); err != nil {
		return err
	}
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		run, err := e.Get(ctx, id)
		if err != nil || run.Status == durable.StatusWaiting {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

var (
	customers = []string{"ada", "bob", "cleo", "dan", "eve"}
	goods     = []string{"lamp", "chair", "kettle", "rug", "clock", "vase", "mirror"}
)

// trade starts the runs that people of operations meet, and then an order twice a second until ctx ends.
func (s *shop) trade(ctx context.Context, e *durable.Engine) error {
	if err := s.begin(ctx, e); err != nil {
		return err
	}
	order := s.order()
	tick := time.NewTicker(500 * time.Millisecond)
	defer tick.Stop()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
		id := fmt.Sprintf("order-%d", n)
		if n%20 == 7 {
			id += "-declined"
		}
		customer := customers[n%len(customers)]
		in := Order{customer, 999 + 137*n%5000, goods[n%3 : n%3+2+n%3]}
		if _, err := order.Start(ctx, e, in, durable.ID(id), durable.GroupKey(customer), durable.Tag("shop.customer", customer)); err != nil {
			return err
		}
	}
}

// begin starts one run of each kind, and changes some of them as an operator would.
func (s *shop) begin(ctx context.Context, e *durable.Engine) error {
	by := []durable.ControlOption{durable.Actor("ada"), durable.Reason("the printer is out of paper")}
	var first error
	do := func(err error) {
		if first == nil {
			first = err
		}
	}
	order := Order{"ada", 4999, []string{"lamp", "clock"}}
	_, err := s.order().Start(ctx, e, order, durable.ID("order-declined"), durable.GroupKey("ada"), durable.Tag("shop.customer", "ada"))
	do(err)
	for i := 5; i <= 7; i++ {
		_, err = s.refund().Start(ctx, e, 100*i, durable.ID(fmt.Sprintf("refund-%d", i)), durable.Timeout(72*time.Hour))
		do(err)
	}
	_, err = e.Pause(ctx, "refund-5", durable.Actor("bob"), durable.Reason("the customer has called"))
	do(err)
	_, err = e.Cancel(ctx, "refund-6", durable.Actor("cleo"), durable.Reason("asked for twice"))
	do(err)
	_, err = s.catalogue().Start(ctx, e, 400, durable.ID("catalogue"))
	do(err)
	_, err = s.booking().Start(ctx, e, "Lisbon", durable.ID("booking-lisbon"))
	do(err)
	_, err = s.webhook().Start(ctx, e, "https://partner.example/hook", durable.ID("webhook-1"))
	do(err)
	_, err = s.webhook().Start(ctx, e, "https://partner.example/hook", durable.ID("webhook-2"), durable.Timeout(3*time.Second))
	do(err)
	_, err = s.report().Start(ctx, e, 30, durable.ID("report-now"))
	do(err)
	do(e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 4}, by...))
	do(e.PauseQueue(ctx, "mail", by...))
	for _, customer := range customers {
		_, err = s.letter().Start(ctx, e, "a letter to "+customer, durable.ID("letter-"+customer))
		do(err)
	}
	return first
}
