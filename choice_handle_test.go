package durable_test

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A choice ends the calls of a losing branch. A wait for a handle that the code outside of the branch made is no such call: it goes on,
// also in a replay, and the branch returns its result.
func TestAChoiceDoesNotEndTheWaitForAHandleFromOutside(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		kid := durable.Define("kid", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("go") })
		tokens := make(chan string, 10)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			child, err := c.StartChild("kid", kid, "")
			if err != nil {
				return "", err
			}
			callback := c.Callback[string]("answer")
			tokens <- callback.Token()
			forChild := c.Go("child", func(*durable.Ctx) (string, error) { return child.Wait() })
			forCallback := c.Go("callback", func(*durable.Ctx) (string, error) { return callback.Wait() })
			quick := c.Go("quick", func(*durable.Ctx) (string, error) { return "quick", nil })
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, forChild, forCallback, quick); err != nil {
				return "", err
			}
			all, err := durable.All(forChild, forCallback)
			if err != nil {
				return "", err
			}
			return all[0] + " " + all[1], nil
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, kid}, ParkAfter: time.Millisecond})
		running(t, e)
		run := orFail(w.Start(within(t), e, "", durable.ID("run")))(t)
		awaitStatus(t, e, "run", durable.StatusWaiting)
		if err := e.Complete(within(t), <-tokens, "answered"); err != nil {
			t.Fatal(err)
		}
		tree := orFail(e.Tree(within(t), "run"))(t)
		signal(t, e, tree.Children[0].RunID, "go", "gone")
		if got, err := run.Result(within(t)); err != nil || got != "gone answered" {
			t.Errorf("the run returned %q, %v", got, err)
		}
	})
}
