package durable_test

import (
	"context"
	"encoding/json/v2"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// Branches can use the same names, each in its own scope, and no name that a user gives can imitate a scope.
func TestBranches(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) ([]string, error) {
		branch := func(c *durable.Ctx) (string, error) {
			return c.Step("s", func(ctx context.Context) (string, error) { return durable.IdempotencyKey(ctx), nil })
		}
		a, b := c.Go("a", branch), c.Go("b", branch)
		keys, err := durable.All(a, b)
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"a/s", "a%2Fs"} {
			key, err := c.Step(name, func(ctx context.Context) (string, error) { return durable.IdempotencyKey(ctx), nil })
			if err != nil {
				return nil, err
			}
			keys = append(keys, key)
		}
		return keys, nil
	})
	e := engineOn(t, s, w)
	got, err := w.Call(within(t), e, 0, durable.ID("run"))
	if err != nil || len(got) != 4 || !strings.HasSuffix(got[0], ":a/s") || !strings.HasSuffix(got[1], ":b/s") {
		t.Errorf("got %q, %v", got, err)
	}
	if slices.Sort(got); len(slices.Compact(got)) != 4 {
		t.Errorf("two steps have one idempotency key: %q", got)
	}
	history, err := e.History(within(t), "run")
	if err != nil || len(history) != 4 {
		t.Errorf("history %+v, %v; want four steps", history, err)
	}
}

func TestBranchFailures(t *testing.T) {
	for name, c := range map[string]struct {
		fn   func(*durable.Ctx) (int, error)
		want error
	}{
		"error":  {func(*durable.Ctx) (int, error) { return 0, errDeclined }, errDeclined},
		"panic":  {func(*durable.Ctx) (int, error) { panic("boom") }, durable.ErrPanic},
		"goexit": {func(*durable.Ctx) (int, error) { return 0, goexit(context.Background()) }, durable.ErrGoexit},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := durableCall(t, 0, func(ctx *durable.Ctx, _ int) (int, error) { return ctx.Go("branch", c.fn).Wait() })
			if !errors.Is(err, c.want) {
				t.Errorf("got %v, want %v", err, c.want)
			}
		})
	}
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		nothing := func(*durable.Ctx) (int, error) { return 0, nil }
		a, b := c.Go("same", nothing), c.Go("same", nothing)
		_, err := durable.All(a, b)
		return 0, err
	})
	if !errors.Is(err, durable.ErrDuplicateStep) {
		t.Errorf("one branch name twice: %v, want ErrDuplicateStep", err)
	}
}

// The winner is recorded: a replay returns the same winner, even if another branch would be the first to succeed now.
func TestAnyReplaysItsWinner(t *testing.T) {
	s := openStore(t)
	var first atomic.Bool
	first.Store(true)
	chosen := make(chan struct{})
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		slow := make(chan struct{})
		a := c.Go("a", func(c *durable.Ctx) (string, error) {
			if first.Load() {
				select { // in the first execution b is first
				case <-slow:
				case <-c.Done():
				}
			}
			return c.Step("s", func(context.Context) (string, error) { return "a", nil })
		})
		b := c.Go("b", func(c *durable.Ctx) (string, error) {
			return c.Step("s", func(context.Context) (string, error) { return "b", nil })
		})
		_, winner, err := durable.Any(c, "first", durable.KeepLosers, a, b)
		if err != nil {
			return "", err
		}
		err = c.Do("hold", func(ctx context.Context) error {
			if first.Swap(false) {
				close(chosen)
				<-ctx.Done()
			}
			return ctx.Err()
		})
		return winner, err
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1})
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
		t.Fatal(err)
	}
	<-chosen
	stop()
	if got, err := w.Call(within(t), engineOn(t, s, w), 0, durable.ID("run")); got != "b" || err != nil {
		t.Errorf("got %q, %v; want b, as recorded", got, err)
	}
}

