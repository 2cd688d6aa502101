package durabletest_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// compute executes code of a workflow that takes some milliseconds, so that another goroutine repeats its calls first.
func compute() {
	block := make([]byte, 1<<20)
	for range 20 {
		sum := sha256.Sum256(block)
		copy(block, sum[:])
	}
}

// A run that fails or expires cancels its children. If its process dies then, the next execution does not go on with a child that was
// cancelled for this reason.
func TestARunDoesNotGoOnWithTheChildrenThatItsEndHasCancelled(t *testing.T) {
	t.Parallel()
	kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
	fallBack := func(c *durable.Ctx, err error) error {
		if _, ended := errors.AsType[*durable.RunError](err); ended {
			return c.Do("fallback", func(context.Context) error { return nil })
		}
		return err
	}
	fails := durable.Define("fails", func(c *durable.Ctx, _ int) (int, error) {
		c.Go("waits", func(c *durable.Ctx) (int, error) {
			_, err := c.Child("kid", kid, 1)
			return 0, fallBack(c, err)
		})
		if err := c.Sleep("minute", time.Minute); err != nil {
			return 0, err
		}
		compute()
		return 0, errors.New("bad")
	})
	expires := durable.Define("expires", func(c *durable.Ctx, _ int) (int, error) {
		c.Go("guard", func(c *durable.Ctx) (int, error) {
			compute()
			return c.Receive[int]("ok", durable.Within(time.Hour), durable.ElseExpire())
		})
		_, err := c.Child("kid", kid, 1)
		return 0, fallBack(c, err)
	})
	durabletest.CrashEverywhere(t, fails, 1, durabletest.Workflows(kid))
	durabletest.CrashEverywhere(t, expires, 1, durabletest.Workflows(kid))
}

// A workflow with several compensations that undo steps is deterministic.
func TestCrashEverywhereOfSeveralUndoes(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		for _, name := range []string{"a", "b", "c", "d"} {
			if _, err := step(c, name, 1); err != nil {
				return 0, err
			}
			if err := c.Compensate("undo "+name, func(context.Context) error { return nil }, durable.Undoes(name)); err != nil {
				return 0, err
			}
		}
		return 0, errors.New("bad")
	})
	durabletest.CrashEverywhere(t, w, 1)
}
