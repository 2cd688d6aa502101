package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Terminate ends a run that no process can execute any more, with its descendants and without compensations.
func TestTerminateEndsWhatNobodyExecutes(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var undone atomic.Int32
		child := durable.Define("child", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.Compensate("undo", func(context.Context) error { undone.Add(1); return nil }); err != nil {
				return 0, err
			}
			if err := c.Do("charge", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return c.Child("kid", child, 0)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, child}, ParkAfter: time.Millisecond})
		stop := running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusWaiting)
		tree := read(e.Tree(within(t), "run"))(t)
		awaitStatus(t, e, tree.Children[0].RunID, durable.StatusWaiting)
		stop()

		client := engineOn(t, s)
		if got := must(t)(client.Cancel(within(t), "run")); got.Requested != 2 { // no worker executes the compensations
			t.Errorf("cancel: %+v", got)
		}
		got := must(t)(client.Terminate(within(t), "run", durable.Reason("its code is gone"), durable.Actor("ann")))
		if got.Done != 2 || got.DoneIDs[0] != run.RunID() {
			t.Errorf("terminate: %+v, want the root and its child", got)
		}
		_, err = run.Result(within(t))
		var failed *durable.RunError
		if !errors.Is(err, durable.ErrTerminated) || !errors.Is(err, durable.ErrCancelled) || !errors.As(err, &failed) ||
			failed.Status != durable.StatusCancelled || failed.Message != "terminated by ann: its code is gone" {
			t.Errorf("got %v", err)
		}
		if again, err := client.Terminate(within(t), "run"); err != nil || again.Done != 0 || again.Matched != 1 {
			t.Errorf("again: %+v, %v", again, err)
		}
		counted := read(client.TreeCounts(within(t), "run"))(t)
		if counted.Statuses[durable.StatusCancelled] != 2 || undone.Load() != 0 {
			t.Errorf("counts %v, undone %d times", counted, undone.Load())
		}
	})
}

// In the process that executes a terminated run, all its contexts end with the cause, its later results are not recorded, and its
// parent gets the error and continues.
func TestTerminateEndsRunningFunctions(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		entered, causes := make(chan struct{}), make(chan error, 2)
		child := durable.Define("child", func(c *durable.Ctx, _ int) (int, error) {
			err := c.Do("hang", func(ctx context.Context) error {
				close(entered)
				<-ctx.Done()
				causes <- context.Cause(ctx)
				return nil // the step succeeds after the Terminate
			})
			causes <- context.Cause(c)
			if !errors.Is(err, durable.ErrSuspended) {
				t.Errorf("the step returned %v", err)
			}
			return 1, nil
		})
		w := durable.Define("w", func(c *durable.Ctx, _ int) (bool, error) {
			_, err := c.Child("kid", child, 0)
			var failed *durable.RunError
			return errors.Is(err, durable.ErrTerminated) && errors.As(err, &failed), nil
		})
		e := engineOn(t, s, w, child)
		running(t, e)
		other := engineOn(t, s) // stands for another process
		run, err := w.Start(within(t), e, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-entered
		kid := read(e.Tree(within(t), "run"))(t).Children[0].RunID
		if got := must(t)(other.Terminate(within(t), kid)); !counts(got, 1, 1, 0) {
			t.Errorf("%+v", got)
		}
		for range 2 {
			if cause := <-causes; !errors.Is(cause, durable.ErrTerminated) {
				t.Errorf("a context ended with %v", cause)
			}
		}
		if told, err := run.Result(within(t)); err != nil || !told {
			t.Errorf("the parent: %v, %v", told, err)
		}
		if history := historyOf(t, e, kid); len(history) > 0 && history[0].Status == "completed" {
			t.Errorf("the late result was recorded: %+v", history)
		}
		if info := read(e.Get(within(t), kid))(t); info.Status != durable.StatusCancelled || info.Output != nil {
			t.Errorf("%+v", info)
		}
	})
}

func TestTerminateRefuses(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		e := engineOn(t, s, w)
		running(t, e)
		if _, err := w.Call(within(t), e, 0, durable.ID("done")); err != nil {
			t.Fatal(err)
		}
		if _, err := e.Terminate(within(t), "done"); !errors.Is(err, durable.ErrState) {
			t.Errorf("of a completed run: %v", err)
		}
		if _, err := e.Terminate(within(t), "nobody"); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("of no run: %v", err)
		}
		if _, err := e.Terminate(within(t), "done", durable.OnlyItself()); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("of the run itself: %v", err)
		}
	})
}
