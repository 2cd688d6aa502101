package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run whose records this process cannot decode does not keep RetryAll from the others.
func TestRetryAllPassesARunWithoutItsKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var f fixable
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) { return "done", l.do(c, "charge", f.err()) })
		engine := func(keys string) (*durable.Engine, func()) {
			e := engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{w}, Codec: bothCodecs(t, keys)})
			return e, running(t, e)
		}
		e, stop := engine("new")
		wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("older")))(t))
		stop()
		e, stop = engine("old")
		wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("newer")))(t))
		orFail(e.Retry(within(t), "newer"))(t)
		awaitStatus(t, e, "newer", durable.StatusFailed)
		stop()
		f.fixed.Store(true)
		e, _ = engine("new")
		all, err := e.RetryAll(within(t), durable.Filter{Workflow: "w"})
		if err != nil || all.Matched != 2 || len(all.Repaired) != 1 || len(all.Refused) != 1 || all.Refused[0].ID != "newer" || !errors.Is(all.Refused[0].Err, durable.ErrUnreadable) {
			t.Fatalf("it did %+v, %v", all, err)
		}
		awaitStatus(t, e, "older", durable.StatusCompleted)
	})
}

// A process that cannot decode the failure of a run does not know which step failed, and says why, also if the failed call is that of a child.
// It does not ask for From.
func TestARetryNeedsTheKeyOfTheFailure(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var bank fixable
		child := durable.Define("child", func(c *durable.Ctx, _ string) (string, error) {
			return "paid", c.Do("pay", func(context.Context) error { return bank.err() })
		})
		parent := durable.Define("parent", func(c *durable.Ctx, _ string) (string, error) {
			return c.Child("child", child, "")
		})
		engine := func(keys ...string) *durable.Engine {
			return engineAsGiven(t, s, durable.Config{Workflows: []durable.Definition{parent, child}, Codec: bothCodecs(t, keys...)})
		}
		e := engine("old")
		stop := running(t, e)
		wantFailed(t, orFail(parent.Start(within(t), e, "", durable.ID("r")))(t))
		stop()
		_, err := engine("new").Retry(within(t), "r")
		if unknown, ok := errors.AsType[*durable.UnknownEncryptionKeyError](err); !ok || unknown.KeyID != "old" || errors.Is(err, durable.ErrFromRequired) {
			t.Errorf("a retry without the key: %v", err)
		}
		bank.fixed.Store(true)
		e = engine("new", "old")
		running(t, e)
		orFail(e.Retry(within(t), "r"))(t)
		wantResult(t, parent, e, "r", "paid")
		if n := len(orFail(e.Tree(within(t), "r"))(t).Children); n != 1 {
			t.Errorf("the run has %d children; the child that failed was to be retried", n)
		}
	})
}
