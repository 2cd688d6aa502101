package durable_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// slowDeleter is a store in which something happens before the first deletion, or whose reply to the first deletion is lost.
type slowDeleter struct {
	durable.Store
	before    func() // nil: nothing happens
	loseReply bool
}

func (s *slowDeleter) DeleteTrees(ctx context.Context, d *store.DeleteTreesRequest) error {
	if before := s.before; before != nil {
		s.before = nil
		before()
	}
	if err := s.Store.DeleteTrees(ctx, d); err != nil || !s.loseReply {
		return err
	}
	s.loseReply = false
	return store.ErrUnavailable
}

// If two operators delete the same runs at the same time, only one of them is told that they were deleted by the call.
func TestOnlyTheCallThatDeletesARunReportsIt(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) { return in, nil })
		worker := engineOn(t, inner, w)
		running(t, worker)
		for i := range 3 {
			orFail(w.Call(ctx, worker, i, durable.ID(fmt.Sprint("run ", i))))(t)
		}
		slow := &slowDeleter{Store: inner}
		late := engineOn(t, slow)

		slow.before = func() { orFail(worker.Delete(ctx, "run 0"))(t) }
		if got, err := late.Delete(ctx, "run 0"); !errors.Is(err, durable.ErrNotFound) || got.Deleted != 0 {
			t.Errorf("the later deletion of one run: %+v, %v", got, err)
		}
		slow.before = func() { orFail(worker.Delete(ctx, "run 1"))(t) }
		ended := durable.Filter{Status: []durable.Status{durable.StatusCompleted}}
		if got := orFail(late.DeleteAll(ctx, ended))(t); got.Matched != 2 || got.Deleted != 1 || len(got.Refused) != 0 {
			t.Errorf("the deletion of two runs of which another call had deleted one: %+v", got)
		}
	})
}

// A deletion whose reply was lost is repeated, and reports what it has deleted.
func TestALostReplyOfADeletion(t *testing.T) {
	onStores(t, func(t *testing.T, inner durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) { return in, nil })
		worker := engineOn(t, inner, w)
		running(t, worker)
		orFail(w.Call(ctx, worker, 1, durable.ID("run")))(t)
		e := engineOn(t, &slowDeleter{Store: inner, loseReply: true})
		if got := orFail(e.Delete(ctx, "run"))(t); got.Deleted != 1 {
			t.Errorf("it deleted %+v", got)
		}
	})
}
