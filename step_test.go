package durable_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/naming"
)

var errDeclined = durable.RegisterError("test.declined", errors.New("card declined"))

type money struct {
	Cents    int64
	Currency string
	note     string // unexported: not encoded
}

// The first execution returns what a replay returns: the decoded checkpoint.
func TestFirstRunEqualsReplay(t *testing.T) {
	s := openStore(t)
	executions := 0
	var seen []money
	stopping := make(chan struct{})
	w := durable.Define("pay", func(c *durable.Ctx, _ struct{}) (int, error) {
		m, err := c.Step("charge", func(context.Context) (money, error) {
			executions++
			return money{Cents: 1<<53 + 1, Currency: "EUR", note: "lost"}, nil
		})
		if err != nil {
			return 0, err
		}
		seen = append(seen, m)
		return 0, c.Do("stop here", func(ctx context.Context) error {
			if len(seen) > 1 {
				return nil
			}
			close(stopping)
			<-ctx.Done()
			return ctx.Err()
		})
	})
	// The first engine is stopped in the second step, and the second engine replays.
	first := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
	stop := running(t, first)
	run, err := w.Start(within(t), first, struct{}{}, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	<-stopping
	stop()
	running(t, engineOn(t, s, w))
	if _, err := run.Result(within(t)); err != nil {
		t.Fatal(err)
	}
	if executions != 1 || len(seen) != 2 {
		t.Fatalf("the step ran %d times and was seen %d times, want 1 and 2", executions, len(seen))
	}
	if want := (money{Cents: 1<<53 + 1, Currency: "EUR"}); seen[0] != want || seen[1] != want {
		t.Errorf("first run saw %+v, replay saw %+v, want both %+v", seen[0], seen[1], want)
	}
}

func TestStepErrorSurvivesReplay(t *testing.T) {
	s := openStore(t)
	executions := 0
	w := durable.Define("pay", func(c *durable.Ctx, _ struct{}) (string, error) {
		err := c.Do("charge", func(context.Context) error {
			executions++
			return fmt.Errorf("at the bank: %w", errDeclined)
		})
		var failed *durable.StepError
		if !errors.As(err, &failed) || !errors.Is(err, errDeclined) {
			return "", fmt.Errorf("got %T %v, want a StepError that is errDeclined", err, err)
		}
		if failed.Step != "charge" || failed.Attempts != 1 || failed.Message != "at the bank: card declined" {
			return "", fmt.Errorf("got %+v", failed)
		}
		return "", err
	})
	for range 2 { // the second Call returns the recorded failure of the run
		_, err := w.Call(within(t), engineOn(t, s, w), struct{}{}, durable.ID("a"))
		var failed *durable.RunError
		if !errors.As(err, &failed) || !errors.Is(err, errDeclined) {
			t.Fatalf("got %T %v, want a RunError that is errDeclined", err, err)
		}
		if failed.ID != "a" || failed.Workflow != "pay" || failed.Status != durable.StatusFailed || failed.Step != "charge" {
			t.Errorf("got %+v", failed)
		}
	}
	if executions != 1 {
		t.Errorf("the failed step ran %d times, want once: it replays its failure", executions)
	}
}

func TestRetriesAreCountedAndEnd(t *testing.T) {
	var attempts []int
	var keys []string
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("flaky", func(ctx context.Context) (int, error) {
			attempts = append(attempts, durable.Attempt(ctx))
			keys = append(keys, durable.IdempotencyKey(ctx))
			return 0, errDeclined
		}, durable.Retry(durable.Fixed(time.Millisecond, 3)))
	})
	if !reflect.DeepEqual(attempts, []int{1, 2, 3}) {
		t.Errorf("attempts %v, want 1 2 3", attempts)
	}
	if keys[0] == "" || keys[0] != keys[1] || keys[1] != keys[2] {
		t.Errorf("idempotency keys %q, want one for all", keys)
	}
	if err == nil || !strings.Contains(err.Error(), `step "flaky" failed after 3 attempts: card declined`) {
		t.Errorf("got %v", err)
	}
}

func TestPermanentStopsAtOnce(t *testing.T) {
	attempts := 0
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		return 0, c.Do("once", func(context.Context) error {
			attempts++
			return durable.Permanent(errDeclined)
		}, durable.Retry(durable.Fixed(0, durable.Unlimited)))
	})
	if attempts != 1 || !errors.Is(err, errDeclined) {
		t.Errorf("%d attempts, %v; want 1 and errDeclined", attempts, err)
	}
	if durable.Permanent(nil) != nil {
		t.Error("Permanent(nil) is not nil")
	}
}

