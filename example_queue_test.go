package durable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
)

func ExampleInQueue() {
	store, remove := temporary()
	defer remove()
	send := durable.Define("send", func(_ *durable.Ctx, to string) (string, error) { return "sent to " + to, nil })
	ctx, stop := context.WithCancel(context.Background())
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{send}, Queues: []string{"tenant-7", "tenant-8"}})
	if err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- engine.Run(ctx) }()
	run, err := send.Start(ctx, engine, "ada", durable.ID("mail-1"), durable.InQueue("tenant-7"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	info, err := engine.Get(ctx, "mail-1")
	fmt.Println(info.Queue, err)
	stop()
	fmt.Println(<-done)
	// Output:
	// sent to ada <nil>
	// tenant-7 <nil>
	// <nil>
}

func ExamplePriority() {
	store, remove := temporary()
	defer remove()
	report := durable.Define("report", func(_ *durable.Ctx, name string) (string, error) {
		fmt.Println(name)
		return name, nil
	})
	ctx, stop := context.WithCancel(context.Background())
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{report}, Concurrency: 1, ClaimLimit: 1})
	if err != nil {
		log.Fatal(err)
	}
	nightly, err := report.Start(ctx, engine, "nightly", durable.Priority(durable.LowestPriority))
	if err != nil {
		log.Fatal(err)
	}
	if _, err := report.Start(ctx, engine, "usual"); err != nil {
		log.Fatal(err)
	}
	if _, err := report.Start(ctx, engine, "urgent", durable.Priority(durable.HighestPriority)); err != nil {
		log.Fatal(err)
	}
	done := make(chan error)
	go func() { done <- engine.Run(ctx) }() // the worker begins now, and finds all three
	_, err = nightly.Result(ctx)
	fmt.Println(err)
	stop()
	fmt.Println(<-done)
	// Output:
	// urgent
	// usual
	// nightly
	// <nil>
	// <nil>
}
