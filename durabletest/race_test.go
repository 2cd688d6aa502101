package durabletest_test

import (
	"context"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// Branches that race are excused by the name of their choice alone.
func TestCrashEverywhereOfAHedge(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		one := func(name string) *durable.Future[int] {
			return c.Go(name, func(c *durable.Ctx) (int, error) {
				return c.Step("ask", func(context.Context) (int, error) { return 1, nil })
			})
		}
		_, v, err := durable.Any(c, "first", durable.CancelLosers, one("a"), one("b"))
		return v, err
	})
	for range 5 {
		durabletest.CrashEverywhere(t, w, 0, durabletest.VaryingSteps("first"))
	}
}
