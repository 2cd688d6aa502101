package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

// background runs the engine until the returned function stop is called.
func background(engine *durable.Engine) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- engine.Run(ctx) }()
	return ctx, func() {
		cancel()
		if err := <-done; err != nil {
			log.Fatal(err)
		}
	}
}

// A signal may be sent before the run waits for it.
func ExampleCtx_Receive() {
	store, remove := temporary()
	defer remove()
	approve := durable.Define("approve", func(c *durable.Ctx, what string) (string, error) {
		who, err := c.Receive[string]("approved by", durable.Within(time.Hour), durable.Else("nobody"))
		return what + " approved by " + who, err
	})
	engine := newEngine(store, approve)
	ctx, stop := background(engine)
	defer stop()
	run, err := approve.Start(ctx, engine, "order 42", durable.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	if err := engine.Signal(ctx, "order-42", "approved by", "Ada", durable.SignalKey("mail-7")); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	// Output: order 42 approved by Ada <nil>
}

// Any outside system can get the token, and complete the wait with it.
func ExampleCtx_Callback() {
	store, remove := temporary()
	defer remove()
	mails := make(chan string, 1)
	confirm := durable.Define("confirm", func(c *durable.Ctx, _ string) (bool, error) {
		answer := c.Callback[bool]("answer")
		if err := c.Do("mail", func(context.Context) error { mails <- answer.Token(); return nil }); err != nil {
			return false, err
		}
		return answer.Wait(durable.Within(24 * time.Hour))
	})
	engine := newEngine(store, confirm)
	ctx, stop := background(engine)
	defer stop()
	run, err := confirm.Start(ctx, engine, "ada@example.org")
	if err != nil {
		log.Fatal(err)
	}
	if err := engine.Complete(ctx, <-mails, true); err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	// Output: true <nil>
}

func ExampleCtx_Child() {
	store, remove := temporary()
	defer remove()
	square := durable.Define("square", func(c *durable.Ctx, n int) (int, error) {
		return c.Step("multiply", func(context.Context) (int, error) { return n * n, nil })
	})
	sum := durable.Define("sum of squares", func(c *durable.Ctx, n int) (sum int, err error) {
		children := make([]*durable.Child[int], n)
		for i := range children {
			if children[i], err = c.StartChild(fmt.Sprint("square ", i+1), square, i+1); err != nil {
				return 0, err
			}
		}
		for _, child := range children {
			result, err := child.Wait()
			if err != nil {
				return 0, err
			}
			sum += result
		}
		return sum, nil
	})
	engine := newEngine(store, sum, square)
	fmt.Println(sum.Call(context.Background(), engine, 4, durable.ID("four")))
	counts, err := engine.TreeCounts(context.Background(), "four")
	fmt.Println(counts.Statuses, err)
	// Output:
	// 30 <nil>
	// map[completed:5] <nil>
}

func ExampleCtx_Compensate() {
	store, remove := temporary()
	defer remove()
	trip := durable.Define("trip", func(c *durable.Ctx, _ string) (string, error) {
		for _, what := range []string{"flight", "hotel"} {
			undo := func(context.Context) error { fmt.Println("cancelled the", what); return nil }
			if err := c.Compensate("cancel the "+what, undo); err != nil {
				return "", err
			}
			if err := c.Do("book the "+what, func(context.Context) error { return nil }); err != nil {
				return "", err
			}
		}
		return "", errors.New("no car is left")
	})
	_, err := trip.Call(context.Background(), newEngine(store, trip), "Rome", durable.ID("trip-1"))
	fmt.Println(err)
	// Output:
	// cancelled the hotel
	// cancelled the flight
	// run "trip-1" of workflow "trip" failed: no car is left
}

func ExampleEngine_Cancel() {
	store, remove := temporary()
	defer remove()
	wait := durable.Define("wait", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
	client := newEngine(store)
	ctx := context.Background()
	run, err := wait.Start(ctx, client, 0, durable.ID("run-1"))
	if err != nil {
		log.Fatal(err)
	}
	effect, err := client.Cancel(ctx, "run-1", durable.Reason("not needed"), durable.Actor("ann"))
	fmt.Println(effect.Done, effect.Requested, err)
	_, err = run.Result(ctx)
	fmt.Println(err, errors.Is(err, durable.ErrCancelled))
	_, err = client.Resume(ctx, "run-1")
	var state *durable.StateError
	fmt.Println(err, errors.As(err, &state))
	// Output:
	// 1 0 <nil>
	// run "run-1" of workflow "wait" cancelled: cancelled by ann: not needed true
	// cannot resume run "run-1": it is cancelled true
}

func ExampleEngine_PauseAll() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	client := newEngine(store)
	ctx := context.Background()
	for i := range 3 {
		if _, err := job.Start(ctx, client, i, durable.Tag("team.owner", "ann")); err != nil {
			log.Fatal(err)
		}
	}
	anns := durable.Filter{Tag: "team.owner", TagValue: "ann"}
	effect, err := client.PauseAll(ctx, anns, durable.DryRun())
	fmt.Println(effect.Matched, effect.Done, err)
	effect, err = client.PauseAll(ctx, anns, durable.Reason("the bank is closed"))
	fmt.Println(effect.Matched, effect.Done, err)
	// Output:
	// 3 0 <nil>
	// 3 3 <nil>
}

func ExampleEngine_WatchEvents() {
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
	cursor := "" // a program stores it where the handler stores its results
	for event, err := range engine.WatchEvents(ctx, cursor) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(event.ID, event.Type)
		if cursor = event.Cursor; event.ID == "Grace" {
			break
		}
	}
	// Output:
	// Ada completed
	// Grace completed
}

func ExampleEngine_List() {
	store, remove := temporary()
	defer remove()
	job := durable.Define("job", func(*durable.Ctx, int) (int, error) { return 0, nil })
	client := newEngine(store)
	ctx := context.Background()
	for i := range 5 {
		if _, err := job.Start(ctx, client, i, durable.ID(fmt.Sprint("job-", i))); err != nil {
			log.Fatal(err)
		}
	}
	var page durable.Page
	for page.Limit = 2; ; {
		got, err := client.List(ctx, durable.Filter{Workflow: "job", IDPrefix: "job-"}, page)
		if err != nil {
			log.Fatal(err)
		}
		for _, run := range got.Runs {
			fmt.Println(run.ID, run.Status)
		}
		if page.Cursor = got.Next; page.Cursor == "" {
			break
		}
	}
	// Output:
	// job-4 pending
	// job-3 pending
	// job-2 pending
	// job-1 pending
	// job-0 pending
}
