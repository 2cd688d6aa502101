package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A retried run holds its singleton key again, unless another run was started with the key since.
func TestARetriedRunHoldsItsSingletonKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			if err := c.Do("charge", func(context.Context) error { return bank.err() }); err != nil {
				return "", err
			}
			return c.Receive[string]("go")
		})
		e := engineOn(t, s, w)
		running(t, e)
		start := func(id, key string) (*durable.Run[string], error) {
			return w.Start(ctx, e, "", durable.ID(id), durable.Singleton(key, durable.SingletonRefuse))
		}
		for _, id := range []string{"alone", "replaced"} {
			wantFailed(t, orFail(start(id, id))(t))
		}
		bank.fixed.Store(true)
		orFail(start("other", "replaced"))(t)
		for id, holder := range map[string]string{"alone": "alone", "replaced": "other"} {
			orFail(e.Retry(ctx, id))(t)
			awaitStatus(t, e, id, durable.StatusWaiting)
			_, err := start("late "+id, id)
			if live, ok := errors.AsType[*durable.LiveError](err); !ok || live.ID != holder {
				t.Errorf("a start with the key of %q: %v, want a LiveError for %q", id, err, holder)
			}
		}
	})
}
