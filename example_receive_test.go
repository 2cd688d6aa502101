package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
)

// The names of durable calls are keys. With OnSignal, several receives take signals of one name.
func ExampleOnSignal() {
	store, remove := temporary()
	defer remove()
	collect := durable.Define("collect", func(c *durable.Ctx, n int) (sum int, err error) {
		for i := range n {
			v, err := c.Receive[int](fmt.Sprint("number ", i), durable.OnSignal("number"))
			if err != nil {
				return 0, err
			}
			sum += v
		}
		return sum, nil
	})
	engine := newEngine(store, collect)
	ctx := context.Background()
	if _, err := collect.Start(ctx, newEngine(store), 2, durable.ID("sum-1")); err != nil {
		log.Fatal(err)
	}
	for _, n := range []int{20, 22} {
		if err := engine.Signal(ctx, "sum-1", "number", n); err != nil {
			log.Fatal(err)
		}
	}
	fmt.Println(collect.Call(ctx, engine, 2, durable.ID("sum-1")))
	// Output: 42 <nil>
}

func ExampleElseCancel() {
	store, remove := temporary()
	defer remove()
	confirm := durable.Define("confirm", func(c *durable.Ctx, _ string) (string, error) {
		return c.Receive[string]("answer", durable.Within(10*time.Millisecond), durable.ElseCancel())
	})
	_, err := confirm.Call(context.Background(), newEngine(store, confirm), "")
	fmt.Println(errors.Is(err, durable.ErrCancelled))
	// Output: true
}

func ExampleElseExpire() {
	store, remove := temporary()
	defer remove()
	confirm := durable.Define("confirm", func(c *durable.Ctx, _ string) (string, error) {
		return c.Receive[string]("answer", durable.Within(10*time.Millisecond), durable.ElseExpire())
	})
	engine := newEngine(store, confirm)
	ctx := context.Background()
	_, err := confirm.Call(ctx, engine, "", durable.ID("c-1"))
	fmt.Println(errors.Is(err, durable.ErrTimeout))
	run, err := engine.Get(ctx, "c-1")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Status)
	// Output:
	// true
	// expired
}

// Nobody approves in time, so a run is started that asks the boss. The boss's answer still reaches the first run.
func ExampleElseStart() {
	store, remove := temporary()
	defer remove()
	askBoss := durable.Define("ask the boss", func(c *durable.Ctx, order string) (string, error) {
		return "", c.Signal("answer", order, "approved by", "the boss")
	})
	approve := durable.Define("approve", func(c *durable.Ctx, _ int) (string, error) {
		return c.Receive[string]("approved by", durable.Within(10*time.Millisecond), durable.ElseStart(askBoss, c.ID()))
	})
	engine := newEngine(store, approve, askBoss)
	ctx, stop := background(engine)
	defer stop()
	run, err := approve.Start(ctx, engine, 0, durable.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	// Output: the boss <nil>
}

// Nobody approves in time, so the run "boss", which waits for such cases, gets a signal.
func ExampleElseSignal() {
	store, remove := temporary()
	defer remove()
	boss := durable.Define("boss", func(c *durable.Ctx, _ int) (string, error) {
		order, err := c.Receive[string]("late")
		if err != nil {
			return "", err
		}
		return order, c.Signal("answer", order, "approved by", "the boss")
	})
	approve := durable.Define("approve", func(c *durable.Ctx, _ int) (string, error) {
		return c.Receive[string]("approved by", durable.Within(10*time.Millisecond), durable.ElseSignal("boss", "late", c.ID()))
	})
	engine := newEngine(store, approve, boss)
	ctx, stop := background(engine)
	defer stop()
	if _, err := boss.Start(ctx, engine, 0, durable.ID("boss")); err != nil {
		log.Fatal(err)
	}
	run, err := approve.Start(ctx, engine, 0, durable.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	// Output: the boss <nil>
}
