package durabletest_test

import (
	"context"
	"slices"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// A branch that a choice has ended may make a call that the history does not hold: it returned ErrCancelled in the run, too. As on a
// worker, the branch need not repeat its recorded calls. NotCalled lists those that it does not make.
func TestReplayAcceptsRefusedCallsOfEndedBranches(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{}) // the choice has ended the slow branch
	end := sync.OnceFunc(func() { close(ended) })
	define := func(slowStep string) *durable.Workflow[order, int] {
		return shop(func(c *durable.Ctx, o order) (int, error) {
			slow := c.Go("slow", func(c *durable.Ctx) (int, error) {
				if _, err := c.Step(slowStep, func(context.Context) (int, error) { <-ended; return 1, nil }); err != nil {
					return 0, err
				}
				return c.Receive[int]("never")
			})
			quick := c.Go("quick", func(c *durable.Ctx) (int, error) { return step(c, "quick", 1) })
			if _, _, err := durable.Any(c, "first", durable.CancelLosers, slow, quick); err != nil {
				return 0, err
			}
			end()
			_, _ = slow.Wait()
			return 1, nil
		})
	}
	e := durabletest.New(t, define("count"))
	run, err := define("count").Start(t.Context(), e.Engine, order{ID: "1"}, durable.ID("1"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := run.Result(t.Context()); err != nil {
		t.Fatal(err)
	}
	b := exported(t, e, "1")
	if v := durabletest.Replay(t, define("count"), b); v.Diverged || len(v.NewCalls)+len(v.NotCalled) > 0 {
		t.Errorf("%v: new calls %q, not called %q", v, v.NewCalls, v.NotCalled)
	}
	if v := durabletest.Replay(t, define("sum"), b); v.Diverged || !slices.Equal(v.NotCalled, []string{"slow/count"}) {
		t.Errorf("a renamed call: %+v", v)
	}
}
