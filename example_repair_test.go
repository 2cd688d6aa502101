package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"sync/atomic"

	"github.com/seed8ec063be/durable"
)

// A run that failed is executed again from the step that failed.
func ExampleEngine_Retry() {
	store, remove := temporary()
	defer remove()
	var bankIsOpen atomic.Bool
	order := durable.Define("order", func(c *durable.Ctx, sum int) (string, error) {
		err := c.Do("reserve", func(context.Context) error { fmt.Println("reserving"); return nil })
		if err != nil {
			return "", err
		}
		err = c.Do("charge", func(context.Context) error {
			if !bankIsOpen.Load() {
				return errors.New("the bank is closed")
			}
			return nil
		})
		return fmt.Sprintf("charged %d", sum), err
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	_, err = order.Call(ctx, engine, 12, durable.ID("order-42"))
	fmt.Println(err)

	bankIsOpen.Store(true)
	plan, err := engine.Retry(ctx, "order-42", durable.DryRun())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("a retry keeps", plan.Kept, "step and makes again", plan.Dropped)
	if _, err := engine.Retry(ctx, "order-42", durable.Actor("ada"), durable.Reason("the bank is open")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.Call(ctx, engine, 12, durable.ID("order-42")))

	generations, err := engine.Generations(ctx, "order-42")
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range generations {
		fmt.Printf("%d %s %q\n", g.Number, g.Status, g.Reason)
	}
	history, err := engine.History(ctx, "order-42", durable.InGeneration(1))
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range history {
		fmt.Println("at first:", c.Name, c.Status)
	}
	// Output:
	// reserving
	// run "order-42" of workflow "order" failed: step "charge" failed: the bank is closed
	// a retry keeps 1 step and makes again [charge]
	// charged 12 <nil>
	// 1 failed ""
	// 2 completed "the bank is open"
	// at first: reserve completed
	// at first: charge failed
}

// All runs that failed because of a defect in the code are executed again with the corrected code.
func ExampleEngine_RetryAll() {
	store, remove := temporary()
	defer remove()
	var fixed atomic.Bool
	order := durable.Define("order", func(c *durable.Ctx, sum int) (int, error) {
		price, err := c.Step("price", func(context.Context) (int, error) { return 2 * sum, nil })
		if err == nil && !fixed.Load() {
			err = errors.New("a defect")
		}
		return price, err
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	for i := range 3 {
		if _, err := order.Call(ctx, engine, i, durable.ID(fmt.Sprint("order-", i))); err == nil {
			log.Fatal("it did not fail")
		}
	}
	fixed.Store(true)
	one, err := engine.Retry(ctx, "order-0", durable.From("price")) // executes the step anew
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("made again:", one.Dropped, "with new keys:", one.Renewed)
	others, err := engine.RetryAll(ctx, durable.Filter{Workflow: "order", Status: []durable.Status{durable.StatusFailed}}, durable.FromEnd())
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("retried:", len(others.Repaired), "refused:", len(others.Refused))
	fmt.Println(order.Call(ctx, engine, 2, durable.ID("order-2")))
	// Output:
	// made again: [price] with new keys: [price]
	// retried: 2 refused: 0
	// 4 <nil>
}

// A compensation says what it undoes, so that a retry knows which steps to execute again.
func ExampleUndoes() {
	store, remove := temporary()
	defer remove()
	var ships atomic.Bool
	order := durable.Define("order", func(c *durable.Ctx, _ int) (string, error) {
		err := c.Compensate("refund", func(context.Context) error { fmt.Println("refunding"); return nil }, durable.Undoes("charge"))
		if err != nil {
			return "", err
		}
		if err := c.Do("charge", func(context.Context) error { fmt.Println("charging"); return nil }); err != nil {
			return "", err
		}
		return "shipped", c.Do("ship", func(context.Context) error {
			if !ships.Load() {
				return errors.New("no carrier")
			}
			return nil
		})
	})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{order}})
	if err != nil {
		log.Fatal(err)
	}
	ctx := context.Background()
	if _, err := order.Call(ctx, engine, 1, durable.ID("order-42")); err != nil {
		fmt.Println(err)
	}
	ships.Store(true)
	if _, err := engine.Retry(ctx, "order-42"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.Call(ctx, engine, 1, durable.ID("order-42")))
	// Output:
	// charging
	// refunding
	// run "order-42" of workflow "order" failed: step "ship" failed: no carrier
	// charging
	// shipped <nil>
}
