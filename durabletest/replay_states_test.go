package durabletest_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// An export shows what a call was doing, and replays as it was recorded: a sleep under way, an attempt whose
// run was cancelled, the receive of a branch that a choice ended. So do exports of the format before.
func TestReplayOfCallsThatHadNotEnded(t *testing.T) {
	t.Parallel()
	body := func(c *durable.Ctx, o order) (int, error) {
		slow := c.Go("slow", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never") })
		quick := c.Go("quick", func(c *durable.Ctx) (int, error) { return step(c, "quick", 1) })
		if _, _, err := durable.Any(c, "first", durable.CancelLosers, slow, quick); err != nil {
			return 0, err
		}
		if o.ID == "sleeps" {
			return 0, c.Sleep("nap", day)
		}
		return c.Step("flaky", func(context.Context) (int, error) { return 0, errors.New("no") }, durable.Retry(durable.Fixed(day, 3)))
	}
	w := shop(body)
	e := durabletest.New(t, w)
	at := func(id, name string, status durable.CheckpointStatus) func() bool {
		return func() bool {
			history, err := e.History(t.Context(), id)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range history {
				if c.Name == name && c.Status == status {
					return true
				}
			}
			return false
		}
	}
	for id, until := range map[string]func() bool{"sleeps": at("sleeps", "nap", "started"), "retries": at("retries", "flaky", "backoff")} {
		if _, err := w.Start(t.Context(), e.Engine, order{ID: id}, durable.ID(id)); err != nil {
			t.Fatal(err)
		}
		e.AdvanceUntil(until)
	}
	replays := func(what, id string) {
		t.Helper()
		now := exported(t, e, id)
		old := bytes.Replace(now, []byte(`"format": 3`), []byte(`"format": 2`), 1)
		if bytes.Equal(now, old) {
			t.Fatal("the export has another format")
		}
		for format, b := range map[string][]byte{"this format": now, "the format before": old} {
			if v := durabletest.Replay(t, shop(body), b); v.Diverged || len(v.NotCalled) > 0 {
				t.Errorf("%s, %s: %v, %q not asked for", what, format, v, v.NotCalled)
			}
		}
		renamed := shop(func(c *durable.Ctx, _ order) (int, error) { return 0, c.Sleep("another", day) })
		if v := durabletest.Replay(t, renamed, now); !v.Diverged {
			t.Errorf("%s: other code replays", what)
		}
	}
	replays("a sleep under way", "sleeps")
	replays("a backoff", "retries")
	for _, id := range []string{"sleeps", "retries"} {
		if _, err := e.Cancel(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		e.AdvanceUntil(func() bool {
			info, err := e.Get(t.Context(), id)
			return err == nil && info.Status == durable.StatusCancelled
		})
		replays("the same, cancelled", id)
	}
}
