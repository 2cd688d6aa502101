package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// A result that cannot come ends its wait at once, with what is awaited.
func TestAWaitForWhatCannotComeEndsAtOnce(t *testing.T) {
	elsewhere := durable.Define("elsewhere", func(*durable.Ctx, int) (int, error) { return 0, nil })
	approved := durable.Define("approved", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("approval") })
	parent := durable.Define("parent", func(c *durable.Ctx, _ int) (int, error) { return c.Child("kid", approved, 1) })
	keyed := durable.Define("keyed", func(c *durable.Ctx, _ int) (int, error) {
		return c.Child("kid", approved, 1, durable.InQueue("mail"), durable.GroupKey("k"))
	})
	stubbed := durable.Define("stubbed", func(c *durable.Ctx, _ int) (int, error) {
		return c.Step("charge", func(context.Context) (int, error) { return 1, nil })
	})
	for name, c := range map[string]struct {
		w    *durable.Workflow[int, int]
		do   func(e *durabletest.Engine) error
		want string
	}{
		"a signal that nobody sends": {w: approved, want: `run "run" of workflow "approved" is waiting, and waits for receive "approval"`},
		"a child's signal":           {w: parent, want: `run "kid" of workflow "approved" is waiting, and waits for receive "approval"`},
		"a workflow of no engine":    {w: elsewhere, want: `run "run" of workflow "elsewhere" is pending, and no engine of this test executes that workflow`},
		"a paused run": {w: approved, do: func(e *durabletest.Engine) error {
			_, err := e.Pause(context.Background(), "run")
			return err
		}, want: `run "run" of workflow "approved" is paused, and nobody resumes it`},
		"a run paused for a reason": {w: approved, do: func(e *durabletest.Engine) error {
			_, err := e.Pause(context.Background(), "run", durable.Reason("stock is counted"), durable.Actor("ann"))
			return err
		}, want: `run "run" of workflow "approved" is paused by "ann" (stock is counted), and nobody resumes it`},
		"a child's queue without settings":  {w: keyed, want: `run "run" of workflow "keyed" is pending and held (start child "kid": durable: invalid configuration: workflow "approved" is started with GroupKey("k") in queue "mail", which has no settings`},
		"a recorded result of another type": {w: stubbed, want: `run "run" of workflow "stubbed" is held (the code`},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			e := durabletest.New(t, approved, parent, keyed, stubbed)
			e.Use(durabletest.Stub("charge", func(context.Context) (string, error) { return "text", nil }).Optional())
			run, err := c.w.Start(ctx, e.Engine, 1, durable.ID("run"))
			if err != nil {
				t.Fatal(err)
			}
			if c.do != nil {
				if err := c.do(e); err != nil {
					t.Fatal(err)
				}
			}
			_, err = run.Result(ctx)
			if err == nil || !strings.Contains(err.Error(), "nothing more will happen by itself") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want what is awaited: %s", err, c.want)
			}
			if ctx.Err() != nil {
				t.Error("it came too late")
			}
		})
	}
}

// What another goroutine of the test does later is waited for, and so is the end of a context that ends soon.
func TestAWaitForTheTestsOtherGoroutines(t *testing.T) {
	w := durable.Define("approved", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("approval") })
	e := durabletest.New(t, w)
	run, err := w.Start(t.Context(), e.Engine, 1, durable.ID("run"))
	if err != nil {
		t.Fatal(err)
	}
	short, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := run.Result(short); err == nil || strings.Contains(err.Error(), "durabletest") {
		t.Errorf("a short wait: %v", err)
	}
	failed := make(chan error, 1)
	go func() {
		realtime.Pass(300*time.Millisecond, "a request to a server takes real time")
		failed <- e.Signal(context.Background(), "run", "approval", 7)
	}()
	if got, err := run.Result(t.Context()); got != 7 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if err := <-failed; err != nil {
		t.Error(err)
	}
}

// told is a test that notes what it is told.
type told struct {
	testing.TB
	cleanups []func()
	mu       sync.Mutex
	log      []string
	errors   []string
}

func (b *told) Helper()          {}
func (b *told) Cleanup(f func()) { b.cleanups = append(b.cleanups, f) }
func (b *told) Failed() bool     { return len(b.errors) > 0 }
func (b *told) Logf(format string, args ...any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.log = append(b.log, fmt.Sprintf(format, args...))
}

func (b *told) Errorf(format string, args ...any) {
	b.errors = append(b.errors, fmt.Sprintf(format, args...))
}

func (b *told) Fatal(args ...any) {
	b.Errorf("%s", fmt.Sprint(args...))
	runtime.Goexit()
}

func (b *told) end() {
	for i := len(b.cleanups) - 1; i >= 0; i-- {
		b.cleanups[i]()
	}
}

