package durable_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A retry executes all failed steps again that the run's error wraps, also if their names are too long for the record of the error.
func TestARetryExecutesAllOfVeryManyFailedStepsAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var f fixable
		items := make([]string, 300)
		for i := range items {
			items[i] = fmt.Sprint(i, strings.Repeat("k", 450))
		}
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			_, handled := c.Step("handled", func(context.Context) (int, error) { return 0, errDeclined })
			_, err := c.Map("send", items, func(context.Context, string) (int, error) { return 0, f.err() },
				durable.Collect(), durable.Parallel(50), durable.Key(func(s string) string { return s }))
			return fmt.Sprint(handled != nil), err
		})
		e := engineOn(t, s, w)
		running(t, e)
		wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("r")))(t))
		f.fixed.Store(true)
		plan := orFail(e.Retry(within(t), "r"))(t)
		if len(plan.Dropped) != len(items) {
			t.Errorf("%d steps are executed again", len(plan.Dropped))
		}
		wantResult(t, w, e, "r", "true")
	})
}
