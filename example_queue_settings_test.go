package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleEngine_SetQueue() {
	store, remove := temporary()
	defer remove()
	ctx := context.Background()
	engine, err := durable.New(store, durable.Config{}) // any process, also one that executes nothing
	if err != nil {
		log.Fatal(err)
	}
	settings := durable.QueueSettings{MaxExecuting: 5, MaxInProgressPerKey: 1, Rate: durable.QueueRate{Count: 50, Period: time.Second}, Depth: 100_000}
	if err := engine.SetQueue(ctx, "orders", settings, durable.Actor("ann"), durable.Reason("the provider allows no more")); err != nil {
		log.Fatal(err)
	}
	if err := engine.PauseQueue(ctx, "orders", durable.Actor("ann"), durable.Reason("outage of the provider")); err != nil {
		log.Fatal(err)
	}
	queues, err := engine.Queues(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, q := range queues {
		fmt.Println(q.Name, q.Settings.MaxExecuting, q.SetBy, q.PauseReason, q.Waiting)
	}
	if err := engine.ResumeQueue(ctx, "orders", durable.Actor("bob"), durable.Reason("the provider is back")); err != nil {
		log.Fatal(err)
	}
	if queues, err = engine.Queues(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(queues[0].LastChange.Verb, "by", queues[0].LastChange.By, "because", queues[0].LastChange.Reason)
	fmt.Println(errors.Is(engine.ResetQueue(ctx, "orders"), durable.ErrState)) // no code declares it
	fmt.Println(engine.DeleteQueue(ctx, "orders"))
	// Output:
	// orders 5 ann outage of the provider 0
	// resume by bob because the provider is back
	// true
	// <nil>
}

func ExampleGroupKey() {
	store, remove := temporary()
	defer remove()
	ctx := context.Background()
	engine, err := durable.New(store, durable.Config{})
	if err != nil {
		log.Fatal(err)
	}
	order := durable.Define("order", func(_ *durable.Ctx, item string) (string, error) { return "sent " + item, nil })
	// One order of each customer at a time, in the order of their starts.
	if err := engine.SetQueue(ctx, "orders", durable.QueueSettings{MaxInProgressPerKey: 1}); err != nil {
		log.Fatal(err)
	}
	run, err := order.Start(ctx, engine, "book", durable.InQueue("orders"), durable.GroupKey("acme", durable.KeyWeight(2)), durable.StartBy(time.Hour))
	if err != nil {
		log.Fatal(err)
	}
	info, err := engine.Get(ctx, run.ID())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Place)
	// Output: is outside of queue orders (key acme, due, not yet seen by a worker)
}
