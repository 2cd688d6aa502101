package durable_test

import (
	"context"
	"encoding/json/v2"
	"fmt"
	"log"
	"log/slog"
	"os"
	"time"

	"github.com/seed8ec063be/durable"
)

func ExampleEngine_Get() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine := newEngine(store, double)
	ctx := context.Background()
	if _, err := double.Call(ctx, engine, 21, durable.ID("answer")); err != nil {
		log.Fatal(err)
	}
	run, err := engine.Get(ctx, "answer")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.ID, run.Workflow, run.Status, run.Input, run.Output)
	// Output: answer double completed 21 42
}

func ExampleEngine_HistoryPage() {
	store, remove := temporary()
	defer remove()
	digits := durable.Define("digits", func(c *durable.Ctx, n int) (string, error) {
		for i := range n {
			if _, err := c.Step(fmt.Sprint("digit ", i), func(context.Context) (int, error) { return i, nil }); err != nil {
				return "", err
			}
		}
		return "all", nil
	})
	engine := newEngine(store, digits)
	ctx := context.Background()
	if _, err := digits.Call(ctx, engine, 10, durable.ID("digits-1")); err != nil {
		log.Fatal(err)
	}
	page, err := engine.HistoryPage(ctx, "digits-1", durable.HistoryPart{From: 7, Limit: 2})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(page.Outline), "calls")
	for _, c := range page.Calls {
		fmt.Println(c.Name, c.Output)
	}
	// Output:
	// 10 calls
	// digit 7 7
	// digit 8 8
}

func ExampleEngine_Tree() {
	store, remove := temporary()
	defer remove()
	pack := durable.Define("pack", func(*durable.Ctx, string) (string, error) { return "packed", nil })
	order := durable.Define("order", func(c *durable.Ctx, items []string) (string, error) {
		for _, item := range items {
			if _, err := c.Child("pack "+item, pack, item); err != nil {
				return "", err
			}
		}
		return "sent", nil
	})
	engine := newEngine(store, order, pack)
	ctx := context.Background()
	if _, err := order.Call(ctx, engine, []string{"cup", "plate"}, durable.ID("order-1")); err != nil {
		log.Fatal(err)
	}
	tree, err := engine.Tree(ctx, "order-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(tree.ID, tree.Status)
	for _, child := range tree.Children {
		fmt.Println("-", child.Name, child.Status)
	}
	// Output:
	// order-1 completed
	// - pack cup completed
	// - pack plate completed
}

func ExampleEngine_SetTags() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	client := newEngine(store)
	ctx := context.Background()
	if _, err := job.Start(ctx, client, 0, durable.ID("job-1")); err != nil {
		log.Fatal(err)
	}
	if err := client.SetTags(ctx, "job-1", map[string]string{"team.owner": "ann"}); err != nil {
		log.Fatal(err)
	}
	page, err := client.List(ctx, durable.Filter{Tag: "team.owner", TagValue: "ann"}, durable.Page{})
	if err != nil {
		log.Fatal(err)
	}
	for _, run := range page.Runs {
		fmt.Println(run.ID)
	}
	// Output: job-1
}

func ExampleEngine_Events() {
	store, remove := temporary()
	defer remove()
	greet := durable.Define("greet", func(_ *durable.Ctx, name string) (string, error) { return "hello, " + name, nil })
	engine := newEngine(store, greet)
	ctx := context.Background()
	for _, name := range []string{"Ada", "Grace"} {
		if _, err := greet.Call(ctx, engine, name, durable.ID(name)); err != nil {
			log.Fatal(err)
		}
	}
	cursor := "" // of the last event that was handled
	for {
		events, err := engine.Events(ctx, durable.Page{Cursor: cursor, Limit: 1})
		if err != nil {
			log.Fatal(err)
		}
		if len(events) == 0 {
			break
		}
		for _, event := range events {
			fmt.Println(event.ID, event.Type)
			cursor = event.Cursor
		}
	}
	// Output:
	// Ada completed
	// Grace completed
}

func ExampleEngine_LatestEvents() {
	store, remove := temporary()
	defer remove()
	greet := durable.Define("greet", func(_ *durable.Ctx, name string) (string, error) { return "hello, " + name, nil })
	engine := newEngine(store, greet)
	ctx := context.Background()
	for _, name := range []string{"Ada", "Grace"} {
		if _, err := greet.Call(ctx, engine, name, durable.ID(name)); err != nil {
			log.Fatal(err)
		}
	}
	events, err := engine.LatestEvents(ctx, durable.Page{Limit: 1})
	for _, event := range events {
		fmt.Println(event.ID, event.Type, err)
	}
	// Output: Grace completed <nil>
}

