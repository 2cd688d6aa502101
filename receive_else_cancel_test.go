package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// cancelStore is a store that passes each cancel to the function onCancel before it executes the cancel.
type cancelStore struct {
	durable.Store
	onCancel func(context.Context) error
}

func (s *cancelStore) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	if o.Verb == store.VerbCancel {
		if err := s.onCancel(ctx); err != nil {
			return err
		}
	}
	return s.Store.ControlRuns(ctx, o)
}

// An execution whose receive has timed out with ElseCancel does not cancel the run that an operator has repaired meanwhile.
func TestElseCancelDoesNotCancelARepairedRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g, done := newGate(), make(chan struct{}, 1)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			first, err := c.Receive[int]("first", durable.Within(time.Millisecond), durable.ElseCancel())
			if err != nil {
				done <- struct{}{}
				return 0, err
			}
			second, err := c.Receive[int]("second")
			return first + second, err
		})
		e := engineWith(t, &cancelStore{s, g.pass}, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 10 * time.Millisecond})
		running(t, e)
		run := read(w.Start(within(t), e, 0, durable.ID("run")))(t)
		select {
		case <-g.entered:
		case <-within(t).Done():
			t.Fatal("the receive cancels nothing")
		}
		orFail(e.Skip(within(t), "run", "first", 40))(t)
		awaitStatus(t, e, "run", durable.StatusWaiting)
		close(g.open)
		<-done
		signal(t, e, "run", "second", 2)
		if got, err := run.Result(within(t)); got != 42 || err != nil {
			t.Errorf("the repaired run returned %d, %v", got, err)
		}
	})
}

// If a privilege is missing for less than Config.Patience, a receive with ElseCancel cancels its run without a hold.
func TestElseCancelIsRetriedForPatience(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var rejected atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			return c.Receive[int]("never", durable.Within(time.Millisecond), durable.ElseCancel())
		})
		e := engineOn(t, &cancelStore{s, func(context.Context) error {
			if rejected.Add(1) < 3 {
				return fmt.Errorf("%w: table run", store.ErrPermission)
			}
			return nil
		}}, w)
		if _, err := w.Call(within(t), e, 0, durable.ID("run")); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("got %v", err)
		}
		if got := read(e.Get(within(t), "run"))(t); got.Crashes != 0 {
			t.Errorf("the run was held: %+v", got)
		}
	})
}
