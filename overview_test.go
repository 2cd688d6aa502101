package durable_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// TestFailuresOfAMapAreOneGroup checks that the failures of all items of a Map have one key, by which List and RetryAll find the
// runs, and that a run that was retried is no longer among them.
func TestFailuresOfAMapAreOneGroup(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		fails := true
		w := durable.Define("resizing", func(c *durable.Ctx, item string) ([]int, error) {
			return c.Map("resize", []string{item}, func(_ context.Context, item string) (int, error) {
				if fails && item != "good" {
					return 0, durable.Permanent(errors.New("no image " + item))
				}
				return len(item), nil
			}, durable.Key(func(item string) string { return item }))
		})
		e := engineOn(t, s, w)
		ctx := t.Context()
		for _, item := range []string{"a", "b", "c", "good"} {
			_, _ = w.Call(ctx, e, item, durable.ID(item))
		}
		groups, err := e.Failures(ctx, durable.Filter{})
		if err != nil || len(groups) != 1 {
			t.Fatalf("got %+v, %v, want one group", groups, err)
		}
		g := groups[0]
		if g.Runs != 3 || g.Workflow != "resizing" || g.Step != "resize/*" || g.Type != "*errors.errorString" || g.More || g.Err == nil || g.First.After(g.Last) {
			t.Errorf("got %+v", g)
		}
		counts, err := e.StatusCounts(ctx)
		if err != nil || len(counts) != 1 || counts[0] != (durable.StatusCount{Status: durable.StatusFailed, Runs: 3}) {
			t.Errorf("the counts are %v, %v", counts, err)
		}
		fails = false
		if _, err := e.RetryAll(ctx, durable.Filter{Failure: g.FailureKey}); err != nil {
			t.Fatal(err)
		}
		if groups, err := e.Failures(ctx, durable.Filter{}); err != nil || len(groups) != 0 {
			t.Errorf("after the retry: got %+v, %v", groups, err)
		}
	})
}

func TestFailureFilterIsChecked(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		e := engineOn(t, s)
		for _, f := range []durable.Filter{
			{Failure: durable.FailureKey{Step: "charge", Type: "x"}},
			{Failure: durable.FailureKey{Workflow: "w", Type: "x"}, Queue: "q", GroupKey: "k"},
			{OlderThan: -time.Second},
		} {
			if _, err := e.Failures(t.Context(), f); !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("%+v: got %v", f, err)
			}
		}
	})
}
