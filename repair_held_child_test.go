package durable_test

import (
	"context"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A failed child that is retried beneath a parent that is held for drift executes at once, as its siblings do. The parent gets the result
// when a version fits, or when a repair releases the parent.
func TestRetryOfAChildBeneathAHeldParent(t *testing.T) {
	for name, release := range map[string]func(t *testing.T, e *durable.Engine) error{
		"a version that fits": func(*testing.T, *durable.Engine) error { return nil },
		"a repair": func(t *testing.T, e *durable.Engine) error {
			_, err := e.Override(within(t), "run", "a", 2, durable.FromEnd())
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				ctx := within(t)
				var bank fixable
				kid := durable.Define("kid", func(c *durable.Ctx, _ string) (string, error) {
					if _, err := c.Receive[int]("go"); err != nil {
						return "", err
					}
					return "paid", c.Do("pay", func(context.Context) error { return bank.err() })
				})
				atVersion := func(version, step string) (stop func()) {
					w := durable.Define("parent", func(c *durable.Ctx, _ string) (string, error) {
						k, err := c.StartChild("kid", kid, "")
						if err != nil {
							return "", err
						}
						if _, err := c.Step(step, func(context.Context) (int, error) { return 1, nil }); err != nil {
							return "", err
						}
						return k.Wait()
					})
					return running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, kid}, Version: version, Lease: 3 * time.Second, ParkAfter: time.Millisecond}))
				}
				client, anyCode := engineOn(t, s), durable.Define("parent", func(*durable.Ctx, string) (string, error) { return "", nil })
				stop := atVersion("v1", "a")
				run := orFail(anyCode.Start(ctx, client, "", durable.ID("run")))(t)
				awaitStatus(t, client, "run", durable.StatusWaiting)
				id := orFail(client.Tree(ctx, "run"))(t).Children[0].RunID
				awaitStatus(t, client, id, durable.StatusWaiting)
				stop()
				stop = atVersion("v2", "b")
				signal(t, client, id, "go", 1)
				awaitStatus(t, client, id, durable.StatusFailed)
				awaitStatus(t, client, "run", durable.StatusPaused)
				bank.fixed.Store(true)
				orFail(client.Retry(ctx, id))(t)
				awaitStatus(t, client, id, durable.StatusCompleted)
				stop()
				atVersion("v3", "a")
				if err := release(t, client); err != nil {
					t.Fatal(err)
				}
				if out, err := run.Result(ctx); out != "paid" || err != nil {
					t.Errorf("the parent ended with %q, %v", out, err)
				}
			})
		})
	}
}
