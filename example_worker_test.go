package durable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
)

func ExampleEngine_QuietWorker() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine := newEngine(store, job)
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	defer func() { stop(); <-done }()
	if _, err := job.Call(ctx, engine, 1); err != nil { // then the worker is registered
		log.Fatal(err)
	}
	workers, err := engine.Workers(ctx)
	if err != nil {
		log.Fatal(err)
	}
	id := workers[0].ID
	if err := engine.QuietWorker(ctx, id, durable.Actor("ann"), durable.Reason("the machine is to be replaced")); err != nil {
		log.Fatal(err)
	}
	if workers, err = engine.Workers(ctx); err != nil {
		log.Fatal(err)
	}
	fmt.Println(workers[0].Quiet, workers[0].LastChange.By, workers[0].LastChange.Reason)
	fmt.Println(engine.ResumeWorker(ctx, id, durable.Actor("ann")))
	// Output:
	// true ann the machine is to be replaced
	// <nil>
}
