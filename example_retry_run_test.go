package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

// A run that fails is retried from the step that failed, up to five times within about an hour. What it has recorded is kept.
func ExampleRetryRun() {
	calls := 0
	deliver := durable.Define("deliver", func(c *durable.Ctx, order int) (string, error) {
		if err := c.Do("pack", func(context.Context) error { fmt.Println("packed"); return nil }); err != nil {
			return "", err
		}
		return c.Step("send", func(context.Context) (string, error) {
			if calls++; calls < 3 {
				return "", errors.New("the depot is closed")
			}
			return fmt.Sprint("sent ", order), nil
		})
	}, durable.RetryRun(durable.Exponential(time.Millisecond, time.Hour, 5)))

	store, remove := temporary()
	defer remove()
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{deliver}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error)
	go func() { ended <- engine.Run(ctx) }()
	fmt.Println(deliver.Call(ctx, engine, 42))
	stop()
	fmt.Println(<-ended)
	// Output:
	// packed
	// sent 42 <nil>
	// <nil>
}
