package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/realtime"
)

const day = 24 * time.Hour

// onStores runs the test in a fake time, on both databases.
func onStores(t *testing.T, test func(t *testing.T, opts ...durabletest.Option)) {
	t.Run("sqlite", func(t *testing.T) { t.Parallel(); test(t) })
	t.Run("postgres", func(t *testing.T) { t.Parallel(); test(t, durabletest.OnStore(durabletest.PostgresStore(t))) })
}

func defs(all ...durable.Definition) []durable.Definition { return all }

// quickly bounds a test in real time: much longer than anything takes, so that a loaded machine fails nothing.
func quickly(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func TestThirtyDaysOfSleeps(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("sleeper", func(c *durable.Ctx, days int) (int, error) {
			for i := range days {
				if err := c.Sleep(fmt.Sprint("night-", i), day); err != nil {
					return 0, err
				}
				if err := c.Do(fmt.Sprint("day-", i), func(context.Context) error { return nil }); err != nil {
					return 0, err
				}
			}
			return days, nil
		})
		e := durabletest.NewWithOptions(t, defs(w), opts...)
		began, real := e.Now(), time.Now()
		got, err := w.Call(quickly(t), e.Engine, 30)
		if got != 30 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if passed := e.Now().Sub(began); passed != 30*day {
			t.Errorf("%v passed by the engine's clock", passed)
		}
		t.Logf("thirty days took %v", time.Since(real))
	})
}

// Backoffs, deadlines of receives, timeouts of runs and delays are due in order.
func TestEverythingIsDueInOrder(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		var mu sync.Mutex
		var order []string
		var e *durabletest.Engine
		var began time.Time
		note := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, fmt.Sprintf("%s@%v", what, e.Now().Sub(began)))
		}
		retry := durable.Define("retry", func(c *durable.Ctx, _ int) (int, error) {
			return c.Step("try", func(ctx context.Context) (int, error) {
				note(fmt.Sprint("attempt", durable.Attempt(ctx)))
				if durable.Attempt(ctx) < 3 {
					return 0, errors.New("not yet")
				}
				return 1, nil
			}, durable.Retry(durable.Fixed(2*day, 5)))
		})
		receive := durable.Define("receive", func(c *durable.Ctx, _ int) (int, error) {
			_, err := c.Receive[int]("never", durable.Within(3*day))
			if errors.Is(err, durable.ErrTimeout) {
				note("deadline")
				return 0, nil
			}
			return 0, err
		})
		timeout := durable.Define("timeout", func(c *durable.Ctx, _ int) (int, error) {
			err := c.Sleep("long", 100*day)
			if !errors.Is(err, durable.ErrSuspended) {
				note("timeout")
			}
			return 0, err
		})
		delayed := durable.Define("delayed", func(*durable.Ctx, int) (int, error) { note("delayed"); return 0, nil })
		short := durable.Define("short", func(c *durable.Ctx, _ int) (int, error) {
			err := c.Sleep("short", time.Second) // not long enough to leave memory
			note("short")
			return 0, err
		})
		e = durabletest.NewWithOptions(t, defs(retry, receive, timeout, delayed, short), opts...)
		began = e.Now()
		ctx := quickly(t)
		start := func(w *durable.Workflow[int, int], opts ...durable.StartOption) *durable.Run[int] {
			t.Helper()
			run, err := w.Start(ctx, e.Engine, 0, opts...)
			if err != nil {
				t.Fatal(err)
			}
			return run
		}
		start(delayed, durable.Delay(5*day))
		start(short)
		last := start(timeout, durable.Timeout(6*day))
		start(receive)
		start(retry)
		if _, err := last.Result(ctx); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("the run with a timeout ended with %v", err)
		}
		mu.Lock()
		defer mu.Unlock()
		want := []string{"attempt1@0s", "short@1s", "attempt2@48h0m0s", "deadline@72h0m0s", "attempt3@96h0m0s", "delayed@120h0m0s", "timeout@144h0m0s"}
		if !slices.Equal(order, want) {
			t.Errorf("got  %v\nwant %v", order, want)
		}
	})
}

