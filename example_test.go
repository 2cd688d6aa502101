package durable_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// temporary opens a store in a temporary file for an example. A program would use a permanent file.
func temporary() (store durable.Store, remove func()) {
	dir, err := os.MkdirTemp("", "durable-example")
	if err != nil {
		log.Fatal(err)
	}
	s, err := sqlite.Open(filepath.Join(dir, "example.db"))
	if err != nil {
		log.Fatal(err)
	}
	return s, func() {
		if err := errors.Join(s.Close(), os.RemoveAll(dir)); err != nil {
			log.Fatal(err)
		}
	}
}

func newEngine(s durable.Store, workflows ...durable.Definition) *durable.Engine {
	engine, err := durable.New(s, durable.Config{Workflows: workflows})
	if err != nil {
		log.Fatal(err)
	}
	return engine
}

func ExampleDefine() {
	store, remove := temporary()
	defer remove()
	greet := durable.Define("greet", func(c *durable.Ctx, name string) (string, error) {
		return c.Step("compose", func(context.Context) (string, error) { return "hello, " + name, nil })
	})
	engine := newEngine(store, greet)
	fmt.Println(greet.Call(context.Background(), engine, "Ada"))
	// Output: hello, Ada <nil>
}

func ExampleWorkflow_Start() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine := newEngine(store, double)
	ctx, stop := context.WithCancel(context.Background())
	stopped := make(chan error)
	go func() { stopped <- engine.Run(ctx) }()

	run, err := double.Start(ctx, engine, 21, durable.ID("answer"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	_, err = double.Start(ctx, engine, 22, durable.ID("answer"))
	fmt.Println(errors.Is(err, durable.ErrIDConflict))

	stop()
	fmt.Println(<-stopped)
	// Output:
	// 42 <nil>
	// true
	// <nil>
}

// A Call with the same ID continues the run where it stopped, or returns its result.
func ExampleWorkflow_Call() {
	store, remove := temporary()
	defer remove()
	count := durable.Define("count", func(c *durable.Ctx, to int) (int, error) {
		for i := range to {
			if err := c.Do(fmt.Sprint("number ", i), func(context.Context) error {
				fmt.Println("counting", i)
				return nil
			}); err != nil {
				return 0, err
			}
		}
		return to, nil
	})
	for range 2 {
		fmt.Println(count.Call(context.Background(), newEngine(store, count), 2, durable.ID("count-1")))
	}
	// Output:
	// counting 0
	// counting 1
	// 2 <nil>
	// 2 <nil>
}

func ExampleWorkflow_StartMany() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	client := newEngine(store)
	runs, err := double.StartMany(context.Background(), client, []durable.StartItem[int]{{ID: "a", Input: 1}, {ID: "b", Input: 2}, {Input: 3}})
	fmt.Println(len(runs), runs[0].ID(), runs[1].ID(), err)
	// Output: 3 a b <nil>
}

func ExampleWorkflow_Handle() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	engine := newEngine(store, double)
	ctx := context.Background()
	if _, err := double.Call(ctx, engine, 4, durable.ID("x")); err != nil {
		log.Fatal(err)
	}
	run, err := double.Handle(ctx, engine, "x") // possible in any process, at any time
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(run.Result(ctx))
	// Output: 8 <nil>
}

