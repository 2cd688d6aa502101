package durabletest_test

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// A run that only waits is called twice: at its start, and when its wait is over. A function that turns the error of a suspended branch
// into an error of its own is no sign that the run was parked too early.
func TestARunThatOnlyWaitsIsNotCalled(t *testing.T) {
	nap := durable.Define("nap", func(c *durable.Ctx, n int) (int, error) { return n, c.Sleep("nap", time.Hour) })
	branch := func(c *durable.Ctx) (int, error) { return 1, c.Sleep("nap", time.Hour) }
	for name, wait := range map[string]func(*durable.Ctx) error{
		"for a child": func(c *durable.Ctx) error {
			_, err := c.Child("kid", nap, 1)
			return err
		},
		"for a branch, with an error of its own": func(c *durable.Ctx) error {
			if _, err := c.Go("b", branch).Wait(); err != nil {
				return errors.New("the branch failed: " + err.Error())
			}
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			var calls atomic.Int32
			w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) {
				calls.Add(1)
				return n, wait(c)
			})
			e := durabletest.New(t, w, nap)
			run, err := w.Start(quickly(t), e.Engine, 1)
			must(t, err)
			resultOf(t, run)
			if n := calls.Load(); n > 2 {
				t.Errorf("the function was called %d times", n)
			}
		})
	}
}

// A parent whose child waits for a signal that nobody sends is reported as stuck, and the clock stands still.
func TestAParentOfAStuckChildIsReported(t *testing.T) {
	kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
	parent := durable.Define("parent", func(c *durable.Ctx, n int) (int, error) { return c.Child("kid", kid, n) })
	e := durabletest.New(t, parent, kid)
	began := e.Now()
	run, err := parent.Start(quickly(t), e.Engine, 1)
	must(t, err)
	ctx := quickly(t)
	if _, err = run.Result(ctx); ctx.Err() != nil || e.Now().Sub(began) > time.Minute {
		t.Errorf("the wait ended with %v; the clock moved by %v", err, e.Now().Sub(began))
	}
}

// A run that has not begun cannot be repaired: one that waits for its start key would never be released.
func TestARunThatHasNotBegunIsNotForked(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, defs(begun), append(opts, noon)...)
		e.FreezeClock()
		run, err := begun.Start(quickly(t), e.Engine, "in", durable.Debounce("k", 10*time.Second, time.Minute))
		must(t, err)
		if _, err = e.Fork(quickly(t), run.ID(), durable.FromEnd()); !errors.Is(err, durable.ErrState) {
			t.Errorf("the fork: %v, want ErrState", err)
		}
		e.Advance(10 * time.Second)
		if got, want := resultOf(t, run), "in 12:00:10"; got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}
