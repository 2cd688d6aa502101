package durabletest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/sqlite"
)

func step(c *durable.Ctx, name string, value int) (int, error) {
	return c.Step(name, func(context.Context) (int, error) { return value, nil })
}

// Everything that a workflow can do, with a crash at each of its writes.
func TestCrashEverywhere(t *testing.T) {
	t.Parallel()
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) {
		n, err := step(c, "double", 2*n)
		if err != nil {
			return 0, err
		}
		return n, c.Sleep("nap", time.Hour)
	})
	failing := durable.Define("failing", func(c *durable.Ctx, n int) (int, error) {
		if err := c.Compensate("undo", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return 0, c.Do("fail", func(context.Context) error { return errors.New("no luck") })
	})
	w := durable.Define("everything", func(c *durable.Ctx, n int) (string, error) {
		a, err := step(c, "a", n)
		if err != nil {
			return "", err
		}
		retried, err := c.Step("retried", func(ctx context.Context) (int, error) {
			if durable.Attempt(ctx) < 3 {
				return 0, errors.New("not yet")
			}
			return 3, nil
		}, durable.Retry(durable.Exponential(time.Minute, time.Hour, 5)))
		if err != nil {
			return "", err
		}
		if err := c.Sleep("a month", 30*day); err != nil {
			return "", err
		}
		tx, err := sqlite.Tx(c, "tx", func(context.Context, *sql.Tx) (int, error) { return 4, nil })
		if err != nil {
			return "", err
		}
		signal, err := c.Receive[string]("go", durable.Within(90*day))
		if err != nil {
			return "", err
		}
		squares, err := c.Map("squares", []int{1, 2, 3}, func(_ context.Context, i int) (int, error) { return i * i, nil })
		if err != nil {
			return "", err
		}
		doubled, err := c.Child[int, int]("child", child, 21)
		if err != nil {
			return "", err
		}
		_, err = c.Child[int, int]("failing", failing, 21)
		var failed *durable.RunError
		if !errors.As(err, &failed) {
			return "", err
		}
		key, err := c.Step("key", func(ctx context.Context) (string, error) { return durable.IdempotencyKey(ctx), nil })
		if err != nil {
			return "", err
		}
		return fmt.Sprint(a, retried, tx, signal, squares, doubled, failed.Message, strings.HasSuffix(key, ":key")), nil
	})
	durabletest.CrashEverywhere(t, w, 1, durabletest.Workflows(child, failing), durabletest.SignalAfter(40*day, "go", "now"))
}

// Where goroutines of one run write at the same time, how many commits there are may differ.
func TestCrashOfConcurrentWorkflow(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) ([]int, error) {
		branch := c.Go("branch", func(c *durable.Ctx) (int, error) {
			if err := c.Sleep("nap", 2*time.Hour); err != nil {
				return 0, err
			}
			return step(c, "one", 1)
		})
		var group sync.WaitGroup
		values, errs := make([]int, 3), make([]error, 3)
		for i := range values {
			group.Go(func() {
				if errs[i] = c.Sleep(fmt.Sprint("sleep-", i), time.Hour); errs[i] == nil {
					values[i], errs[i] = step(c, fmt.Sprint("step-", i), i)
				}
			})
		}
		group.Wait()
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		one, err := branch.Wait()
		return append(values, one), err
	})
	durabletest.CrashEverywhere(t, w, 0)
}

// What varies rightly is named, and then goes on with one value.
func TestVaryingSteps(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		id, err := c.Step("id", func(context.Context) (string, error) { return fmt.Sprint(rand.Uint64()), nil })
		if err != nil {
			return "", err
		}
		return c.Step("use", func(context.Context) (string, error) { return "used " + id, nil })
	})
	durabletest.CrashEverywhere(t, w, 0, durabletest.VaryingSteps("id"))
}

// A name that no call has is probably misspelled, and fails the test.
func TestVaryingStepsThatNobodyCalls(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return step(c, "id", 1) })
	b := &told{TB: t}
	durabletest.CrashEverywhere(b, w, 0, durabletest.VaryingSteps("id", "di"))
	b.end()
	if want := `VaryingSteps names "di", which no run has called; the calls were "id"`; len(b.errors) != 1 || !strings.Contains(b.errors[0], want) {
		t.Errorf("the test was told %q, want %s", b.errors, want)
	}
}

// A step that runs zero times or once may end as unknown. Nothing is executed twice.
func TestCrashOfAtMostOnce(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("pay", func(context.Context) (int, error) { return 1, nil }, durable.AtMostOnce())
	})
	durabletest.CrashEverywhere(t, w, 0)
}

// spy is a testing.TB that keeps what would have failed the test.
type spy struct {
	testing.TB
	errors []string
}

func (s *spy) Errorf(format string, args ...any) {
	s.errors = append(s.errors, fmt.Sprintf(format, args...))
}
func (s *spy) Log(...any) {}
func (s *spy) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// Each kind of workflow that is not deterministic fails, with the step that differs first.
func TestCrashEverywhereFindsFaults(t *testing.T) {
	t.Parallel()
	var counter atomic.Int64
	for name, c := range map[string]struct {
		fn   func(c *durable.Ctx, _ int) (int64, error)
		step string
	}{
		"the time": {func(c *durable.Ctx, _ int) (int64, error) {
			if _, err := step(c, "first", 1); err != nil {
				return 0, err
			}
			now := time.Now().UnixNano()
			return c.Step("stamp", func(context.Context) (int64, error) { return now, nil })
		}, `"stamp"`},
		"randomness in a name": {func(c *durable.Ctx, _ int) (int64, error) {
			if _, err := step(c, "first", 1); err != nil {
				return 0, err
			}
			_, err := step(c, fmt.Sprint("item-", rand.Uint64()), 1)
			return 0, err
		}, `"item-`},
		"randomness in the output": {func(c *durable.Ctx, _ int) (int64, error) {
			_, err := step(c, "first", 1)
			return rand.Int64(), err
		}, "the run's output"},
		"map order": {func(c *durable.Ctx, _ int) (int64, error) {
			for key := range map[string]int{"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6} {
				if _, err := step(c, "item-"+key, 1); err != nil {
					return 0, err
				}
			}
			return 0, nil
		}, `"item-`},
		"a global counter": {func(c *durable.Ctx, _ int) (int64, error) {
			n := counter.Add(1)
			if _, err := step(c, "first", 1); err != nil {
				return 0, err
			}
			if n%2 == 0 {
				if _, err := step(c, "every second time", 1); err != nil {
					return 0, err
				}
			}
			_, err := step(c, "last", 1)
			return 0, err
		}, `"every second time"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &spy{TB: t}
			durabletest.CrashEverywhere(s, durable.Define("w", c.fn), 0)
			if text := strings.Join(s.errors, "\n"); !strings.Contains(text, c.step) || !strings.Contains(text, "not deterministic") {
				t.Errorf("it does not name %s: %s", c.step, text)
			} else {
				t.Log(text)
			}
		})
	}
}
