package durable_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleNew() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{double}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(double.Call(context.Background(), engine, 21))
	// Output: 42 <nil>
}

// Run executes runs until the context ends, waits until they have stopped, and returns.
func ExampleEngine_Run() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine := newEngine(store, double)
	ctx, stop := context.WithCancel(context.Background()) // a program uses signal.NotifyContext
	stopped := make(chan error)
	go func() { stopped <- engine.Run(ctx) }()
	run, err := double.Start(ctx, engine, 21)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	stop()
	fmt.Println(<-stopped)
	// Output:
	// 42 <nil>
	// <nil>
}

// A worker can be limited to some queues, by Config.Queues.
func ExampleQueue() {
	store, remove := temporary()
	defer remove()
	resize := durable.Define("resize", func(*durable.Ctx, string) (string, error) { return "small.png", nil }, durable.Queue("slow"))
	client := newEngine(store)
	ctx := context.Background()
	if _, err := resize.Start(ctx, client, "large.png", durable.ID("large.png")); err != nil {
		log.Fatal(err)
	}
	run, err := client.Get(ctx, "large.png")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Workflow == resize.Name(), run.Queue)
	// Output: true slow
}

func ExampleRun_TryResult() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	ctx := context.Background()
	run, err := double.Start(ctx, newEngine(store), 21, durable.ID("answer"))
	if err != nil {
		log.Fatal(err)
	}
	_, ended, err := run.TryResult(ctx)
	fmt.Println(ended, err)
	if _, err := double.Call(ctx, newEngine(store, double), 21, durable.ID("answer")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.TryResult(ctx))
	// Output:
	// false <nil>
	// 42 true <nil>
}

// The archive is written a month after the order has ended.
func ExampleDetached() {
	store, remove := temporary()
	defer remove()
	archive := durable.Define("archive", func(*durable.Ctx, string) (int, error) { return 0, nil })
	order := durable.Define("order", func(c *durable.Ctx, what string) (string, error) {
		_, err := c.StartChild("archive", archive, what, durable.Detached(), durable.Delay(30*24*time.Hour))
		return "sent", err
	})
	engine := newEngine(store, order, archive)
	ctx := context.Background()
	fmt.Println(order.Call(ctx, engine, "a cup", durable.ID("order-1")))
	tree, err := engine.Tree(ctx, "order-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tree.Status, tree.Children[0].Status)
	// Output:
	// sent <nil>
	// completed pending
}

// Children are addressed by their own IDs, which are UUIDs.
func ExampleChild_ID() {
	store, remove := temporary()
	defer remove()
	kid := durable.Define("kid", func(c *durable.Ctx, _ int) (bool, error) { return c.ID() == c.RunID(), nil })
	parent := durable.Define("parent", func(c *durable.Ctx, _ int) (bool, error) {
		child, err := c.StartChild("kid", kid, 0)
		if err != nil {
			return false, err
		}
		same, err := child.Wait()
		return same && len(child.ID()) == 36 && c.ID() == "p-1", err
	})
	fmt.Println(parent.Call(context.Background(), newEngine(store, parent, kid), 0, durable.ID("p-1")))
	// Output: true <nil>
}

// Two attempts of a step have the same key, so that the bank can tell that they are one payment.
func ExampleIdempotencyKey() {
	store, remove := temporary()
	defer remove()
	keys := make(map[string]bool)
	pay := durable.Define("pay", func(c *durable.Ctx, cents int) (int, error) {
		return cents, c.Do("charge", func(ctx context.Context) error {
			keys[durable.IdempotencyKey(ctx)] = true
			if durable.Attempt(ctx) == 1 {
				return context.DeadlineExceeded
			}
			return nil
		}, durable.Retry(durable.Fixed(time.Millisecond, 3)))
	})
	fmt.Println(pay.Call(context.Background(), newEngine(store, pay), 1999))
	fmt.Println(len(keys))
	// Output:
	// 1999 <nil>
	// 1
}
