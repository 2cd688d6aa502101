package durable_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A Rerun of an item executes the item, although another item has failed and the Map begins no others.
func TestARerunOfAnItemBesideAFailedItemExecutesIt(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			_, err := c.Map("send", []string{"a", "b", "c"}, func(ctx context.Context, to string) (int, error) {
				l.note(ctx)
				if to == "b" {
					return 0, errDeclined
				}
				return 0, nil
			}, durable.Parallel(1))
			if !errors.Is(err, errDeclined) {
				return "", err
			}
			return "done", nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		wantResult(t, w, e, "r", "done")
		l.want(t, "at first", "send/0", "send/1")
		for _, generation := range []string{"#2", "#3"} {
			orFail(e.Rerun(within(t), "r", "send/0"))(t)
			wantResult(t, w, e, "r", "done")
			l.want(t, "the rerun", "send/0"+generation)
		}
		orFail(e.Rerun(within(t), "r", "send/1"))(t)
		awaitStatus(t, e, "r", durable.StatusCompleted)
		l.want(t, "the rerun of the failed item", "send/1")
	})
}

// A Rerun of a call in a branch that a choice has ended is refused: the branch executes nothing more, so the record of the call would be lost.
func TestARerunInABranchThatAChoiceHasEndedIsRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		mailed := make(chan struct{})
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
				if err := l.do(c, "mail", nil); err != nil {
					return "", err
				}
				close(mailed)
				return "slow", c.Sleep("nap", time.Hour)
			})
			fast := c.Go("fast", func(c *durable.Ctx) (string, error) {
				return "fast", c.Do("wait", func(context.Context) error { <-mailed; return nil })
			})
			_, v, err := durable.Any(c, "first", durable.CancelLosers, slow, fast)
			return v, err
		})
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		wantResult(t, w, e, "r", "fast")
		before := historyOf(t, e, "r")
		var refused *durable.StateError
		if _, err := e.Rerun(within(t), "r", "slow/mail"); !errors.As(err, &refused) || !strings.Contains(err.Error(), `"first"`) {
			t.Errorf("%v", err)
		}
		if after := historyOf(t, e, "r"); !slices.EqualFunc(before, after, func(a, b durable.Checkpoint) bool { return a.Name == b.Name && a.Status == b.Status }) {
			t.Errorf("the history was %v, and is %v", before, after)
		}
	})
}

// OverrideStep ends a sleep, as Skip does, in the next generation and in a copy.
func TestOverrideStepEndsASleep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) { return "awake", c.Sleep("nap", time.Hour) })
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		awaitStatus(t, e, "r", durable.StatusWaiting)
		if _, err := e.Fork(within(t), "r", durable.FromEnd(), durable.OverrideStep("nap", 1)); !errors.Is(err, durable.ErrValueType) {
			t.Errorf("a value for a sleep: %v", err)
		}
		orFail(e.Fork(within(t), "r", durable.FromEnd(), durable.OverrideStep("nap", nil), durable.NewID("copy")))(t)
		wantResult(t, w, e, "copy", "awake")
		orFail(e.Fork(within(t), "r", durable.FromEnd(), durable.OverrideStep("nap", nil)))(t)
		wantResult(t, w, e, "r", "awake")
	})
}
