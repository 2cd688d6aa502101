package durable_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"time"

	"github.com/seed8ec063be/durable"
)

// A worker keeps completed runs for a month, those of one workflow for ten years, and failed runs for ever. An archive gets each
// run before it is deleted.
func ExampleKeepFor() {
	store, remove := temporary()
	defer remove()
	order := durable.Define("order", func(c *durable.Ctx, sum int) (int, error) { return sum, nil })
	audit := durable.Define("audit", func(c *durable.Ctx, sum int) (int, error) { return sum, nil })
	const day = 24 * time.Hour
	engine, err := durable.New(store, durable.Config{
		Workflows: []durable.Definition{order, audit},
		Retention: durable.Retention{
			Runs:        durable.RetentionByStatus{Completed: 30 * day, Cancelled: 30 * day, Expired: 30 * day},
			Workflows:   map[string]durable.RetentionByStatus{"audit": durable.KeepFor(3650 * day)},
			Generations: 30 * day,
			Events:      90 * day,
			Archive: func(_ context.Context, run *durable.Exported) error {
				return os.WriteFile(fmt.Sprintf("%s-%d.txt", run.Run.RunID, run.Generation), run.Run.Output, 0o600)
			},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(order.Call(context.Background(), engine, 12))
	// Output: 12 <nil>
}
