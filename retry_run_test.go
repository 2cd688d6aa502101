package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// till is a workflow whose step "charge" fails a number of times.
type till struct {
	mu       sync.Mutex
	failures int      // of the next attempts
	err      error    // of them
	keys     []string // of the attempts
	calls    []string
	undoes   []durable.StepOption
}

func (x *till) note(what string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.calls = append(x.calls, what)
}

func (x *till) charge(ctx context.Context) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.keys = append(x.keys, durable.IdempotencyKey(ctx))
	x.calls = append(x.calls, "charge")
	if x.failures > 0 {
		x.failures--
		return x.err
	}
	return nil
}

func (x *till) define(opts ...durable.WorkflowOption) *durable.Workflow[int, string] {
	return durable.Define("till", func(c *durable.Ctx, _ int) (string, error) {
		if err := c.Compensate("undo", func(context.Context) error { x.note("undo"); return nil }, x.undoes...); err != nil {
			return "", err
		}
		if err := c.Do("reserve", func(context.Context) error { x.note("reserve"); return nil }); err != nil {
			return "", err
		}
		if err := c.Do("charge", x.charge); err != nil {
			return "", err
		}
		return "paid", nil
	}, opts...)
}

var errClosed = errors.New("the bank is closed")

// A run that fails is executed again from the step that failed, with the same key and without its compensations, and those who wait
// for it see its last end.
func TestARunRetriesItself(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := &till{failures: 2, err: errClosed}
		w := x.define(durable.RetryRun(durable.Fixed(time.Millisecond, 3)))
		e := engineOn(t, s, w)
		running(t, e)
		if out, err := w.Call(within(t), e, 0, durable.ID("a")); out != "paid" || err != nil {
			t.Fatalf("%q, %v", out, err)
		}
		if got := strings.Join(x.calls, " "); got != "reserve charge charge charge" {
			t.Errorf("executed %s", got)
		}
		if len(slices.Compact(slices.Clone(x.keys))) != 1 {
			t.Errorf("the keys are %q", x.keys)
		}
		all := read(e.Generations(within(t), "a"))(t)
		if len(all) != 3 || all[0].Status != durable.StatusSuperseded || all[1].Verb != durable.VerbRetry || !strings.Contains(all[2].Reason, `"charge" failed`) ||
			!strings.Contains(all[2].Reason, "failure 2 in a row") || strings.Contains(all[2].Reason, "closed") {
			t.Errorf("the generations are %+v", all)
		}
		first := read(e.History(within(t), "a", durable.InGeneration(1)))(t)
		if last := first[len(first)-1]; last.Name != "charge" || !strings.Contains(last.Err.Error(), "closed") {
			t.Errorf("the history of the first generation ends with %+v", last)
		}
	})
}

// After its last failure a run compensates and fails. Errors that are permanent are not retried.
func TestARunThatGivesUpRetrying(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for name, want := range map[string]struct {
			err   error
			calls string
		}{
			"often":     {errClosed, "reserve charge charge undo"},
			"permanent": {durable.Permanent(errClosed), "reserve charge undo"},
		} {
			x := &till{failures: 9, err: want.err}
			w := x.define(durable.RetryRun(durable.Fixed(time.Millisecond, 2)))
			e := engineOn(t, s, w)
			stop := running(t, e)
			_, err := w.Call(within(t), e, 0, durable.ID(name))
			if failed, ok := errors.AsType[*durable.RunError](err); !ok || failed.Status != durable.StatusFailed || failed.Step != "charge" {
				t.Errorf("%s: %v", name, err)
			}
			if got := strings.Join(x.calls, " "); got != want.calls {
				t.Errorf("%s: executed %s, want %s", name, got, want.calls)
			}
			x.mu.Lock()
			x.failures, x.calls = 1, nil
			x.mu.Unlock()
			if name == "often" { // an operator's retry counts anew
				if _, err := e.Retry(within(t), name, durable.From("charge")); err != nil {
					t.Fatal(err)
				}
				awaitStatus(t, e, name, durable.StatusCompleted)
				if got := strings.Join(x.calls, " "); got != "charge charge" {
					t.Errorf("after the retry: executed %s", got)
				}
			}
			stop()
		}
	})
}

