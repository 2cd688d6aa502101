package durable_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// repairsWithoutReply is a store that applies repairs, and loses every reply to them.
type repairsWithoutReply struct{ durable.Store }

func (s *repairsWithoutReply) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	if err := s.Store.ApplyRepair(ctx, r); err != nil {
		return err
	}
	return store.ErrUnavailable
}

// A repeated repair takes effect twice, so the error of a repair whose reply was lost does not say to repeat it.
func TestALostReplyOfARepairIsFoundByTheGenerations(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			return "done", c.Do("pay", func(context.Context) error { return nil })
		})
		e := engineWith(t, &repairsWithoutReply{inner}, durable.Config{Workflows: []durable.Definition{w}, Patience: 50 * time.Millisecond})
		running(t, e)
		if _, err := orFail(w.Start(within(t), e, "", durable.ID("r")))(t).Result(within(t)); err != nil {
			t.Fatal(err)
		}
		_, err := e.Rerun(within(t), "r", "pay")
		failed, ok := errors.AsType[*durable.WriteError](err)
		if !ok || !failed.MayHaveCommitted || !errors.Is(err, durable.ErrUnavailable) || !strings.Contains(err.Error(), "generations") || strings.Contains(err.Error(), "same call") {
			t.Errorf("a rerun without a reply: %v", err)
		}
		if all := orFail(e.Generations(within(t), "r"))(t); len(all) != 2 {
			t.Errorf("the run has %d generations, want that the repair took effect once", len(all))
		}
	})
}