func ExampleEngine_Export() {
	store, remove := temporary()
	defer remove()
	greet := durable.Define("greet", func(c *durable.Ctx, name string) (string, error) {
		return c.Step("compose", func(context.Context) (string, error) { return "hello, " + name, nil })
	})
	engine := newEngine(store, greet)
	ctx := context.Background()
	if _, err := greet.Call(ctx, engine, "Ada", durable.ID("ada")); err != nil {
		log.Fatal(err)
	}
	file, err := engine.Export(ctx, "ada") // durabletest.Replay executes new code against it
	if err != nil {
		log.Fatal(err)
	}
	var export durable.Exported
	if err := json.Unmarshal(file, &export); err != nil {
		log.Fatal(err)
	}
	fmt.Println(export.Run.ID, export.Run.Status, export.History[0].Name, export.History[0].Output)
	// Output: ada completed compose "hello, Ada"
}

func ExampleEngine_Now() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine, ctx := newEngine(store, double), context.Background()
	if _, err := double.Call(ctx, engine, 21, durable.ID("run")); err != nil {
		log.Fatal(err)
	}
	run, err := engine.Get(ctx, "run")
	if err != nil {
		log.Fatal(err)
	}
	now, err := engine.Now(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(now.Sub(run.EndedAt) < time.Minute) // the clock of this machine may differ
	// Output: true
}

func ExampleEngine_ReplayExport() {
	store, remove := temporary()
	defer remove()
	greet := func(step string) *durable.Workflow[string, string] {
		return durable.Define("greet", func(c *durable.Ctx, name string) (string, error) {
			return c.Step(step, func(context.Context) (string, error) { return "hello, " + name, nil })
		})
	}
	ctx, old := context.Background(), greet("compose")
	engine := newEngine(store, old)
	if _, err := old.Call(ctx, engine, "Ada", durable.ID("ada")); err != nil {
		log.Fatal(err)
	}
	file, err := engine.Export(ctx, "ada")
	if err != nil {
		log.Fatal(err)
	}
	next := newEngine(store, greet("write")) // the code of tomorrow, in which the step has another name
	run, err := next.ReplayExport(ctx, file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.ID, run.Diverged, run.Call)
	// Output: ada true write
}

func ExampleEngine_Workers() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine, err := durable.New(store, durable.Config{Name: "worker-1", Workflows: []durable.Definition{double}})
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := background(engine)
	defer stop()
	run, err := double.Start(ctx, newEngine(store), 21) // by a client, so that the worker executes it
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	workers, err := engine.Workers(ctx)
	if err != nil {
		log.Fatal(err)
	}
	for _, w := range workers {
		fmt.Println(w.Name, w.State, w.Workflows)
	}
	// Output:
	// 42 <nil>
	// worker-1 running [double]
}

func ExampleEngine_Stats() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(_ *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine := newEngine(store, double)
	if _, err := double.Call(context.Background(), engine, 21); err != nil {
		log.Fatal(err)
	}
	stats := engine.Stats()
	fmt.Println(stats.EndedExecutions, stats.MeanFlushRows() >= 1)
	// Output: 1 true
}

func ExampleCtx_Logger() {
	store, remove := temporary()
	defer remove()
	pay := durable.Define("pay", func(c *durable.Ctx, cents int) (int, error) {
		c.Logger().Warn("a large payment", "cents", cents) // not written again in a replay
		return cents, nil
	})
	short := func(_ []string, a slog.Attr) slog.Attr { // leaves out what differs each time
		if a.Key == slog.TimeKey || a.Key == "run" || a.Key == "epoch" {
			return slog.Attr{}
		}
		return a
	}
	handler := slog.NewTextHandler(os.Stdout, &slog.HandlerOptions{Level: slog.LevelWarn, ReplaceAttr: short})
	engine, err := durable.New(store, durable.Config{Workflows: []durable.Definition{pay}, Logger: slog.New(handler)})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := pay.Call(context.Background(), engine, 1_000_000, durable.ID("p-1")); err != nil {
		log.Fatal(err)
	}
	// Output: level=WARN msg="a large payment" name=p-1 workflow=pay cents=1000000
}

// The process stops while the run waits. The next one replays the recorded step.
func ExampleCtx_Replaying() {
	store, remove := temporary()
	defer remove()
	ctx, stop := context.WithCancel(context.Background())
	approve := durable.Define("approve", func(c *durable.Ctx, _ int) (string, error) {
		fmt.Println("replaying:", c.Replaying())
		if err := c.Do("mail the boss", func(context.Context) error { return nil }); err != nil {
			return "", err
		}
		stop()
		return c.Receive[string]("answer")
	})
	_, err := approve.Call(ctx, newEngine(store, approve), 0, durable.ID("a-1"))
	fmt.Println(err != nil)
	engine := newEngine(store, approve)
	if err := engine.Signal(context.Background(), "a-1", "answer", "yes"); err != nil {
		log.Fatal(err)
	}
	fmt.Println(approve.Call(context.Background(), engine, 0, durable.ID("a-1")))
	// Output:
	// replaying: false
	// true
	// replaying: true
	// yes <nil>
}
