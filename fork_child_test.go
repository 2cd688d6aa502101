package durable_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A fork under another ID copies the result of an ended child and not the child. A cancel of this child returns no error there either, and a
// signal returns that the child has ended.
func TestForkCancelsACopiedChildThatHasEnded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		kid := durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 5, nil })
		parent := durable.Define("parent", func(c *durable.Ctx, _ int) (int, error) {
			h, err := c.StartChild("kid", kid, 1)
			if err != nil {
				return 0, err
			}
			n, err := h.Wait()
			if err != nil {
				return 0, err
			}
			if _, err := c.Receive[int]("go"); err != nil {
				return 0, err
			}
			var ended *durable.StateError
			if err := h.Signal("late", "word", 1); !errors.As(err, &ended) || ended.Status != durable.StatusCompleted {
				return 0, fmt.Errorf("a signal to a child that has ended: %w", err)
			}
			return n, h.Cancel("cancel")
		})
		ctx := within(t)
		e := engineOn(t, s, parent, kid)
		running(t, e)
		if _, err := parent.Start(ctx, e, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusWaiting)
		waitFor(t, func() bool {
			info, err := e.Get(ctx, "run")
			return err == nil && len(info.OpenCalls) == 1 && info.OpenCalls[0].Name == "go"
		})
		if _, err := e.Fork(ctx, "run", durable.FromEnd(), durable.NewID("copy")); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"run", "copy"} {
			if err := e.Signal(ctx, id, "go", 1); err != nil {
				t.Fatal(err)
			}
			if out, err := read(parent.Handle(ctx, e, id))(t).Result(ctx); out != 5 || err != nil {
				t.Errorf("%s: %d, %v", id, out, err)
			}
		}
	})
}
