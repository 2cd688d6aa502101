package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A repair cannot name a compensation. The error says so.
func TestRepairThatNamesACompensationSaysWhatItIs(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Compensate("refund", func(context.Context) error { return errors.New("the bank is closed") }); err != nil {
				return "", err
			}
			return "", c.Do("ship", func(context.Context) error { return errDeclined })
		})
		e := engineOn(t, s, w)
		running(t, e)
		wantFailed(t, orFail(w.Start(ctx, e, "", durable.ID("r")))(t))
		_, retry := e.Retry(ctx, "r", durable.From("refund"))
		_, skip := e.Skip(ctx, "r", "refund", nil)
		_, rerun := e.Rerun(ctx, "r", "refund")
		for _, err := range []error{retry, skip, rerun} {
			if !errors.Is(err, durable.ErrNoStep) || !strings.Contains(err.Error(), `"refund" is a compensation`) || strings.Contains(err.Error(), "not in its history") {
				t.Errorf("%v", err)
			}
		}
	})
}
