package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/seed8ec063be/durable"
)

func ExampleEngine_RunFingerprints() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	engine := newEngine(store, job)
	ctx := context.Background()
	run, err := job.Start(ctx, engine, 0, durable.ID("job-1"))
	if err != nil {
		log.Fatal(err)
	}
	info, err := engine.Get(ctx, run.ID())
	if err != nil {
		log.Fatal(err)
	}
	before, err := engine.RunFingerprints(ctx, info.RunID)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := engine.Pause(ctx, "job-1"); err != nil {
		log.Fatal(err)
	}
	after, err := engine.RunFingerprints(ctx, info.RunID)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("changed:", before[0] != after[0])
	// Output: changed: true
}

func ExampleEngine_Failures() {
	store, remove := temporary()
	defer remove()
	order := durable.Define("order", func(c *durable.Ctx, amount int) (int, error) {
		return c.Step("charge", func(context.Context) (int, error) {
			if amount > 100 {
				return 0, durable.Permanent(errors.New("card declined"))
			}
			return amount, nil
		})
	})
	engine := newEngine(store, order)
	ctx := context.Background()
	for i, amount := range []int{50, 500, 5000} {
		_, _ = order.Call(ctx, engine, amount, durable.ID(fmt.Sprint("order-", i)))
	}
	groups, err := engine.Failures(ctx, durable.Filter{Workflow: "order"})
	if err != nil {
		log.Fatal(err)
	}
	for _, g := range groups {
		fmt.Println(g.Runs, g.Workflow, g.Step, g.Type, g.ID)
		page, err := engine.List(ctx, durable.Filter{Failure: g.FailureKey}, durable.Page{})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(len(page.Runs), "runs of this group")
	}
	// Output:
	// 2 order charge *errors.errorString order-2
	// 2 runs of this group
}

func ExampleEngine_StatusCounts() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	client := newEngine(store) // executes nothing
	ctx := context.Background()
	for i := range 3 {
		if _, err := job.Start(ctx, client, i); err != nil {
			log.Fatal(err)
		}
	}
	counts, err := client.StatusCounts(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, c := range counts {
		fmt.Println(c.Status, c.Runs, c.More)
	}
	// Output: pending 3 false
}

func ExampleEngine_OldestDue() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	client := newEngine(store) // executes nothing
	ctx := context.Background()
	for i := range 3 {
		if _, err := job.Start(ctx, client, i, durable.InQueue("slow")); err != nil {
			log.Fatal(err)
		}
	}
	due, err := client.OldestDue(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, d := range due {
		fmt.Println(d.Queue, d.Workflow, !d.Since.IsZero())
	}
	// Output: slow job true
}

func ExampleEngine_EventCursor() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	engine := newEngine(store, job)
	ctx := context.Background()
	if _, err := job.Call(ctx, engine, 1, durable.ID("before")); err != nil {
		log.Fatal(err)
	}
	cursor, err := engine.EventCursor(ctx)
	if err != nil {
		log.Fatal(err)
	}
	if _, err := job.Call(ctx, engine, 1, durable.ID("after")); err != nil {
		log.Fatal(err)
	}
	events, err := engine.Events(ctx, durable.Page{Cursor: cursor})
	if err != nil {
		log.Fatal(err)
	}
	for _, event := range events {
		fmt.Println(event.ID, event.Type)
	}
	// Output: after completed
}
