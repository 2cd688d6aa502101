package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
)

// A wrong value is corrected. What began after it is made again.
func ExampleEngine_Override() {
	store, remove := temporary()
	defer remove()
	order := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		price, err := c.Step("price", func(context.Context) (int, error) { return 10, nil })
		if err != nil {
			return "", err
		}
		return c.Step("invoice", func(context.Context) (string, error) { return fmt.Sprintf("pay %d", price), nil })
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(order.Call(ctx, engine, 1, durable.ID("order-42")))
	made, err := engine.Override(ctx, "order-42", "price", 12, durable.Actor("ada"), durable.Reason("the old price list"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("corrected:", made.Corrected, "made again:", made.Dropped)
	fmt.Println(order.Call(ctx, engine, 1, durable.ID("order-42")))
	// Output:
	// pay 10 <nil>
	// corrected: [price] made again: [invoice]
	// pay 12 <nil>
}

// A step that cannot succeed gets its value from an operator.
func ExampleEngine_Skip() {
	store, remove := temporary()
	defer remove()
	order := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		label, err := c.Step("label", func(context.Context) (string, error) { return "", errors.New("the printer is broken") })
		return "sent with " + label, err
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = order.Call(ctx, engine, 1, durable.ID("order-42"))
	fmt.Println(err)
	if _, err := engine.Skip(ctx, "order-42", "label", "a label by hand", durable.Actor("ada")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.Call(ctx, engine, 1, durable.ID("order-42")))
	// Output:
	// run "order-42" of workflow "order" failed: step "label" failed: the printer is broken
	// sent with a label by hand <nil>
}

// One step of a run that waits is executed again.
func ExampleEngine_Rerun() {
	store, remove := temporary()
	defer remove()
	waits := make(chan struct{}, 2)
	order := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		err := c.Do("invite", func(ctx context.Context) error { fmt.Println("sending an invitation"); return nil })
		if err != nil {
			return "", err
		}
		if err := c.Do("ask", func(context.Context) error { waits <- struct{}{}; return nil }); err != nil {
			return "", err
		}
		return c.Receive[string]("answer")
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- engine.Run(ctx) }()
	run, err := order.Start(ctx, engine, 1, durable.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	<-waits
	made, err := engine.Rerun(ctx, "order-42", "invite", durable.Reason("it was lost"), durable.InterruptSteps())
	if err != nil {
		log.Fatal(err)
	}
	if err := engine.Signal(ctx, "order-42", "answer", "yes"); err != nil {
		log.Fatal(err)
	}
	result, err := run.Result(ctx)
	fmt.Println("with a new key:", made.Renewed)
	fmt.Println(result, err)
	stop()
	if err := <-stopped; err != nil {
		log.Fatal(err)
	}
	// Output:
	// sending an invitation
	// sending an invitation
	// with a new key: [invite]
	// yes <nil>
}

// A copy of a completed run shows what another value would have led to.
func ExampleEngine_Fork() {
	store, remove := temporary()
	defer remove()
	order := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		price, err := c.Step("price", func(context.Context) (int, error) { return 10, nil })
		if err != nil {
			return "", err
		}
		return c.Step("invoice", func(context.Context) (string, error) { return fmt.Sprintf("pay %d", price), nil })
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	fmt.Println(order.Call(ctx, engine, 1, durable.ID("order-42")))
	made, err := engine.Fork(ctx, "order-42", durable.From("invoice"), durable.OverrideStep("price", 12), durable.NewID("what-if"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("corrected:", made.Corrected, "made again:", made.Dropped)
	fmt.Println(order.Call(ctx, engine, 1, durable.ID("what-if")))
	fmt.Println(order.Call(ctx, engine, 1, durable.ID("order-42")))
	// Output:
	// pay 10 <nil>
	// corrected: [price] made again: [invoice]
	// pay 12 <nil>
	// pay 10 <nil>
}
