package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
)

// Whatever happens to a live run at the moment of a repair, each repair that was acknowledged made one generation, the run goes on, and a
// cancel that was acknowledged holds.
func TestRepairsAtTheMomentOfAnotherCall(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			a, err := c.Step("a", func(context.Context) (string, error) { return "a", nil })
			if err != nil {
				return "", err
			}
			b, err := c.Receive[string]("go")
			return a + b, err
		})
		e, other := engineOn(t, s, w), engineOn(t, s, w)
		running(t, e)
		running(t, other)
		signal := func(id string) error { return other.Signal(ctx, id, "go", "!", durable.SignalKey("one")) }
		rerun := func(e *durable.Engine, id string) error { _, err := e.Rerun(ctx, id, "a"); return err }
		for what, concurrent := range map[string]func(id string) error{
			"signal":      signal, // the run is claimed, and completes
			"cancel":      func(id string) error { _, err := other.Cancel(ctx, id); return err },
			"terminate":   func(id string) error { _, err := other.Terminate(ctx, id); return err },
			"rerun":       func(id string) error { return rerun(other, id) },
			"override":    func(id string) error { _, err := other.Override(ctx, id, "a", "b", durable.FromEnd()); return err },
			"at once":     func(id string) error { _, err := other.Rerun(ctx, id, "a", durable.InterruptSteps()); return err },
			"skip":        func(id string) error { _, err := other.Skip(ctx, id, "go", "?"); return err },
			"resume":      func(id string) error { _, _ = other.Resume(ctx, id); return nil },
			"move":        func(id string) error { return other.SetPriority(ctx, id, 1) },
			"set timeout": func(id string) error { return other.SetTimeout(ctx, id, 0) },
		} {
			for round := range 3 {
				id := fmt.Sprint(what, round)
				orFail(w.Start(ctx, e, "", durable.ID(id)))(t)
				if round > 0 { // otherwise the run has perhaps not begun
					awaitStatus(t, e, id, durable.StatusWaiting)
				}
				var made, theirs error
				var both sync.WaitGroup
				both.Go(func() { made = rerun(e, id) })
				both.Go(func() { theirs = concurrent(id) })
				both.Wait()
				repairs := 0
				for _, err := range []error{made, theirs} {
					if err != nil && !errors.Is(err, durable.ErrState) && !errors.Is(err, durable.ErrNoStep) { // a rerun has dropped the step
						t.Errorf("%s: %v", id, err)
					}
				}
				if made == nil {
					repairs++
				}
				if theirs == nil && (what == "rerun" || what == "override" || what == "at once" || what == "skip") {
					repairs++
				}
				generations := orFail(e.Generations(ctx, id))(t)
				if len(generations) != repairs+1 {
					t.Errorf("%s: %d generations after %d repairs (%v, %v)", id, len(generations), repairs, made, theirs)
				}
				if what == "cancel" || what == "terminate" {
					if theirs == nil {
						awaitStatus(t, e, id, durable.StatusCancelled)
					}
					continue
				}
				if err := signal(id); err != nil && !errors.Is(err, durable.ErrState) {
					t.Errorf("%s: %v", id, err)
				}
				awaitStatus(t, e, id, durable.StatusCompleted)
			}
		}
	})
}