func TestAttemptTimeout(t *testing.T) {
	for name, fn := range map[string]func(ctx context.Context, release <-chan struct{}) error{
		"obedient": func(ctx context.Context, _ <-chan struct{}) error { <-ctx.Done(); return ctx.Err() },
		"deaf":     func(_ context.Context, release <-chan struct{}) error { <-release; return nil },
	} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			defer close(release)
			_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
				return 0, c.Do("slow", func(ctx context.Context) error { return fn(ctx, release) }, durable.AttemptTimeout(20*time.Millisecond), durable.Retry(durable.Fixed(0, 2)))
			})
			if !errors.Is(err, durable.ErrTimeout) || !strings.Contains(err.Error(), "2 attempts") {
				t.Errorf("got %v, want ErrTimeout after 2 attempts", err)
			}
		})
	}
}

func TestTotalTimeout(t *testing.T) {
	var took time.Duration
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		began := time.Now()
		err := c.Do("slow", func(context.Context) error { return errDeclined },
			durable.TotalTimeout(50*time.Millisecond), durable.Retry(durable.Fixed(10*time.Millisecond, durable.Unlimited)))
		took = time.Since(began)
		return 0, err
	})
	if !errors.Is(err, durable.ErrTimeout) {
		t.Errorf("got %v, want ErrTimeout", err)
	}
	if took > 10*time.Second {
		t.Errorf("took %v", took)
	}
}

func TestPanics(t *testing.T) {
	for name, fn := range map[string]func(*durable.Ctx, int) (int, error){
		"step": func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("boom", func(context.Context) error { panic("boom") })
		},
		"step with a timeout": func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("boom", func(context.Context) error { panic(errDeclined) }, durable.AttemptTimeout(time.Minute))
		},
		"workflow": func(*durable.Ctx, int) (int, error) { panic("boom") },
	} {
		t.Run(name, func(t *testing.T) {
			_, err := durableCall(t, 0, fn)
			var failed *durable.RunError
			if !errors.As(err, &failed) || !errors.Is(err, durable.ErrPanic) || !strings.Contains(failed.Stack, "step_test.go") {
				t.Errorf("got %v, want ErrPanic with the stack", err)
			}
		})
	}
}

func TestGoexit(t *testing.T) {
	for name, fn := range map[string]func(*durable.Ctx, int) (int, error){
		"step": func(c *durable.Ctx, _ int) (int, error) { return 0, c.Do("exit", goexit) },
		"step with a timeout": func(c *durable.Ctx, _ int) (int, error) {
			return 0, c.Do("exit", goexit, durable.AttemptTimeout(time.Minute))
		},
		"workflow": func(*durable.Ctx, int) (int, error) { runtime.Goexit(); return 0, nil },
		"a goroutine's step": func(c *durable.Ctx, _ int) (int, error) {
			var wg sync.WaitGroup
			wg.Go(func() { _ = c.Do("exit", goexit) }) // Do never returns, which is what the test checks
			wg.Wait()
			return 7, nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := durableCall(t, 0, fn); !errors.Is(err, durable.ErrGoexit) {
				t.Errorf("got %v, want ErrGoexit", err)
			}
		})
	}
}

func goexit(context.Context) error { runtime.Goexit(); return nil }

// Names are compared as bytes: these names are of different steps.
func TestNamesAreKeptBytewise(t *testing.T) {
	names := []string{"a", "A", "a ", " a", "'; DROP TABLE x; --", `"`, "%s%d", "ä", "a\u0308", "🦆", strings.Repeat("n", durable.MaxNameBytes)}
	s := openStore(t)
	w := durable.Define("names", func(c *durable.Ctx, _ int) (int, error) {
		for i, name := range names {
			if got, err := c.Step(name, func(context.Context) (int, error) { return i, nil }); err != nil || got != i {
				return 0, fmt.Errorf("%q: %d, %w", name, got, err)
			}
		}
		return len(names), nil
	})
	e := engineOn(t, s, w)
	if _, err := w.Call(within(t), e, 0, durable.ID("run ")); err != nil {
		t.Fatal(err)
	}
	history, err := e.History(within(t), "run ")
	if err != nil {
		t.Fatal(err)
	}
	kept := make(map[string]bool)
	for _, h := range history {
		kept[naming.ParseDisplay(h.Name)] = true
	}
	for _, name := range names {
		if !kept[name] {
			t.Errorf("%q is not in the history", name)
		}
	}
	if _, err := e.Get(within(t), "run"); !errors.Is(err, durable.ErrNotFound) {
		t.Errorf(`"run" found "run ": %v`, err)
	}
}

