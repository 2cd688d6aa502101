package durable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
)

// An operator deletes a run on request, and then all runs of a workflow that completed.
func ExampleEngine_Delete() {
	store, remove := temporary()
	defer remove()
	order := durable.Define("order", func(c *durable.Ctx, sum int) (int, error) { return sum, nil })
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for i := range 3 {
		if _, err := order.Call(ctx, engine, i, durable.ID(fmt.Sprint("order-", i))); err != nil {
			log.Fatal(err)
		}
	}
	gone, err := engine.Delete(ctx, "order-1", durable.Actor("ada"), durable.Reason("the customer asked for it"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("deleted:", gone.Deleted)
	_, err = engine.Get(ctx, "order-1")
	fmt.Println(err)
	fmt.Println(order.Call(ctx, engine, 12, durable.ID("order-1"))) // the ID is free
	// Output:
	// deleted: 1
	// durable: not found: there is no run "order-1" in this database
	// 12 <nil>
}

func ExampleEngine_DeleteAll() {
	store, remove := temporary()
	defer remove()
	order := durable.Define("order", func(c *durable.Ctx, sum int) (int, error) { return sum, nil })
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for i := range 3 {
		if _, err := order.Call(ctx, engine, i, durable.ID(fmt.Sprint("order-", i))); err != nil {
			log.Fatal(err)
		}
	}
	completed := durable.Filter{Workflow: "order", Status: []durable.Status{durable.StatusCompleted}}
	plan, err := engine.DeleteAll(ctx, completed, durable.DryRun())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("it would delete:", plan.Deleted)
	gone, err := engine.DeleteAll(ctx, completed)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("deleted:", gone.Deleted, "refused:", len(gone.Refused))
	// Output:
	// it would delete: 3
	// deleted: 3 refused: 0
}
