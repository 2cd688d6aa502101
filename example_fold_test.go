package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/exampletest"
)

// An import of a tenant's data: a second start joins the import under way, and a forced one replaces it.
func ExampleSingleton() {
	t := exampletest.New()
	defer t.End()
	imports := durable.Define("import", func(c *durable.Ctx, from string) (string, error) {
		err := c.Sleep("read", time.Hour)
		return "imported " + from, err
	})
	engine := durabletest.New(t, imports)
	engine.FreezeClock()
	ctx := context.Background()
	start := func(from string, opts ...durable.StartOption) *durable.Run[string] {
		run, err := imports.Start(ctx, engine.Engine, from, opts...)
		if err != nil {
			log.Fatal(err)
		}
		return run
	}
	first := start("monday.csv", durable.Singleton("tenant-7"))
	joined := start("tuesday.csv", durable.Singleton("tenant-7"))
	fmt.Println("the same run:", joined.ID() == first.ID())

	_, err := imports.Start(ctx, engine.Engine, "wednesday.csv", durable.Singleton("tenant-7", durable.SingletonRefuse))
	var live *durable.LiveError
	fmt.Println("refused:", errors.As(err, &live) && live.ID == first.ID())

	forced := start("thursday.csv", durable.Singleton("tenant-7", durable.SingletonReplace))
	engine.Advance(2 * time.Hour)
	_, err = first.Result(ctx)
	fmt.Println("cancelled:", errors.Is(err, durable.ErrCancelled))
	fmt.Println(forced.Result(ctx))
	// Output:
	// the same run: true
	// refused: true
	// cancelled: true
	// imported thursday.csv <nil>
}

// A search index is updated once somebody has stopped editing for ten seconds, and at least once a minute.
func ExampleDebounce() {
	t := exampletest.New()
	defer t.End()
	index := durable.Define("index", func(_ *durable.Ctx, text string) (string, error) { return "indexed " + text, nil })
	engine := durabletest.New(t, index)
	engine.FreezeClock()
	ctx := context.Background()
	var last *durable.Run[string]
	for _, text := range []string{"H", "Hel", "Hello"} {
		run, err := index.Start(ctx, engine.Engine, text, durable.Debounce("page-3", 10*time.Second, time.Minute))
		if err != nil {
			log.Fatal(err)
		}
		last = run
		engine.Advance(5 * time.Second)
	}
	engine.Advance(5 * time.Second)
	fmt.Println(last.Result(ctx))
	all, err := engine.List(ctx, durable.Filter{Workflow: "index"}, durable.Page{})
	fmt.Println(len(all.Runs), "run", err)
	// Output:
	// indexed Hello <nil>
	// 1 run <nil>
}

// At most two reminders a day for each customer.
func ExampleThrottle() {
	t := exampletest.New()
	defer t.End()
	remind := durable.Define("remind", func(_ *durable.Ctx, customer string) (string, error) { return "reminded " + customer, nil })
	engine := durabletest.NewWithOptions(t, []durable.Definition{remind}, durabletest.StartClockAt(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)))
	engine.FreezeClock()
	ctx := context.Background()
	for range 3 {
		_, err := remind.Start(ctx, engine.Engine, "ada", durable.Throttle("ada", 2, 24*time.Hour))
		var skipped *durable.ThrottledError
		if errors.As(err, &skipped) {
			fmt.Println("skipped until", skipped.Until.UTC().Format(time.DateTime))
			continue
		}
		fmt.Println("started", err)
		engine.Advance(time.Hour)
	}
	// Output:
	// started <nil>
	// started <nil>
	// skipped until 2026-03-28 12:00:00
}
