package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleDefaults() {
	store, remove := temporary()
	defer remove()
	fetch := durable.Define("fetch", func(c *durable.Ctx, url string) (string, error) {
		return c.Step("get", func(ctx context.Context) (string, error) {
			if durable.Attempt(ctx) < 3 {
				return "", errors.New("the server is busy")
			}
			return "the page of " + url, nil
		})
	}, durable.Defaults(durable.Retry(durable.RetryPolicy{Attempts: 5, Initial: time.Millisecond}), durable.AttemptTimeout(time.Minute)))
	engine := newEngine(store, fetch)
	page, err := fetch.Call(context.Background(), engine, "example.com")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(page)
	// Output: the page of example.com
}

func ExampleStepInfo() {
	store, remove := temporary()
	defer remove()
	pack := durable.Define("pack", func(c *durable.Ctx, items []string) ([]string, error) {
		return c.Map("items", items, func(ctx context.Context, item string) (string, error) {
			step, _ := durable.StepInfo(ctx)
			return fmt.Sprintf("%s is item %d of %s", item, step.Index, step.Map), nil
		})
	})
	engine := newEngine(store, pack)
	packed, err := pack.Call(context.Background(), engine, []string{"cup", "plate"})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(packed)
	// Output: [cup is item 0 of items plate is item 1 of items]
}
