package durabletest_test

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/sqlite"
)

func anything() string { return fmt.Sprint(rand.Uint64()) }

// A transaction's output may vary as a step's may: what it recorded first is recorded everywhere.
func TestVaryingTxSteps(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		id, err := sqlite.Tx(c, "id", func(context.Context, *sql.Tx) (string, error) { return anything(), nil })
		if err != nil {
			return "", err
		}
		return c.Step("use", func(context.Context) (string, error) { return "used " + id, nil })
	})
	durabletest.CrashEverywhere(t, w, 0, durabletest.VaryingSteps("id"))
}

// Grandchildren of one name have values of their own.
func TestVaryingStepsOfGrandchildren(t *testing.T) {
	t.Parallel()
	grandchild := durable.Define("grandchild", func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("id", func(context.Context) (string, error) { return anything(), nil })
	})
	child := durable.Define("child", func(c *durable.Ctx, n int) (string, error) {
		id, err := c.Child("kid", grandchild, n)
		if err != nil {
			return "", err
		}
		return c.Step("use", func(context.Context) (string, error) { return "used " + id, nil })
	})
	w := durable.Define("w", func(c *durable.Ctx, _ int) (bool, error) {
		one, err := c.Child("one", child, 0)
		if err != nil {
			return false, err
		}
		two, err := c.Child("two", child, 0)
		return one == two, err
	})
	durabletest.CrashEverywhere(t, w, 0, durabletest.VaryingSteps("id"), durabletest.Workflows(child, grandchild))
}

// A child's input that differs from execution to execution is found, also where the child does not use it.
func TestCrashEverywhereComparesInputs(t *testing.T) {
	t.Parallel()
	child := durable.Define("child", func(c *durable.Ctx, _ string) (int, error) { return step(c, "one", 1) })
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Child("kid", child, anything()) })
	s := &spy{TB: t}
	durabletest.CrashEverywhere(s, w, 0, durabletest.Workflows(child))
	if text := strings.Join(s.errors, "\n"); !strings.Contains(text, `in run "crash-everywhere > kid": the run's input is`) {
		t.Errorf("it does not name the child's input: %s", text)
	}
	fine := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return c.Child("kid", child, c.RunID()) })
	durabletest.CrashEverywhere(t, fine, 0, durabletest.Workflows(child)) // IDs rightly differ
}