func TestQuorum(t *testing.T) {
	branch := func(err error) func(*durable.Ctx) (int, error) {
		return func(*durable.Ctx) (int, error) { return 0, err }
	}
	got, err := durableCall(t, 0, func(c *durable.Ctx, _ int) ([]int, error) {
		return durable.Quorum(c, "two", 2, durable.KeepLosers, c.Go("a", branch(nil)), c.Go("b", branch(errDeclined)), c.Go("c", branch(nil)))
	})
	if err != nil || len(got) != 2 || got[0]+got[1] != 2 {
		t.Errorf("got %v, %v; want the first and the third", got, err)
	}
	_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) ([]int, error) {
		return durable.Quorum(c, "two", 2, durable.KeepLosers, c.Go("a", branch(nil)), c.Go("b", branch(errDeclined)))
	})
	if !errors.Is(err, errDeclined) {
		t.Errorf("got %v, want errDeclined: two cannot be had", err)
	}
	_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) ([]int, error) {
		return durable.Quorum[int](c, "none", 1, durable.KeepLosers)
	})
	if !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("got %v, want ErrInvalidConfig", err)
	}
}

func TestMap(t *testing.T) {
	n := testsize.Of(10_000, 1_000)
	items := make([]int, n)
	for i := range items {
		items[i] = i
	}
	var now, most atomic.Int32
	s := openStore(t)
	executions := atomic.Int32{}
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		squares, err := c.Map("squares", items, func(_ context.Context, i int) (int, error) {
			executions.Add(1)
			if k := now.Add(1); k > most.Load() {
				most.Store(k)
			}
			defer now.Add(-1)
			return i * i, nil
		}, durable.Parallel(50))
		if err != nil {
			return 0, err
		}
		for i, square := range squares {
			if square != i*i {
				return 0, fmt.Errorf("item %d is %d", i, square)
			}
		}
		return len(squares), nil
	})
	if got, err := w.Call(patience(t), engineOn(t, s, w), 0); got != n || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if int(executions.Load()) != n || most.Load() > 50 {
		t.Errorf("%d executions, %d at once; want %d and at most 50", executions.Load(), most.Load(), n)
	}
}

func TestMapFailures(t *testing.T) {
	odd := func(_ context.Context, i int) (int, error) {
		if i%2 == 1 {
			return 0, errDeclined
		}
		return i, nil
	}
	items := []int{0, 1, 2, 3, 4}
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) ([]int, error) { return c.Map("m", items, odd, durable.Parallel(1)) })
	if !errors.Is(err, errDeclined) || !strings.Contains(err.Error(), `step "m/1" failed`) {
		t.Errorf("got %v, want the first failure", err)
	}
	var results []int
	_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		var err error
		results, err = c.Map("m", items, odd, durable.Collect())
		return 0, err
	})
	if !errors.Is(err, errDeclined) || strings.Count(err.Error(), "failed:") != 3 || !reflect.DeepEqual(results, []int{0, 0, 2, 0, 4}) {
		t.Errorf("got %v, %v; want both failures and the other results", results, err)
	}
	_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) ([]int, error) {
		return c.Map("m", items, odd, durable.Key(func(int) string { return "same" }))
	})
	if !errors.Is(err, durable.ErrDuplicateStep) {
		t.Errorf("one key for all: %v, want ErrDuplicateStep", err)
	}
	for name, opt := range map[string]durable.MapOption{
		"no workers": durable.Parallel(0), "a foreign key": durable.Key(func(string) string { return "" }),
	} {
		if _, err := durableCall(t, 0, func(c *durable.Ctx, _ int) ([]int, error) { return c.Map("m", items, odd, opt) }); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("%s: %v, want ErrInvalidConfig", name, err)
		}
	}
}

