package durable_test

import (
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// The timeout of a child that is retried with its parent counts from when the retry is due, so the wait takes nothing of it.
func TestTheTimeoutOfAChildThatIsRetriedLater(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := &till{failures: 1, err: errClosed}
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return 1, c.Do("charge", x.charge) })
		nested := durable.Define("nested", func(c *durable.Ctx, _ int) (int, error) {
			return c.Child("kid", kid, 0, durable.Timeout(20*time.Minute))
		})
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			return c.Child("nested", nested, 0, durable.Timeout(30*time.Minute))
		}, durable.RetryRun(durable.Fixed(time.Hour, 3)))
		e := engineOn(t, s, w, nested, kid)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(read(e.Generations(within(t), "a"))(t)) == 2 })
		due := read(e.Get(within(t), "a"))(t).WakeAt
		child := read(e.Tree(within(t), "a"))(t).Children[0]
		for _, c := range []struct {
			info    durable.RunInfo
			timeout time.Duration
		}{{child.RunInfo, 30 * time.Minute}, {child.Children[0].RunInfo, 20 * time.Minute}} {
			if want := due.Add(c.timeout); !c.info.Deadline.Equal(want) || !c.info.WakeAt.Equal(due) {
				t.Errorf("%s is due at %v and expires at %v, want %v and %v", c.info.Workflow, c.info.WakeAt, c.info.Deadline, due, want)
			}
		}
	})
}