// A step whose result cannot be encoded fails finally, because its function has taken effect.
func TestUnencodableOutputs(t *testing.T) {
	type node struct{ Next *node }
	loop := &node{}
	loop.Next = loop
	executions := 0
	for name, c := range map[string]struct {
		value any
		want  error
	}{
		"NaN":        {math.NaN(), durable.ErrNotEncodable},
		"channel":    {make(chan int), durable.ErrNotEncodable},
		"cycle":      {loop, durable.ErrNotEncodable},
		"bad UTF-8":  {"a\xff", durable.ErrNotEncodable},
		"no fields":  {struct{ x int }{1}, durable.ErrNotEncodable},
		"very large": {strings.Repeat("x", 5<<20), durable.ErrPayloadTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			executions = 0
			_, err := durableCall(t, 0, func(ctx *durable.Ctx, _ int) (int, error) {
				_, err := ctx.Step("bad", func(context.Context) (any, error) {
					executions++
					return c.value, nil
				}, durable.Retry(durable.Fixed(0, 5)))
				return 0, err
			})
			if !errors.Is(err, c.want) || executions != 1 {
				t.Errorf("got %v after %d executions, want %v after 1", err, executions, c.want)
			}
		})
	}
}

type odd struct {
	Nil, Empty     []int
	NilMap, EmptyM map[string]int
	Big            int64
	Unsigned       uint64
	Any            any
	Time           time.Time
	Wait           time.Duration
	Raw            []byte
	Text           string
	Float          float64
	Pointer        *int
}

func TestValuesAreKeptExactly(t *testing.T) {
	seven := 7
	want := odd{
		Empty: []int{}, EmptyM: map[string]int{}, Big: math.MaxInt64, Unsigned: math.MaxUint64, Any: map[string]any{"n": int64(1<<53 + 1), "f": 0.5},
		Time: time.Date(2026, 2, 28, 23, 59, 59, 123456789, time.FixedZone("", 3600)), Wait: 90 * time.Second,
		Raw: []byte{0, 255}, Text: "a\x00b\u2028<>&", Float: math.SmallestNonzeroFloat64, Pointer: &seven,
	}
	got, err := durableCall(t, want, func(c *durable.Ctx, in odd) (odd, error) {
		return c.Step("keep", func(context.Context) (odd, error) { return in, nil })
	})
	if err != nil {
		t.Fatal(err)
	}
	if !got.Time.Equal(want.Time) {
		t.Errorf("time %v, want %v", got.Time, want.Time)
	}
	got.Time = want.Time
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %#v\nwant %#v", got, want)
	}
}

// Steps in plain goroutines are keyed by their names, so they replay in whatever order they end.
func TestConcurrentSteps(t *testing.T) {
	const n = 50
	var executions atomic.Int32
	got, err := durableCall(t, n, func(c *durable.Ctx, n int) ([]int, error) {
		results := make([]int, n)
		errs := make([]error, n)
		var wg sync.WaitGroup
		for i := range n {
			wg.Go(func() {
				results[i], errs[i] = c.Step(fmt.Sprint("item ", i), func(context.Context) (int, error) {
					executions.Add(1)
					return i * i, nil
				})
			})
		}
		wg.Wait()
		return results, errors.Join(errs...)
	})
	if err != nil || len(got) != n || got[7] != 49 || executions.Load() != n {
		t.Errorf("got %v, %v after %d executions", got, err, executions.Load())
	}
}

func TestAtMostOnceCompletes(t *testing.T) {
	got, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (string, error) {
		return c.Step("send", func(context.Context) (string, error) { return "sent", nil }, durable.AtMostOnce())
	})
	if got != "sent" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// awaitCheckpoint waits until a step is in the given state.
func awaitCheckpoint(t testing.TB, e *durable.Engine, id, step string, status durable.CheckpointStatus) {
	t.Helper()
	if !poll(within(t), func() bool {
		return slices.ContainsFunc(historyOf(t, e, id), func(h durable.Checkpoint) bool { return h.Name == step && h.Status == status })
	}) {
		t.Fatalf("step %q of run %q is not %s", step, id, status)
	}
}
