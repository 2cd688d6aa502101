package durable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
)

// A run whose code was changed while it was live, so that it does not fit the history, is held until there is code that fits.
func ExampleOnDrift() {
	store, remove := temporary()
	defer remove()
	ctx := context.Background()
	// deploy executes a version of the program until the returned function is called.
	deploy := func(version string, w durable.Definition) (engine *durable.Engine, stop func()) {
		engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{w}, Version: version})
		if err != nil {
			log.Fatal(err)
		}
		running, cancel := context.WithCancel(ctx)
		stopped := make(chan struct{})
		go func() {
			defer close(stopped)
			if err := engine.Run(running); err != nil {
				log.Print(err)
			}
		}()
		return engine, func() { cancel(); <-stopped }
	}
	charged := make(chan struct{})
	first := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		paid, err := c.Step("charge", func(context.Context) (string, error) { close(charged); return "charged once", nil })
		if err == nil {
			_, err = c.Receive[int]("packed")
		}
		return paid, err
	}, durable.OnDrift(durable.DriftHolds)) // the default
	engine, stop := deploy("v1", first)
	run, err := first.Start(ctx, engine, 0, durable.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	<-charged
	stop()
	if err := engine.Signal(ctx, "order-42", "packed", 1); err != nil {
		log.Fatal(err)
	}

	// In this version the step has another type, by mistake.
	engine, stop = deploy("v2", durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		cents, err := c.Step("charge", func(context.Context) (int, error) { return 1200, nil })
		return fmt.Sprint(cents), err
	}))
	for event, err := range engine.WatchEvents(ctx, "") {
		if err != nil {
			log.Fatal(err)
		} else if event.Type == durable.EventPaused {
			break
		}
	}
	info, err := engine.Get(ctx, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	divergences, err := engine.Divergences(ctx, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Diverged, divergences[0].Version, divergences[0].Call)
	stop()

	_, stop = deploy("v1", first) // a rollback: this version fits, so it continues the run
	fmt.Println(run.Result(ctx))
	stop()
	// Output:
	// true v2 charge
	// charged once <nil>
}
