package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// mapThatIsEnded calls a Map of two items: the item 1 fails, and the item 0 lasts until its context ends.
func mapThatIsEnded(c *durable.Ctx) error {
	_, err := c.Map("m", []int{0, 1}, func(ctx context.Context, i int) (int, error) {
		if i == 0 {
			<-ctx.Done()
			return 0, context.Cause(ctx)
		}
		return 0, errDeclined
	}, durable.Parallel(2))
	return err
}

func awaitFailedItem(t testing.TB, e *durable.Engine, name string) {
	t.Helper()
	waitFor(t, func() bool {
		for _, c := range historyOf(t, e, "run") {
			if c.Name == name && c.Status == durable.CheckpointFailed {
				return true
			}
		}
		return false
	})
}

// The clock of these tests stands still while a step is executed, so the item 0 leaves no row that shows that it had begun.

// If a choice ends a Map in which an item has failed, the loser returns the failure, in the execution that makes the choice and in a
// replay.
func TestLoserWithAFailedItemReturnsTheSameInAReplay(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		failed := make(chan struct{})
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) { return "", mapThatIsEnded(c) })
			quick := c.Go("quick", func(c *durable.Ctx) (string, error) {
				return "", c.Do("wait", func(context.Context) error { <-failed; return nil })
			})
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, slow, quick); err != nil {
				return "", err
			}
			_, err := slow.Wait()
			first, stepErr := c.Step("note", func(context.Context) (string, error) { return fmt.Sprint(err), nil })
			if stepErr != nil {
				return "", stepErr
			}
			if err := c.Sleep("long", time.Hour); err != nil {
				return "", err
			}
			return first + " | " + fmt.Sprint(err), nil
		})
		e := durabletest.NewWithOptions(t, []durable.Definition{w}, durabletest.OnStore(s))
		run := orFail(w.Start(within(t), e.Engine, "", durable.ID("run")))(t)
		awaitFailedItem(t, e.Engine, "slow/m/1")
		close(failed)
		got := orFail(run.Result(within(t)))(t)
		if first, replayed, _ := strings.Cut(got, " | "); first != replayed || !strings.Contains(first, errDeclined.Error()) {
			t.Errorf("the loser returned %q, and in the replay %q", first, replayed)
		}
	})
}

// If a run is cancelled during a Map in which an item has failed, the Map returns the failure, at once and in a replay, so that both
// register the same compensations.
func TestMapOfACancelledRunReturnsTheSameInAReplay(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var executions, undone atomic.Int32
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			err := mapThatIsEnded(c)
			name := "undo the failure"
			if errors.Is(err, durable.ErrCancelled) {
				name = "undo the cancel"
			}
			executions.Add(1)
			if err := c.Compensate(name, func(context.Context) error {
				if undone.Add(1) == 1 {
					return errDeclined
				}
				return nil
			}, durable.Retry(durable.Fixed(time.Hour, 3))); err != nil {
				return "", err
			}
			return "", err
		})
		t.Run("a process that stops after the first attempt of the compensation", func(t *testing.T) {
			e := durabletest.NewWithOptions(t, []durable.Definition{w}, durabletest.OnStore(s))
			orFail(w.Start(within(t), e.Engine, "", durable.ID("run")))(t)
			awaitFailedItem(t, e.Engine, "m/1")
			must(t)(e.Cancel(within(t), "run"))
			waitFor(t, func() bool {
				history := historyOf(t, e.Engine, "run")
				return history[len(history)-1].Status == durable.CheckpointBackoff
			})
		})
		e := durabletest.NewWithOptions(t, []durable.Definition{w}, durabletest.OnStore(s))
		run := orFail(w.Handle(within(t), e.Engine, "run"))(t)
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) || executions.Load() < 2 || undone.Load() != 2 {
			t.Errorf("the run ended with %v after %d executions and %d calls of the compensation, want at least 2 and 2", err, executions.Load(), undone.Load())
		}
	})
}
