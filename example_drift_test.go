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

// A step was renamed, one was removed, and a new one was inserted. The definition and the function say so, and runs that were
// started by the old code fit the new one.
func ExampleCtx_Patched() {
	store, remove := temporary()
	defer remove()
	ctx := context.Background()
	say := func(what string) func(context.Context) error {
		return func(context.Context) error { fmt.Println(what); return nil }
	}
	engineWith := func(w durable.Definition) *durable.Engine {
		engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{w}})
		if err != nil {
			log.Fatal(err)
		}
		return engine
	}
	charged := make(chan struct{})
	first := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		if err := c.Do("send fax", say("fax")); err != nil {
			return "", err
		}
		if err := c.Do("charge", func(context.Context) error { fmt.Println("charge"); close(charged); return nil }); err != nil {
			return "", err
		}
		_, err := c.Receive[int]("packed")
		return "shipped", err
	})
	engine := engineWith(first)
	running, stop := context.WithCancel(ctx)
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		if err := engine.Run(running); err != nil {
			log.Print(err)
		}
	}()
	if _, err := first.Start(ctx, engine, 0, durable.ID("order-42")); err != nil {
		log.Fatal(err)
	}
	<-charged
	stop()
	<-stopped

	second := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		checks, err := c.Patched("fraud check") // false for order-42, which has charged the card without it
		if err != nil {
			return "", err
		}
		if checks {
			if err := c.Do("check", say("check")); err != nil {
				return "", err
			}
		}
		if err := c.Do("charge card", say("charge card")); err != nil {
			return "", err
		}
		_, err = c.Receive[int]("packed")
		return "shipped", err
	}, durable.Renamed("charge", "charge card"), durable.Retired("send fax"))
	engine = engineWith(second)
	report, err := engine.Preflight(ctx, durable.Filter{}) // before the deploy: replays live runs, and changes nothing
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("fit:", report.Fit, "diverged:", report.Diverged, "next:", report.Runs[0].Next)
	for _, id := range []string{"order-42", "order-43"} {
		if _, err := second.Start(ctx, engine, 0, durable.ID(id)); err != nil {
			log.Fatal(err)
		}
		if err := engine.Signal(ctx, id, "packed", 1); err != nil {
			log.Fatal(err)
		}
		fmt.Println(second.Call(ctx, engine, 0, durable.ID(id)))
	}
	// Output:
	// fax
	// charge
	// fit: 1 diverged: 0 next: [packed]
	// shipped <nil>
	// check
	// charge card
	// shipped <nil>
}
