package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable"
)

// The keys of a call in one generation are not those of a call whose name ends with the number of that generation: each of the two
// steps, starts and signals takes effect.
func TestKeysOfGenerationsDifferWhateverTheNames(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keySet
		started := durable.Define("started", func(*durable.Ctx, int) (string, error) { return "", nil })
		told := durable.Define("told", func(c *durable.Ctx, _ string) (int, error) { return c.Receive[int]("end") })
		w := durable.Define("w", func(c *durable.Ctx, generation int) (string, error) {
			suffix := "#2"
			if generation == 2 {
				suffix = ""
			}
			if err := c.Do("pay"+suffix, l.note); err != nil {
				return "", err
			}
			id, err := c.Start("remind"+suffix, started, generation)
			if err != nil {
				return "", err
			}
			if err := c.Signal("tell"+suffix, "told", "word", generation); err != nil || generation == 2 {
				return id, err
			}
			return "", c.ContinueAsNew(2)
		})
		e := engineOn(t, s, w, started, told)
		running(t, e)
		orFail(told.Start(ctx, e, "", durable.ID("told")))(t)
		run := orFail(w.Start(ctx, e, 1, durable.ID("r")))(t)
		id := orFail(run.Result(ctx))(t)
		if want := run.RunID() + "#2:remind"; id != want {
			t.Errorf("the second run has the ID %q, want %q", id, want)
		}
		if runs := orFail(e.List(ctx, durable.Filter{Workflow: "started"}, durable.Page{}))(t).Runs; len(runs) != 2 {
			t.Errorf("the two calls of Start have started %d runs", len(runs))
		}
		if got := orFail(e.Get(ctx, "told"))(t).Unreceived["word"]; got != 2 {
			t.Errorf("the two calls of Signal have sent %d signals", got)
		}
		l.wantAll(t, run.RunID(), ":pay#2", "#2:pay")
	})
}

// A completed step that a repair executes again gets a key that no other step of the run has.
func TestKeysOfARepairDifferWhateverTheNames(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keySet
		var f fixable
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			for i := range 3 {
				name := "pay"
				if i > 0 {
					name = fmt.Sprintf("pay#%d", i+1)
				}
				if err := c.Do(name, l.note); err != nil {
					return "", err
				}
			}
			return "paid", c.Do("end", func(context.Context) error { return f.err() })
		})
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(within(t), e, "", durable.ID("r")))(t)
		if _, err := run.Result(within(t)); err == nil {
			t.Fatal("the run has not failed")
		}
		f.fixed.Store(true)
		orFail(e.Retry(within(t), "r", durable.From("pay")))(t)
		wantResult(t, w, e, "r", "paid")
		l.wantAll(t, run.RunID(), ":pay", ":pay#2", ":pay#3", "#2:pay", "#2:pay#2", "#2:pay#3")
	})
}

// keySet notes the idempotency keys of steps.
type keySet struct{ keyLedger }

func (l *keySet) note(ctx context.Context) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	key := durable.IdempotencyKey(ctx)
	if slices.Contains(l.calls, key) {
		return errors.New("another step has the key " + key)
	}
	l.calls = append(l.calls, key)
	return nil
}

func (l *keySet) wantAll(t testing.TB, runID string, want ...string) {
	t.Helper()
	for i := range want {
		want[i] = runID + want[i]
	}
	l.want(t, "the keys", want...)
}
