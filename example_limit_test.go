package durable_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleNewLimit() {
	// Five calls at once and ten a second, over all workers. A program declares it as a package variable.
	stripe := durable.NewLimit("stripe", durable.Concurrent(5), durable.Rate(10, time.Second), durable.Burst(5))
	charge := durable.Define("charge", func(c *durable.Ctx, order string) (string, error) {
		return c.Step("charge", func(ctx context.Context) (string, error) {
			return "charged " + order, nil // calls the provider
		}, stripe.Permit())
	})
	callAlone(charge, "order-1")
	// Output: charged order-1
}

func ExampleLimit_Permit() {
	model := durable.NewLimit("model", durable.Rate(100_000, time.Minute), durable.Burst(20_000)) // tokens
	ask := durable.Define("ask", func(c *durable.Ctx, customer string) (string, error) {
		return c.Step("complete", func(ctx context.Context) (string, error) {
			return "an answer for " + customer, nil
		}, model.Permit(durable.LimitKey(customer), durable.Units(1500)))
	})
	callAlone(ask, "acme")
	// Output: an answer for acme
}

// callAlone calls the workflow in an engine of its own, and prints what it returns.
func callAlone(w *durable.Workflow[string, string], in string) {
	store, remove := temporary()
	defer remove()
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := w.Call(context.Background(), engine, in)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out)
}

func ExampleEngine_SetLimit() {
	ctx := context.Background()
	store, remove := temporary()
	defer remove()
	engine, err := durable.New(store, durable.Config{}) // any process, also one that executes nothing
	if err != nil {
		fmt.Println(err)
		return
	}
	err = engine.SetLimit(ctx, "stripe", durable.LimitBounds{Concurrent: 2}, durable.Actor("ann"), durable.Reason("the provider is slow"))
	if err != nil {
		fmt.Println(err)
		return
	}
	limits, err := engine.Limits(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, l := range limits {
		fmt.Println(l.Name, l.Concurrent, "set by", l.SetBy, "because", l.SetReason)
	}
	fmt.Println(errors.Is(engine.ResetLimit(ctx, "stripe"), durable.ErrState)) // no code has declared it yet
	fmt.Println(engine.DeleteLimit(ctx, "stripe", durable.Actor("ann")))       // what code declares applies again
	// Output:
	// stripe 2 set by ann because the provider is slow
	// true
	// <nil>
}
