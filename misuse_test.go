package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A step that calls IdempotencyKey with the workflow's Ctx fails before it can send a request with an empty key. It is executed
// once, and the error says which context to pass.
func TestIdempotencyKeyWantsTheStepsContext(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for name, derive := range map[string]func(*durable.Ctx) context.Context{
			"the Ctx itself": func(c *durable.Ctx) context.Context { return c },
			"derived from it": func(c *durable.Ctx) context.Context {
				ctx, cancel := context.WithTimeout(c, time.Minute)
				t.Cleanup(cancel)
				return ctx
			},
		} {
			calls, sent := 0, 0
			w := durable.Define("w", func(c *durable.Ctx, _ string) (int, error) {
				return c.Step("charge", func(context.Context) (int, error) {
					calls++
					_ = durable.IdempotencyKey(derive(c))
					sent++
					return 1, nil
				}, durable.Retry(durable.Fixed(0, 3)))
			})
			_, err := w.Call(within(t), engineOn(t, s, w), name)
			var failed *durable.RunError
			if !errors.Is(err, durable.ErrOutsideStep) || !errors.Is(err, durable.ErrPanic) || !errors.As(err, &failed) || failed.Step != "charge" {
				t.Errorf("%s: %v, want ErrOutsideStep of step charge", name, err)
			} else if !strings.Contains(err.Error(), "pass the context that the step's function gets") {
				t.Errorf("%s: the error does not tell the fix: %v", name, err)
			}
			if calls != 1 || sent != 0 {
				t.Errorf("%s: the function was called %d times and went on %d times, want 1 and 0", name, calls, sent)
			}
		}
	})
}

// IdempotencyKey also panics in the workflow function itself. Outside of a workflow it returns an empty string.
func TestIdempotencyKeyOutsideSteps(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) { return durable.IdempotencyKey(c), nil })
	if _, err := w.Call(within(t), engineOn(t, s, w), 0); !errors.Is(err, durable.ErrOutsideStep) {
		t.Errorf("got %v, want ErrOutsideStep", err)
	}
	if key := durable.IdempotencyKey(t.Context()); key != "" {
		t.Errorf("outside of workflows: %q", key)
	}
}

// If a goroutine that the workflow function did not wait for makes a durable call after the function has returned, the call
// returns ErrReturned, and a line is logged, once for each run.
func TestCallsAfterTheFunctionHasReturned(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		nothing := func(context.Context) error { return nil }
		late := make(chan error, 4)
		w := durable.Define("hasty", func(c *durable.Ctx, _ int) (int, error) {
			go func() {
				<-c.Done()
				late <- c.Do("mail", nothing)
				late <- c.Sleep("nap", time.Minute)
				_, err := c.Receive[int]("go")
				late <- err
				_, err = c.Go("branch", func(*durable.Ctx) (int, error) { return 0, nil }).Wait()
				late <- err
			}()
			return 1, nil
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}})
		if got, err := w.Call(within(t), engineWith(t, s, cfg), 0, durable.ID("run")); got != 1 || err != nil {
			t.Fatal(got, err)
		}
		for _, name := range []string{"mail", "nap", "go", "branch"} {
			err := <-late
			if !errors.Is(err, durable.ErrReturned) || !errors.Is(err, durable.ErrSuspended) {
				t.Errorf("%s: %v, want ErrReturned", name, err)
				continue
			}
			for _, want := range []string{`"` + name + `"`, `run "run"`, "misuse_test.go:", "Ctx.Go"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%s: the error lacks %s: %v", name, want, err)
				}
			}
		}
		const text = "a durable call was made after its workflow function had returned, and is not executed: start the goroutine with Ctx.Go, and await it with Wait or All before the function returns"
		has(t, log.only(t, text), "WARN", map[string]any{"name": "run", "workflow": "hasty", "step": "mail"})
	})
}

// The same holds for a step that was under way when the function returned: its result is not recorded.
func TestStepsUnderWayWhenTheFunctionReturns(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		hold, late := newGate(), make(chan error, 1)
		w := durable.Define("hasty", func(c *durable.Ctx, _ int) (int, error) {
			go func() { late <- c.Do("mail", hold.pass) }()
			<-hold.entered
			return 1, nil
		})
		cfg, log := logged(durable.Config{Workflows: []durable.Definition{w}})
		e := engineWith(t, s, cfg)
		running(t, e)
		run, err := w.Start(within(t), e, 0)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(within(t)); got != 1 || err != nil {
			t.Fatal(got, err)
		}
		close(hold.open)
		if err := <-late; !errors.Is(err, durable.ErrReturned) || !errors.Is(err, durable.ErrSuspended) {
			t.Errorf("got %v, want ErrReturned", err)
		}
		log.await(t, "a step ended after its workflow function had returned")
	})
}