func ExampleID() {
	store, remove := temporary()
	defer remove()
	double := durable.Define("double", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	client := newEngine(store)
	ctx := context.Background()
	first, err := double.Start(ctx, client, 1, durable.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	again, err := double.Start(ctx, client, 1, durable.ID("order-42"))
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(again.ID(), again.RunID() == first.RunID())
	// Output: order-42 true
}

// The result of a step is recorded: every execution of the workflow function gets the same result.
func ExampleCtx_Step() {
	store, remove := temporary()
	defer remove()
	draw := durable.Define("draw", func(c *durable.Ctx, sides int) (bool, error) {
		n, err := c.Step("throw", func(context.Context) (int, error) { return rand.N(sides) + 1, nil })
		return n >= 1 && n <= sides, err
	})
	fmt.Println(draw.Call(context.Background(), newEngine(store, draw), 6))
	// Output: true <nil>
}

func ExampleCtx_Do() {
	store, remove := temporary()
	defer remove()
	send := durable.Define("send", func(c *durable.Ctx, to []string) (int, error) {
		for _, who := range to {
			// Names are keys: in a loop, add the item's key to the name.
			if err := c.Do("mail to "+who, func(context.Context) error {
				fmt.Println("mail to", who)
				return nil
			}); err != nil {
				return 0, err
			}
		}
		return len(to), nil
	})
	fmt.Println(send.Call(context.Background(), newEngine(store, send), []string{"Ada", "Rob"}))
	// Output:
	// mail to Ada
	// mail to Rob
	// 2 <nil>
}

// A step with AtMostOnce is executed at most once. After a crash during the step it is unknown whether it took effect, and it
// fails with ErrOutcomeUnknown.
func ExampleAtMostOnce() {
	store, remove := temporary()
	defer remove()
	pay := durable.Define("pay", func(c *durable.Ctx, cents int) (string, error) {
		id, err := c.Step("charge", func(context.Context) (string, error) { return "payment-7", nil }, durable.AtMostOnce())
		if errors.Is(err, durable.ErrOutcomeUnknown) {
			return "ask the bank", nil
		}
		return id, err
	})
	fmt.Println(pay.Call(context.Background(), newEngine(store, pay), 1999))
	// Output: payment-7 <nil>
}

func ExampleRetry() {
	store, remove := temporary()
	defer remove()
	fetch := durable.Define("fetch", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("get", func(ctx context.Context) (string, error) {
			if n := durable.Attempt(ctx); n < 3 {
				fmt.Println("attempt", n, "fails")
				return "", errors.New("unreachable")
			}
			return "a page", nil
		}, durable.Retry(durable.Exponential(time.Millisecond, time.Second, 5)))
	})
	fmt.Println(fetch.Call(context.Background(), newEngine(store, fetch), 0))
	// Output:
	// attempt 1 fails
	// attempt 2 fails
	// a page <nil>
}

var errNoFunds = durable.RegisterError("example.no_funds", errors.New("no funds"))

func ExamplePermanent() {
	store, remove := temporary()
	defer remove()
	pay := durable.Define("pay", func(c *durable.Ctx, _ int) (int, error) {
		return 0, c.Do("charge", func(context.Context) error {
			return durable.Permanent(errNoFunds) // a further attempt would fail too
		}, durable.Retry(durable.Fixed(time.Hour, 10)))
	})
	_, err := pay.Call(context.Background(), newEngine(store, pay), 0, durable.ID("p-1"))
	fmt.Println(err)
	// Output: run "p-1" of workflow "pay" failed: step "charge" failed: no funds
}

// errors.Is also finds a registered sentinel in errors that are read from the database.
func ExampleRegisterError() {
	store, remove := temporary()
	defer remove()
	pay := durable.Define("pay", func(c *durable.Ctx, _ int) (int, error) {
		return 0, c.Do("charge", func(context.Context) error { return fmt.Errorf("at the bank: %w", errNoFunds) })
	})
	for range 2 { // the second Call returns the recorded failure
		_, err := pay.Call(context.Background(), newEngine(store, pay), 0, durable.ID("p-1"))
		var failed *durable.RunError
		fmt.Println(errors.Is(err, errNoFunds), errors.As(err, &failed) && failed.Step == "charge")
	}
	// Output:
	// true true
	// true true
}

// Verify is called only after a crash, when it is unknown whether the step took effect.
func ExampleVerify() {
	store, remove := temporary()
	defer remove()
	send := durable.Define("send", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("mail", func(ctx context.Context) (string, error) {
			return "sent", nil
		}, durable.Verify(func(ctx context.Context) (string, bool, error) {
			return "sent", true, nil // a program queries the mail server for IdempotencyKey(ctx)
		}))
	})
	fmt.Println(send.Call(context.Background(), newEngine(store, send), 0))
	// Output: sent <nil>
}

func ExampleCtx_Sleep() {
	store, remove := temporary()
	defer remove()
	remind := durable.Define("remind", func(c *durable.Ctx, wait time.Duration) (string, error) {
		if err := c.Sleep("until due", wait); err != nil {
			return "", err
		}
		return "it is time", nil
	})
	fmt.Println(remind.Call(context.Background(), newEngine(store, remind), 10*time.Millisecond))
	// Output: it is time <nil>
}

func ExampleCtx_Map() {
	store, remove := temporary()
	defer remove()
	upper := durable.Define("upper", func(c *durable.Ctx, words []string) ([]string, error) {
		return c.Map("words", words, func(_ context.Context, word string) (string, error) {
			return strings.ToUpper(word), nil
		}, durable.Parallel(4))
	})
	fmt.Println(upper.Call(context.Background(), newEngine(store, upper), []string{"a", "b", "c"}))
	// Output: [A B C] <nil>
}

func ExampleAny() {
	store, remove := temporary()
	defer remove()
	race := durable.Define("race", func(c *durable.Ctx, _ int) (string, error) {
		slow := c.Go("slow", func(c *durable.Ctx) (string, error) { return "slow", c.Sleep("nap", 200*time.Millisecond) })
		quick := c.Go("quick", func(c *durable.Ctx) (string, error) { return "quick", nil })
		_, winner, err := durable.Any(c, "first", durable.CancelLosers, slow, quick)
		return winner, err
	})
	fmt.Println(race.Call(context.Background(), newEngine(store, race), 0))
	// Output: quick <nil>
}

func ExampleEngine_History() {
	store, remove := temporary()
	defer remove()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Do("a", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return c.Step("b", func(context.Context) (int, error) { return 7, nil })
	})
	engine := newEngine(store, w)
	ctx := context.Background()
	if _, err := w.Call(ctx, engine, 0, durable.ID("x")); err != nil {
		log.Fatal(err)
	}
	info, err := engine.Get(ctx, "x")
	if err != nil {
		log.Fatal(err)
	}
	history, err := engine.History(ctx, "x")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(info.Status, string(info.Output))
	for _, h := range history {
		fmt.Println(h.Name, h.Kind, h.Status, string(h.Output))
	}
	// Output:
	// completed 7
	// a step completed {}
	// b step completed 7
}
