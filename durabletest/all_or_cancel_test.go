package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// sleeper is a child that somebody has to cancel.
var sleeper = durable.Define("sleeper", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Sleep("year", 365*24*time.Hour) })

// A fail-fast wait ends the same branches, whenever a process dies.
func TestCrashEverywhereOfAllOrCancel(t *testing.T) {
	t.Parallel()
	w := durable.Define("together", func(c *durable.Ctx, _ int) (string, error) {
		fails := c.Go("fails", func(c *durable.Ctx) (int, error) {
			if err := c.Sleep("nap", time.Minute); err != nil {
				return 0, err
			}
			return c.Step("fail", func(context.Context) (int, error) { return 0, errors.New("no luck") })
		})
		sleeps := c.Go("sleeps", func(c *durable.Ctx) (int, error) {
			if _, err := c.StartChild("kid", sleeper, 0); err != nil {
				return 0, err
			}
			return 0, c.Sleep("long", time.Hour)
		})
		_, err := durable.AllOrCancel(c, "together", fails, sleeps)
		if failed, ok := errors.AsType[*durable.StepError](err); !ok || failed.Step != "fails/fail" {
			return "", fmt.Errorf("the branches ended with %w", err)
		}
		if _, err := sleeps.Wait(); !errors.Is(err, durable.ErrCancelled) {
			return "", fmt.Errorf("the other branch: %w", err)
		}
		return "went on", c.Sleep("later", 2*time.Hour)
	})
	durabletest.CrashEverywhere(t, w, 0, durabletest.Workflows(sleeper))
}
