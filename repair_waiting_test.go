package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// While a run waits for its retry, repairs can name the step that failed: it need not fail until the last retry before it is skipped.
func TestARepairOfARunThatWaitsForItsRetryNamesTheFailedStep(t *testing.T) {
	for name, repair := range map[string]struct {
		call  func(ctx context.Context, e *durable.Engine) (*durable.Repaired, error)
		fixes bool
		want  []string
	}{
		"skip": {call: func(ctx context.Context, e *durable.Engine) (*durable.Repaired, error) {
			return e.Skip(ctx, "r", "label", "L7")
		}},
		"fork with a value": {call: func(ctx context.Context, e *durable.Engine) (*durable.Repaired, error) {
			return e.Fork(ctx, "r", durable.FromEnd(), durable.OverrideStep("label", "L7"))
		}},
		"rerun": {fixes: true, want: []string{"label"}, call: func(ctx context.Context, e *durable.Engine) (*durable.Repaired, error) {
			return e.Rerun(ctx, "r", "label")
		}},
		"fork": {fixes: true, want: []string{"label"}, call: func(ctx context.Context, e *durable.Engine) (*durable.Repaired, error) {
			return e.Fork(ctx, "r", durable.From("label"))
		}},
		"fork from an earlier step": {fixes: true, want: []string{"charge#3", "label"}, call: func(ctx context.Context, e *durable.Engine) (*durable.Repaired, error) {
			return e.Fork(ctx, "r", durable.From("charge"))
		}},
		"skip with interrupt": {call: func(ctx context.Context, e *durable.Engine) (*durable.Repaired, error) {
			return e.Skip(ctx, "r", "label", "L7", durable.InterruptSteps())
		}},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var l keyLedger
				var f fixable
				w := durable.Define("order", func(c *durable.Ctx, _ string) (string, error) {
					if err := l.do(c, "charge", nil); err != nil {
						return "", err
					}
					return c.Step("label", func(ctx context.Context) (string, error) { l.note(ctx); return "L7", f.err() })
				}, durable.RetryRun(durable.Fixed(time.Hour, 3)))
				e := engineOn(t, s, w)
				running(t, e)
				orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
				waitFor(t, func() bool { return orFail(e.Get(within(t), "r"))(t).RetryWait != nil })
				l.want(t, "at first", "charge", "label")
				if _, err := e.Override(within(t), "r", "label", "L7"); !errors.Is(err, durable.ErrState) {
					t.Errorf("override: %v", err)
				}
				if _, err := e.Skip(within(t), "r", "no such step", "L7"); !errors.Is(err, durable.ErrNoStep) {
					t.Errorf("skip of no step: %v", err)
				}
				f.fixed.Store(repair.fixes)
				orFail(repair.call(within(t), e))(t)
				wantResult(t, w, e, "r", "L7")
				l.want(t, "the repair", repair.want...)
			})
		})
	}
}

// A copy of a run that waits for its retry can give a value to the step that failed.
func TestACopyOfARunThatWaitsForItsRetrySetsTheFailedStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("order", func(c *durable.Ctx, _ string) (string, error) {
			return c.Step("label", func(context.Context) (string, error) { return "", errDeclined })
		}, durable.RetryRun(durable.Fixed(time.Hour, 3)))
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		waitFor(t, func() bool { return orFail(e.Get(within(t), "r"))(t).RetryWait != nil })
		orFail(e.Fork(within(t), "r", durable.FromEnd(), durable.OverrideStep("label", "L7"), durable.NewID("copy")))(t)
		wantResult(t, w, e, "copy", "L7")
	})
}