// A sleep ends at the time that was recorded first, whatever process executes the run, and a run with a long sleep leaves memory.
func TestSleep(t *testing.T) {
	s := openStore(t)
	var entered sync.Map
	w := durable.Define("w", func(c *durable.Ctx, wait time.Duration) (time.Time, error) {
		entered.Store(c.ID(), true)
		if err := c.Sleep("nap", wait); err != nil {
			return time.Time{}, err
		}
		if err := c.SleepUntil("past", time.Unix(1, 0)); err != nil {
			return time.Time{}, err
		}
		return c.Step("now", func(context.Context) (time.Time, error) { return time.Now(), nil })
	})
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, ParkAfter: 20 * time.Millisecond})
	stop := running(t, e)
	began := time.Now()
	run, err := w.Start(within(t), e, 600*time.Millisecond, durable.ID("long"))
	if err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "long", durable.StatusWaiting)
	asleep := time.Since(began)
	info, err := e.Get(within(t), "long")
	if err != nil {
		t.Fatal(err)
	}
	if late := info.WakeAt.Sub(began) - 600*time.Millisecond; late < -time.Millisecond || late > asleep+time.Millisecond {
		t.Errorf("it wakes %v after its start, want 600ms after the sleep began, which was within %v", info.WakeAt.Sub(began), asleep)
	}
	stop()
	running(t, engineOn(t, s, w))
	woke, err := run.Result(within(t))
	if err != nil {
		t.Fatal(err)
	}
	if slept := woke.Sub(began); slept < 600*time.Millisecond || slept > 15*time.Second {
		t.Errorf("slept %v, want 600ms", slept)
	}
	history, err := e.History(within(t), "long")
	if err != nil || len(history) != 3 || history[0].Kind != "sleep" || history[0].NextAt.IsZero() {
		t.Errorf("history %+v, %v", history, err)
	}
	_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) { return 0, c.SleepUntil("never", time.Time{}) })
	if !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("until the zero time: %v", err)
	}
}

// While one branch sleeps for long and others work, the run stays in memory. It leaves memory when the others are done.
func TestBranchesWorkWhileOneSleeps(t *testing.T) {
	got, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		sleeper := c.Go("sleeper", func(c *durable.Ctx) (int, error) { return 1, c.Sleep("nap", 300*time.Millisecond) })
		worker := c.Go("worker", func(c *durable.Ctx) (int, error) {
			sum := 0
			for i := range 50 {
				n, err := c.Step(fmt.Sprint(i), func(context.Context) (int, error) { return 1, nil })
				if err != nil {
					return 0, err
				}
				sum += n
			}
			return sum, nil
		})
		both, err := durable.All(sleeper, worker)
		if err != nil {
			return 0, err
		}
		return both[0] + both[1], nil
	})
	if got != 51 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

func awaitStatus(t testing.TB, e *durable.Engine, id string, want durable.Status) {
	t.Helper()
	if !becomes(t, e, id, want) {
		info := read(e.Get(within(t), id))(t)
		t.Fatalf("run %q is %s (%s), wakes at %v, and has the open calls %+v: want %s", id, info.Status, info.Reason, info.WakeAt, info.OpenCalls, want)
	}
}

// becomes reports whether the run gets the status.
func becomes(t testing.TB, e *durable.Engine, id string, want durable.Status) bool {
	t.Helper()
	return poll(within(t), func() bool { return read(e.Get(context.Background(), id))(t).Status == want })
}

// unreadable makes the decoding of fickle values panic, as if the code had changed.
var unreadable atomic.Bool

type fickle struct{ N int }

func (v *fickle) UnmarshalJSON(b []byte) error {
	if unreadable.Load() {
		panic("the code does not read this any more")
	}
	type plain fickle
	return json.Unmarshal(b, (*plain)(v))
}

// If a decoder panics in a replay, the process continues, and the run has its result or an error.
func TestADecoderThatPanicsEndsAtMostItsRun(t *testing.T) {
	s := openStore(t)
	unreadable.Store(false)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		got, err := c.Map("m", []int{1, 2}, func(_ context.Context, i int) (fickle, error) { return fickle{i}, nil })
		if err != nil {
			return 0, err
		}
		if _, err := c.Receive[int]("go"); err != nil {
			return 0, err
		}
		return got[0].N + got[1].N, nil
	}, durable.OnDrift(durable.DriftFails)) // or it would be held, and have no result
	e := engineOn(t, s, w)
	running(t, e)
	run, err := w.Start(within(t), e, 0, durable.ID("a"))
	if err != nil {
		t.Fatal(err)
	}
	if !becomes(t, e, "a", durable.StatusWaiting) {
		t.Fatal("it stays in memory")
	}
	unreadable.Store(true)
	if err := e.Signal(within(t), "a", "go", 1); err != nil {
		t.Fatal(err)
	}
	if got, err := run.Result(within(t)); err == nil && got != 3 {
		t.Errorf("got %d, %v; want 3, or an error", got, err)
	}
}
