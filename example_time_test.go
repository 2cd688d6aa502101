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

func ExampleCtx_SleepUntil() {
	store, remove := temporary()
	defer remove()
	remind := durable.Define("remind", func(c *durable.Ctx, wait time.Duration) (string, error) {
		asked, err := c.Now("asked")
		if err != nil {
			return "", err
		}
		return "it is time", c.SleepUntil("due", asked.Add(wait))
	})
	fmt.Println(remind.Call(context.Background(), newEngine(store, remind), 10*time.Millisecond))
	// Output: it is time <nil>
}

// The whole run may take 10 ms.
func ExampleTimeout() {
	store, remove := temporary()
	defer remove()
	ask := durable.Define("ask", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("answer") })
	engine := newEngine(store, ask)
	ctx := context.Background()
	_, err := ask.Call(ctx, engine, "", durable.ID("ask-1"), durable.Timeout(10*time.Millisecond))
	fmt.Println(errors.Is(err, durable.ErrTimeout))
	run, err := engine.Get(ctx, "ask-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status)
	// Output:
	// true
	// expired
}

func ExampleCtx_Deadline() {
	store, remove := temporary()
	defer remove()
	ask := durable.Define("ask", func(c *durable.Ctx, _ string) (bool, error) {
		_, limited := c.Deadline() // for information: a decision on it could differ in a replay
		return limited, nil
	})
	fmt.Println(ask.Call(context.Background(), newEngine(store, ask), "", durable.Timeout(time.Hour)))
	// Output: true <nil>
}

func ExampleEngine_SetTimeout() {
	store, remove := temporary()
	defer remove()
	ask := durable.Define("ask", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("answer") })
	client := newEngine(store)
	ctx := context.Background()
	if _, err := ask.Start(ctx, client, "", durable.ID("ask-1"), durable.Timeout(time.Minute)); err != nil {
		log.Fatal(err)
	}
	if err := client.SetTimeout(ctx, "ask-1", 24*time.Hour); err != nil {
		log.Fatal(err)
	}
	run, err := client.Get(ctx, "ask-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Deadline.Sub(run.CreatedAt).Round(time.Hour))
	// Output: 24h0m0s
}

func ExampleDelay() {
	store, remove := temporary()
	defer remove()
	remind := durable.Define("remind", func(*durable.Ctx, string) (int, error) { return 0, nil })
	client := newEngine(store)
	ctx := context.Background()
	if _, err := remind.Start(ctx, client, "water the plants", durable.ID("plants"), durable.Delay(24*time.Hour)); err != nil {
		log.Fatal(err)
	}
	run, err := client.Get(ctx, "plants")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status, run.WakeAt.Sub(run.CreatedAt).Round(time.Hour))
	// Output: pending 24h0m0s
}

// A run that was paused for a day sleeps for a day longer. In a test, t is the *testing.T.
func ExampleFreezeTimers() {
	t := exampletest.New()
	defer t.End()
	trial := durable.Define("trial", func(c *durable.Ctx, _ string) (string, error) {
		return "over", c.Sleep("trial", 30*24*time.Hour)
	})
	e := durabletest.New(t, trial)
	run, err := trial.Start(t.Context(), e.Engine, "ada", durable.ID("ada"))
	if err != nil {
		t.Fatal(err)
	}
	e.Advance(time.Hour)
	if _, err := e.Pause(t.Context(), "ada"); err != nil {
		t.Fatal(err)
	}
	e.Advance(24 * time.Hour)
	if _, err := e.Resume(t.Context(), "ada", durable.FreezeTimers()); err != nil {
		t.Fatal(err)
	}
	before := e.Now()
	fmt.Println(run.Result(t.Context()))
	fmt.Println(e.Now().Sub(before).Round(time.Hour))
	// Output:
	// over <nil>
	// 719h0m0s
}

// The first attempt hangs, and is ended after 10 ms.
func ExampleAttemptTimeout() {
	store, remove := temporary()
	defer remove()
	fetch := durable.Define("fetch", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("get", func(ctx context.Context) (string, error) {
			if durable.Attempt(ctx) == 1 {
				<-ctx.Done()
				return "", ctx.Err()
			}
			return "a page", nil
		}, durable.AttemptTimeout(10*time.Millisecond), durable.Retry(durable.Fixed(time.Millisecond, 1000)))
	})
	fmt.Println(fetch.Call(context.Background(), newEngine(store, fetch), 0))
	// Output: a page <nil>
}

func ExampleTotalTimeout() {
	store, remove := temporary()
	defer remove()
	fetch := durable.Define("fetch", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("get", func(context.Context) (string, error) { return "", errors.New("unreachable") },
			durable.Retry(durable.Fixed(time.Millisecond, 1_000_000)), durable.TotalTimeout(20*time.Millisecond))
	})
	_, err := fetch.Call(context.Background(), newEngine(store, fetch), 0)
	fmt.Println(errors.Is(err, durable.ErrTimeout))
	// Output: true
}
