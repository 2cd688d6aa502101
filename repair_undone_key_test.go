package durable_test

import (
	"context"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A step that failed is executed again with its key, and its compensation too. If the compensation has undone the step, both get new keys: with the
// old key, an outside system would not charge again what it has refunded.
func TestAFailedStepThatWasUndoneGetsANewKeyAndSoDoesItsCompensation(t *testing.T) {
	for name, refund := range map[string]error{"undone": nil, "not undone": errDeclined} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var l keyLedger
				var f fixable
				w := durable.Define("sale", func(c *durable.Ctx, _ string) (string, error) {
					if err := c.Compensate("refund", func(ctx context.Context) error { l.note(ctx); return refund }, durable.Undoes("charge")); err != nil {
						return "", err
					}
					return "charged", l.do(c, "charge", f.err())
				})
				e := engineOn(t, s, w)
				running(t, e)
				wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("r")))(t))
				l.want(t, "at first", "charge", "refund")
				second, third := "", ""
				if refund == nil {
					second, third = "#2", "#3"
				}
				orFail(e.Retry(within(t), "r", durable.From("charge")))(t)
				awaitStatus(t, e, "r", durable.StatusFailed)
				l.want(t, "the retry that fails", "charge"+second, "refund"+second)
				f.fixed.Store(true)
				orFail(e.Retry(within(t), "r", durable.From("charge")))(t)
				wantResult(t, w, e, "r", "charged")
				l.want(t, "the retry that succeeds", "charge"+third)
			})
		})
	}
}

// The same holds for a step that was interrupted, even if nothing of it was recorded.
func TestAnInterruptedStepThatWasUndoneGetsANewKey(t *testing.T) {
	for name, recorded := range map[string]bool{"recorded": true, "not recorded": false} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var l keyLedger
				var f fixable
				g, fail := newGate(), make(chan struct{})
				w := durable.Define("sale", func(c *durable.Ctx, _ string) (string, error) {
					err := c.Compensate("refund", func(ctx context.Context) error { l.note(ctx); return nil }, durable.Undoes("pay"))
					if err != nil {
						return "", err
					}
					pay := c.Go("pay", func(c *durable.Ctx) (string, error) {
						return "", c.Do("charge", func(ctx context.Context) error { l.note(ctx); return g.pass(ctx) })
					})
					check := c.Go("check", func(c *durable.Ctx) (string, error) {
						return "", c.Do("check", func(context.Context) error { <-fail; return f.err() })
					})
					_, err = durable.AllOrCancel(c, "both", pay, check)
					return "charged", err
				})
				e := engineOn(t, s, w)
				running(t, e)
				run := orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
				<-g.entered
				if recorded {
					waitFor(t, func() bool { return hasCall(historyOf(t, e, "r"), "pay/charge") })
				}
				close(fail)
				wantFailed(t, run)
				l.want(t, "at first", "pay/charge", "refund")
				f.fixed.Store(true)
				close(g.open)
				orFail(e.Retry(within(t), "r"))(t)
				wantResult(t, w, e, "r", "charged")
				l.want(t, "the retry", "pay/charge#2")
			})
		})
	}
}

func hasCall(history []durable.Checkpoint, name string) bool {
	for _, c := range history {
		if c.Name == name {
			return true
		}
	}
	return false
}