// While a run waits for its retry, it is waiting without a worker. A cancel compensates it, a pause stops it, and another process retries it.
func TestARunThatWaitsForItsRetry(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := &till{failures: 3, err: errClosed}
		w := x.define(durable.RetryRun(durable.Fixed(time.Hour, 2)))
		e := engineOn(t, s, w)
		stop := running(t, e)
		for _, id := range []string{"cancelled", "expires", "paused"} {
			var opts []durable.StartOption
			if id == "expires" {
				opts = append(opts, durable.Timeout(30*time.Minute)) // earlier than its retry
			}
			if _, err := w.Start(within(t), e, 0, append(opts, durable.ID(id))...); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return len(read(e.Generations(within(t), id))(t)) == 2 })
			info := read(e.Get(within(t), id))(t)
			if info.Status != durable.StatusWaiting || info.WakeAt.IsZero() {
				t.Errorf("%s: %s, due at %v", id, info.Status, info.WakeAt)
			}
			if w := info.RetryWait; w == nil || w.Failures != 1 || w.Err.Step != "charge" || !strings.Contains(w.Err.Message, errClosed.Error()) || id != "expires" && !w.Until.Equal(info.WakeAt) || len(info.OpenCalls) > 0 {
				t.Errorf("%s: the wait for the retry is %+v, the open calls are %v", id, w, info.OpenCalls)
			}
		}
		must(t)(e.Cancel(within(t), "cancelled"))
		awaitStatus(t, e, "cancelled", durable.StatusCancelled)
		if info := read(e.Get(within(t), "expires"))(t); !info.WakeAt.Equal(info.Deadline) {
			t.Errorf("the run that expires is due at %v, and its deadline is %v", info.WakeAt, info.Deadline)
		}
		if err := e.SetTimeout(within(t), "expires", time.Millisecond); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "expires", durable.StatusExpired)
		must(t)(e.Pause(within(t), "paused"))
		awaitStatus(t, e, "paused", durable.StatusPaused)
		stop()
		if n := strings.Count(strings.Join(x.calls, " "), "undo"); n != 2 {
			t.Errorf("compensated %d times, want 2", n)
		}
		other := engineOn(t, s, w)
		running(t, other)
		must(t)(other.Resume(within(t), "paused"))
		if _, err := other.Fork(within(t), "paused", durable.FromEnd()); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, other, "paused", durable.StatusCompleted)
		for _, id := range []string{"cancelled", "expires", "paused"} {
			if w := read(e.Get(within(t), id))(t).RetryWait; w != nil {
				t.Errorf("%s has ended, and waits for a retry: %+v", id, w)
			}
		}
	})
}

// A parent that retries itself retries the child that failed beneath it, if the child says what its compensations have undone. A child
// that retries itself is seen by its parent when it has ended for good.
func TestChildrenOfRunsThatRetryThemselves(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		retries := []durable.WorkflowOption{durable.RetryRun(durable.Fixed(time.Millisecond, 2))}
		for _, c := range []struct {
			name        string
			parent, kid []durable.WorkflowOption
			undoes      []durable.StepOption
			want        string
			fails       bool
		}{
			{name: "the child", kid: retries, want: "before reserve charge charge"},
			{name: "the parent", parent: retries, undoes: []durable.StepOption{durable.Undoes("reserve")}, want: "before reserve charge undo reserve charge"},
			{name: "nobody knows what is undone", parent: retries, want: "before reserve charge undo", fails: true},
		} {
			x := &till{failures: 1, err: errClosed, undoes: c.undoes}
			kid := x.define(c.kid...)
			parent := durable.Define("parent", func(c *durable.Ctx, _ int) (string, error) {
				if err := c.Do("before", func(context.Context) error { x.note("before"); return nil }); err != nil {
					return "", err
				}
				return c.Child("kid", kid, 0)
			}, c.parent...)
			e := engineOn(t, s, parent, kid)
			stop := running(t, e)
			out, err := parent.Call(within(t), e, 0, durable.ID(c.name))
			if _, failed := errors.AsType[*durable.RunError](err); failed != c.fails || !failed && (out != "paid" || err != nil) {
				t.Errorf("%s: %q, %v", c.name, out, err)
			}
			if got := strings.Join(x.calls, " "); got != c.want {
				t.Errorf("%s: executed %s, want %s", c.name, got, c.want)
			}
			stop()
		}
	})
}

// A function that fails by itself is executed again after what is recorded.
func TestAFunctionThatFailsByItselfIsRetried(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var mu sync.Mutex
		calls := 0
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			n, err := c.Step("count", func(context.Context) (int, error) {
				mu.Lock()
				defer mu.Unlock()
				calls++
				return calls, nil
			})
			if err != nil {
				return 0, err
			}
			mu.Lock()
			defer mu.Unlock()
			if calls++; calls < 4 {
				panic("not yet")
			}
			return n, nil
		}, durable.RetryRun(durable.Exponential(time.Millisecond, time.Second, 5)))
		e := engineOn(t, s, w)
		running(t, e)
		if n, err := w.Call(within(t), e, 0); n != 1 || err != nil {
			t.Errorf("%d, %v", n, err)
		}
	})
}