// What the test sends between two waits is there before time passes.
func TestSignalsInBetween(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("approval", func(c *durable.Ctx, _ int) (string, error) {
			if err := c.Do("ask", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			return c.Receive[string]("approved", durable.Within(3*day), durable.Else("nobody came"))
		})
		e := durabletest.NewWithOptions(t, defs(w), opts...)
		ctx := quickly(t)
		for i := range 5 {
			id := fmt.Sprint("at-once-", i)
			run, err := w.Start(ctx, e.Engine, 0, durable.ID(id))
			if err != nil {
				t.Fatal(err)
			}
			if err := e.Signal(ctx, id, "approved", "Ada"); err != nil {
				t.Fatal(err)
			}
			if got, err := run.Result(ctx); got != "Ada" || err != nil {
				t.Errorf("got %q, %v", got, err)
			}
		}
		began := e.Now()
		run, err := w.Start(ctx, e.Engine, 0, durable.ID("later"))
		if err != nil {
			t.Fatal(err)
		}
		e.Advance(2 * day)
		if info, err := e.Get(ctx, "later"); err != nil || info.Status != durable.StatusWaiting {
			t.Errorf("after two days: %+v, %v", info, err)
		}
		if err := e.Signal(ctx, "later", "approved", "Grace"); err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(ctx); got != "Grace" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		if passed := e.Now().Sub(began); passed != 2*day {
			t.Errorf("%v passed", passed)
		}
		run, err = w.Start(ctx, e.Engine, 0, durable.ID("never"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(ctx); got != "nobody came" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

// Children, branches and plain goroutines: what any of them waits for is due in order.
func TestConcurrentWaits(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		child := durable.Define("child", func(c *durable.Ctx, days int) (int, error) {
			return days, c.Sleep("sleep", time.Duration(days)*day)
		})
		parent := durable.Define("parent", func(c *durable.Ctx, _ int) ([]int, error) {
			branch := c.Go("branch", func(c *durable.Ctx) (int, error) { return c.Child[int, int]("child", child, 10) })
			var group sync.WaitGroup
			errs := make([]error, 3)
			for i := range errs {
				group.Go(func() { errs[i] = c.Sleep(fmt.Sprint("sleep-", i), time.Duration(i)*day) })
			}
			group.Wait()
			if err := errors.Join(errs...); err != nil {
				return nil, err
			}
			first, err := c.Child[int, int]("first", child, 3)
			if err != nil {
				return nil, err
			}
			second, err := branch.Wait()
			return []int{first, second}, err
		})
		e := durabletest.NewWithOptions(t, defs(parent, child), opts...)
		began := e.Now()
		got, err := parent.Call(quickly(t), e.Engine, 0)
		if !slices.Equal(got, []int{3, 10}) || err != nil {
			t.Errorf("got %v, %v", got, err)
		}
		if passed := e.Now().Sub(began); passed != 10*day {
			t.Errorf("%v passed", passed)
		}
	})
}

// A step that takes real time takes it, and no time passes meanwhile.
func TestStepsTakeTheirTime(t *testing.T) {
	t.Parallel()
	var e *durabletest.Engine
	w := durable.Define("w", func(c *durable.Ctx, _ int) (time.Duration, error) {
		nap := c.Go("nap", func(c *durable.Ctx) (int, error) { return 0, c.Sleep("an hour", time.Hour) })
		took, err := c.Step("slow", func(context.Context) (time.Duration, error) {
			began := e.Now()
			realtime.Pass(200*time.Millisecond, "the work of a step takes real time")
			return e.Now().Sub(began), nil
		})
		if err != nil {
			return 0, err
		}
		_, err = nap.Wait()
		return took, err
	})
	e = durabletest.New(t, w)
	if took, err := w.Call(quickly(t), e.Engine, 0); took != 0 || err != nil {
		t.Errorf("got %v, %v", took, err)
	}
}

// An attempt's timeout is real: the step that waits for it gets it.
func TestAttemptTimeoutIsReal(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("stuck", func(ctx context.Context) (int, error) { <-ctx.Done(); return 0, ctx.Err() }, durable.AttemptTimeout(30*time.Millisecond))
	})
	e := durabletest.New(t, w)
	if _, err := w.Call(quickly(t), e.Engine, 0); !errors.Is(err, durable.ErrTimeout) {
		t.Errorf("got %v", err)
	}
}

// A second engine takes over what the first gives back, in the same time.
func TestStartAnother(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, c.Sleep("a day", day) })
	newer := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 2, c.Sleep("a day", day) })
	e := durabletest.New(t, w)
	run, err := w.Start(quickly(t), e.Engine, 0)
	if err != nil {
		t.Fatal(err)
	}
	e.Advance(time.Hour)
	e.Stop()
	second := e.StartAnother(newer)
	again, err := newer.Handle(quickly(t), second.Engine, run.ID())
	if err != nil {
		t.Fatal(err)
	}
	if got, err := again.Result(quickly(t)); got != 2 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// An option that would do nothing fails the test.
func TestOptionsOfOthers(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
	for name, c := range map[string]struct {
		opt durabletest.Option
		use func(testing.TB, durabletest.Option)
	}{
		"OnStore":      {durabletest.OnStore(nil), func(t testing.TB, o durabletest.Option) { durabletest.CrashEverywhere(t, w, 1, o) }},
		"RealTime":     {durabletest.RealTime(), func(t testing.TB, o durabletest.Option) { durabletest.CrashEverywhere(t, w, 1, o) }},
		"SignalAfter":  {durabletest.SignalAfter(0, "s", 1), func(t testing.TB, o durabletest.Option) { durabletest.NewWithOptions(t, nil, o) }},
		"VaryingSteps": {durabletest.VaryingSteps("s"), func(t testing.TB, o durabletest.Option) { durabletest.NewWithOptions(t, nil, o) }},
	} {
		s := &spy{TB: t}
		done := make(chan struct{})
		go func() { // Fatalf ends the goroutine
			defer close(done)
			c.use(s, c.opt)
		}()
		<-done
		if len(s.errors) != 1 || !strings.Contains(s.errors[0], name+" is an option of ") {
			t.Errorf("%s: %q", name, s.errors)
		}
	}
}

// A stub may return as much as Config.MaxPayload allows.
func TestLargeStub(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		s, err := c.Step("big", func(context.Context) (string, error) { return "", nil })
		return len(s), err
	})
	e := durabletest.NewWithOptions(t, []durable.Definition{w},
		durabletest.Configure(func(c *durable.Config) { c.MaxPayload = 8 << 20 }),
		durabletest.Stub("big", func(context.Context) (string, error) { return strings.Repeat("x", 5<<20), nil }))
	if got, err := w.Call(quickly(t), e.Engine, 0); got != 5<<20 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}
