package durable_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

// A run of this workflow ends with the version of the code that started it, while a worker of that version lives, and for ten
// minutes after.
func ExamplePinned() {
	checkout := durable.Define("checkout", func(c *durable.Ctx, order int) (string, error) {
		return c.Step("charge", func(context.Context) (string, error) { return fmt.Sprint("charged ", order), nil })
	}, durable.Pinned(10*time.Minute))

	store, remove := temporary()
	defer remove()
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{checkout}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(checkout.Call(context.Background(), engine, 42))
	// Output: charged 42 <nil>
}