// Nothing brings a retry forward: neither a signal, nor a child that ends, nor a resume. An operator does, with a Fork.
func TestARetryIsNotBroughtForward(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := &till{failures: 1, err: errClosed}
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("go") })
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			child, err := c.StartChild("kid", kid, 0)
			if err != nil {
				return "", err
			}
			if err := c.Do("charge", x.charge); err != nil {
				return "", err
			}
			word, err := c.Receive[string]("go")
			if err != nil {
				return "", err
			}
			other, err := child.Wait()
			return word + other, err
		}, durable.RetryRun(durable.Fixed(time.Hour, 3)))
		e := engineOn(t, s, w, kid)
		running(t, e)
		run := read(w.Start(within(t), e, 0, durable.ID("a")))(t)
		waitFor(t, func() bool { return len(read(e.Generations(within(t), "a"))(t)) == 2 })
		before := read(e.Get(within(t), "a"))(t)
		child := read(e.Tree(within(t), "a"))(t).Children[0]
		for _, wake := range []func() error{
			func() error { return e.Signal(within(t), "a", "go", "on") },
			func() error { return e.Signal(within(t), child.RunID, "go", "!") },
			func() error {
				must(t)(e.Pause(within(t), "a"))
				_, err := e.Resume(within(t), "a")
				return err
			},
		} {
			epoch := read(e.Get(within(t), "a"))(t).Epoch
			if err := wake(); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool {
				now := read(e.Get(within(t), "a"))(t)
				return now.Epoch > epoch && now.Status == durable.StatusWaiting && now.WakeAt.Equal(before.WakeAt)
			})
		}
		if n := len(read(e.Generations(within(t), "a"))(t)); n != 2 || len(x.keys) != 1 {
			t.Errorf("%d generations, %d attempts", n, len(x.keys))
		}
		if _, err := e.Fork(within(t), "a", durable.FromEnd()); err != nil {
			t.Fatal(err)
		}
		if out, err := run.Result(within(t)); out != "on!" || err != nil {
			t.Errorf("%q, %v", out, err)
		}
	})
}

// A pause that freezes timers moves the retry by its length.
func TestAFrozenRetry(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := &till{failures: 1, err: errClosed}
		w := x.define(durable.RetryRun(durable.Fixed(time.Hour, 3)))
		e := engineOn(t, s, w)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("a")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return len(read(e.Generations(within(t), "a"))(t)) == 2 })
		before := read(e.Get(within(t), "a"))(t)
		must(t)(e.Pause(within(t), "a"))
		must(t)(e.Resume(within(t), "a", durable.FreezeTimers()))
		waitFor(t, func() bool {
			now := read(e.Get(within(t), "a"))(t)
			return now.Epoch > before.Epoch && now.Status == durable.StatusWaiting && now.WakeAt.After(before.WakeAt)
		})
	})
}

// A retry executes all steps again whose failures have led to the failure of the run, and not one of them in each retry.
func TestARetryOfSeveralFailures(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(till)
		step := func(ctx context.Context) (int, error) { return 1, x.charge(ctx) }
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Step("s", step) })
		var begun atomic.Int32
		var all sync.WaitGroup
		all.Add(3)
		together := func(ctx context.Context, _ int) (int, error) { // all items have begun before the first one fails
			if begun.Add(1) <= 3 {
				all.Done()
				all.Wait()
			}
			return step(ctx)
		}
		failing := map[string]func(c *durable.Ctx) error{
			"items of a map": func(c *durable.Ctx) error {
				_, err := c.Map("items", []int{1, 2, 3}, together)
				return err
			},
			"all items of a map": func(c *durable.Ctx) error {
				_, err := c.Map("items", []int{1, 2, 3}, func(ctx context.Context, _ int) (int, error) { return step(ctx) }, durable.Collect())
				if err != nil {
					err = fmt.Errorf("some: %w", err)
				}
				return err
			},
			"branches": func(c *durable.Ctx) error {
				var all []*durable.Future[int]
				for i := range 3 {
					all = append(all, c.Go(fmt.Sprint(i), func(c *durable.Ctx) (int, error) { return c.Step("s", step) }))
				}
				_, err := durable.All(all...)
				return err
			},
			"children": func(c *durable.Ctx) error {
				var all []error
				for i := range 3 {
					_, err := c.Child(fmt.Sprint(i), kid, 0)
					all = append(all, err)
				}
				return errors.Join(all...)
			},
		}
		for name, fail := range failing {
			w := durable.Define(name, func(c *durable.Ctx, _ int) (string, error) {
				if err := c.Do("handled", func(context.Context) error { x.note("handled"); return errClosed }); err == nil {
					return "", errors.New("it did not fail")
				}
				if err := fail(c); err != nil {
					return "", err
				}
				return "done", nil
			})
			e := engineOn(t, s, w, kid)
			stop := running(t, e)
			x.failures, x.err, x.calls = 3, errClosed, nil
			if _, err := w.Start(within(t), e, 0, durable.ID(name)); err != nil {
				t.Fatal(err)
			}
			awaitStatus(t, e, name, durable.StatusFailed)
			if _, err := e.Retry(within(t), name); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			awaitStatus(t, e, name, durable.StatusCompleted)
			if got := strings.Join(x.calls, " "); got != "handled charge charge charge charge charge charge" {
				t.Errorf("%s: executed %s", name, got)
			}
			stop()
		}
	})
}
