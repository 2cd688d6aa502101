package durable_test

import (
	"context"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
)

// An account handles deposits without end. After every two it continues as new, so that its history stays short.
func ExampleCtx_ContinueAsNew() {
	store, remove := temporary()
	defer remove()
	account := durable.Define("account", func(c *durable.Ctx, balance int) (int, error) {
		for _, name := range []string{"first", "second"} {
			n, err := c.Receive[int](name, durable.OnSignal("deposit"))
			if err != nil || n == 0 { // closed
				return balance, err
			}
			balance += n
		}
		return 0, c.ContinueAsNew(balance)
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{account}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := account.Start(ctx, engine, 100, durable.ID("account-7")); err != nil {
		log.Fatal(err)
	}
	for _, n := range []int{1, 2, 3, 4, 0} {
		if err := engine.Signal(ctx, "account-7", "deposit", n); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(account.Call(ctx, engine, 100, durable.ID("account-7")))

	generations, err := engine.Generations(ctx, "account-7")
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range generations {
		fmt.Println(g.Number, g.Status, "began with", string(g.Input))
	}
	page, err := engine.LatestGenerations(ctx, "account-7", durable.Page{Limit: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the latest of a page of", len(page.Generations), "is", page.Generations[0].Number)
	// Output:
	// 110 <nil>
	// 1 superseded began with 100
	// 2 superseded began with 103
	// 3 completed began with 110
	// the latest of a page of 2 is 3
}