// A stub whose step is never called fails the test at its end, with the names that were called.
func TestAStubThatIsNeverCalled(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Do("mail", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return c.Step("charge", func(context.Context) (int, error) { return 1, nil })
	})
	stub := func(name string) *durabletest.Replacement {
		return durabletest.Stub(name, func(context.Context) (int, error) { return 2, nil })
	}
	const want = `no step "chrage" was called, so its stub was never used; the steps called were "charge", "mail"`
	for name, do := range map[string]func(b *told){
		"Use": func(b *told) {
			e := durabletest.New(b, w)
			e.Use(stub("chrage"), stub("charge"), stub("refund").Optional())
			if got, err := w.Call(t.Context(), e.Engine, 1); got != 2 || err != nil {
				t.Error(got, err)
			}
		},
		"CrashEverywhere": func(b *told) {
			durabletest.CrashEverywhere(b, w, 1, stub("chrage"), stub("charge"), stub("refund").Optional())
		},
	} {
		b := &told{TB: t}
		do(b)
		b.end()
		if len(b.errors) != 1 || !strings.Contains(b.errors[0], want) {
			t.Errorf("%s: the test was told %q, want %s", name, b.errors, want)
		}
	}
}

// A stub of a compensation is used when the compensation is called, and the names of compensations are listed with those of steps.
func TestAStubOfACompensation(t *testing.T) {
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		if err := c.Compensate("release", func(context.Context) error { return nil }); err != nil {
			return 0, err
		}
		return c.Step("charge", func(context.Context) (int, error) { return 0, errors.New("no") })
	})
	stubs := func() []*durabletest.Replacement {
		return []*durabletest.Replacement{
			durabletest.FailFirst("release", 1, errors.New("not yet")),
			durabletest.Stub("release", func(context.Context) (any, error) { return nil, nil }),
			durabletest.Stub("refund", func(context.Context) (any, error) { return nil, nil }),
		}
	}
	for name, do := range map[string]func(b *told){
		"Use": func(b *told) {
			e, all := durabletest.New(b, w), stubs()
			e.Use(all...)
			if _, err := w.Call(t.Context(), e.Engine, 1); err == nil || all[1].CallCount() != 1 {
				t.Errorf("called the stub %d times, want once: %v", all[1].CallCount(), err)
			}
		},
		"CrashEverywhere": func(b *told) {
			all := stubs()
			durabletest.CrashEverywhere(b, w, 1, all[0], all[1], all[2])
		},
	} {
		b := &told{TB: t}
		do(b)
		b.end()
		const want = `no step "refund" was called, so its stub was never used; the steps called were "charge", "release"`
		if len(b.errors) != 1 || !strings.Contains(b.errors[0], want) {
			t.Errorf("%s: the test was told %q, want %s", name, b.errors, want)
		}
	}
}

// AdvanceUntil ends the test if runs are only held again and again.
func TestAdvanceUntilEndsIfRunsAreOnlyHeld(t *testing.T) {
	w := durable.Define("keyed", func(c *durable.Ctx, _ int) (int, error) {
		return c.Child("kid", durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 0, nil }), 1, durable.InQueue("mail"), durable.GroupKey("k"))
	})
	b := &told{TB: t}
	defer b.end()
	e := durabletest.New(b, w)
	if _, err := w.Start(t.Context(), e.Engine, 1, durable.ID("p")); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { // Fatal ends the goroutine
		defer close(done)
		e.AdvanceUntil(func() bool {
			info, err := e.Get(t.Context(), "p")
			return err != nil || info.Status == durable.StatusCompleted
		})
	}()
	<-done
	if len(b.errors) != 1 || !strings.Contains(b.errors[0], "runs are only held again and again") {
		t.Errorf("the test was told %q", b.errors)
	}
}

// If a wait ends by its deadline although nothing more could happen, the log of the test says what the run waited for.
func TestAWaitWithANearDeadlineLogsWhatIsAwaited(t *testing.T) {
	elsewhere := durable.Define("elsewhere", func(*durable.Ctx, int) (int, error) { return 0, nil })
	w := durable.Define("parent", func(c *durable.Ctx, _ int) (int, error) { return c.Child("kid", elsewhere, 1) })
	b := &told{TB: t}
	e := durabletest.New(b, w)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	if _, err := w.Call(ctx, e.Engine, 1, durable.ID("p")); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want the end of the context", err)
	}
	b.end()
	const want = `run "kid" of workflow "elsewhere" is pending, and no engine of this test executes that workflow`
	if len(b.log) != 1 || !strings.Contains(b.log[0], want) {
		t.Errorf("the log is %q, want one line with %s", b.log, want)
	}
}
