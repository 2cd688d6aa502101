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

// countingTo returns a workflow that continues as new until its input is last. Each generation makes the same calls.
func countingTo(l *keyLedger, last int) *durable.Workflow[int, string] {
	return durable.Define("counting", func(c *durable.Ctx, n int) (string, error) {
		if err := l.do(c, "count", nil); err != nil {
			return "", err
		}
		if n < last {
			return "", fmt.Errorf("wrapped: %w", c.ContinueAsNew(n+1))
		}
		return fmt.Sprint("counted to ", n), nil
	})
}

// A run goes on with another input and an empty history, and its caller gets the last result.
func TestContinueAsNew(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		w := countingTo(&l, 3)
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(ctx, e, 1, durable.ID("c"), durable.Tag("team.owner", "a"), durable.Timeout(time.Hour)))(t)
		before := orFail(e.Get(ctx, "c"))(t)
		if got, err := run.Result(ctx); err != nil || got != "counted to 3" {
			t.Fatalf("the run ended with %q, %v", got, err)
		}
		l.want(t, "in three generations", "count", "count#2", "count#3")
		all := orFail(e.Generations(ctx, "c"))(t)
		if len(all) != 3 {
			t.Fatalf("the generations are %+v", all)
		}
		for i, g := range all {
			wantStatus, wantVerb := durable.StatusSuperseded, durable.VerbContinue
			if i == 2 {
				wantStatus = durable.StatusCompleted
			}
			if i == 0 {
				wantVerb = ""
			}
			if g.Number != i+1 || g.Status != wantStatus || g.Verb != wantVerb || string(g.Input) != fmt.Sprint(i+1) {
				t.Errorf("generation %d is %+v", i+1, g)
			}
			if h := orFail(e.History(ctx, "c", durable.InGeneration(i+1)))(t); len(h) != 1 || h[0].Name != "count" {
				t.Errorf("generation %d has %+v", i+1, h)
			}
		}
		info := orFail(e.Get(ctx, "c"))(t)
		if info.RunID != run.RunID() || info.Tags["team.owner"] != "a" || !info.Deadline.Equal(before.Deadline) || string(info.Input) != "3" {
			t.Errorf("the run was %+v and is %+v", before, info)
		}
		again := orFail(w.Start(ctx, e, 1, durable.ID("c")))(t)
		if again.RunID() != run.RunID() {
			t.Errorf("the same start made another run")
		}
		for _, later := range []int{2, 3} { // inputs of later generations
			if _, err := w.Start(ctx, e, later, durable.ID("c")); !errors.Is(err, durable.ErrIDConflict) {
				t.Errorf("a start with the input %d: %v", later, err)
			}
		}
		var events []string
		for event, err := range e.WatchEvents(ctx, "") {
			if events = append(events, fmt.Sprint(event.Type, event.Old, event.New)); err != nil || len(events) == 3 {
				break
			}
		}
		if !slices.Equal(events, []string{"continued12", "continued23", "completed"}) {
			t.Errorf("the events are %q", events)
		}
	})
}

// What a run cannot continue with is an error at the call.
func TestContinueAsNewIsRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return 0, nil })
		type other struct{ N int }
		var mu sync.Mutex
		refusals := make(map[string]error)
		w := durable.Define("refused", func(c *durable.Ctx, n int) (string, error) {
			note := func(what string, err error) {
				mu.Lock()
				defer mu.Unlock()
				refusals[what] = err
			}
			note("a text", c.ContinueAsNew("text"))
			note("a struct", c.ContinueAsNew(&other{1}))
			note("nil", c.ContinueAsNew(nil))
			_, err := c.Go("branch", func(c *durable.Ctx) (int, error) { return 0, c.ContinueAsNew(1) }).Wait()
			note("in a branch", err)
			note("in a step", c.Do("step", func(context.Context) error { return c.ContinueAsNew(1) }))
			child, err := c.StartChild("kid", kid, 0)
			if err != nil {
				return "", err
			}
			note("with a child", c.ContinueAsNew(1))
			if _, err := child.Wait(); err != nil {
				return "", err
			}
			note("with nothing open", c.ContinueAsNew(1))
			if err := c.Compensate("undo", func(context.Context) error { return nil }); err != nil {
				return "", err
			}
			note("with a compensation", c.ContinueAsNew(1))
			return "done", nil // without the error, the run ends
		})
		e := engineOn(t, s, w, kid)
		running(t, e)
		run := orFail(w.Start(ctx, e, 0, durable.ID("r")))(t)
		if got, err := run.Result(ctx); err != nil || got != "done" {
			t.Errorf("the run ended with %q, %v", got, err)
		}
		if n := len(orFail(e.Generations(ctx, "r"))(t)); n != 1 {
			t.Errorf("%d generations", n)
		}
		for _, want := range []struct {
			what string
			is   error
			text string
		}{
			{"a text", durable.ErrInvalidConfig, "type string, and that of the workflow of type int"},
			{"a struct", durable.ErrInvalidConfig, "type *durable_test.other"},
			{"nil", durable.ErrInvalidConfig, "<nil>"},
			{"in a branch", durable.ErrNestedStep, "await the branch"},
			{"in a step", durable.ErrNestedStep, "ContinueAsNew"},
			{"with a child", durable.ErrState, `child "kid"`},
			{"with nothing open", durable.ErrContinueAsNew, ""},
			{"with a compensation", durable.ErrState, `compensation "undo"`},
		} {
			if err := refusals[want.what]; !errors.Is(err, want.is) || !strings.Contains(err.Error(), want.text) {
				t.Errorf("%s: %v", want.what, err)
			}
		}
	})
}

// In a replay, ContinueAsNew sees the children that were started before it, and not those of later calls.
func TestContinueAsNewInAReplay(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var refused atomic.Int32
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		w := durable.Define("replayed", func(c *durable.Ctx, _ int) (int, error) {
			if err := c.ContinueAsNew(1); errors.Is(err, durable.ErrState) {
				refused.Add(1)
			}
			return c.Child("kid", kid, 0)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, kid}, ParkAfter: time.Nanosecond})
		running(t, e)
		run := orFail(w.Start(ctx, e, 0, durable.ID("r")))(t)
		for orFail(e.Get(ctx, "r"))(t).Status != durable.StatusWaiting {
		}
		tree := orFail(e.Tree(ctx, "r"))(t)
		if err := e.Signal(ctx, tree.Children[0].RunID, "go", 7); err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(ctx); err != nil || got != 7 || refused.Load() != 0 {
			t.Errorf("the run ended with %d, %v, and was refused %d times", got, err, refused.Load())
		}
	})
}

// Errors that were joined with that of ContinueAsNew are not lost: the run fails with them.
func TestContinueAsNewJoinedWithAFailure(t *testing.T) {
	_, err := durableCall(t, 0, func(c *durable.Ctx, n int) (int, error) {
		if n > 0 {
			return n, nil
		}
		return 0, errors.Join(errDeclined, c.ContinueAsNew(1))
	})
	if !errors.Is(err, errDeclined) {
		t.Errorf("the run ended with %v", err)
	}
}

// A child that begins after the call of ContinueAsNew makes the run fail: it would be lost.
func TestAChildAfterContinueAsNew(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return 0, c.Sleep("long", time.Hour) })
		w := durable.Define("late", func(c *durable.Ctx, _ int) (int, error) {
			next := c.ContinueAsNew(1)
			if _, err := c.StartChild("kid", kid, 0); err != nil {
				return 0, err
			}
			return 0, next
		})
		e := engineOn(t, s, w, kid)
		running(t, e)
		_, err := orFail(w.Start(ctx, e, 0, durable.ID("late")))(t).Result(ctx)
		if err == nil || !strings.Contains(err.Error(), `child "kid"`) {
			t.Errorf("the run ended with %v", err)
		}
	})
}

// A parent gets the result of its child's last generation, and Detached children outlive the generation that started them.
func TestContinueAsNewWithParentsAndChildren(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var ended atomic.Int32
		leaf := durable.Define("leaf", func(c *durable.Ctx, n int) (int, error) {
			if err := c.Sleep("a while", time.Millisecond); err != nil {
				return 0, err
			}
			ended.Add(1)
			return n, nil
		})
		middle := durable.Define("middle", func(c *durable.Ctx, n int) (int, error) {
			got, err := c.Child("leaf", leaf, n)
			if err != nil {
				return 0, err
			}
			if _, err := c.StartChild("detached", leaf, 0, durable.Detached()); err != nil {
				return 0, err
			}
			if n < 3 {
				return 0, c.ContinueAsNew(n + 1)
			}
			return 10 * got, nil
		})
		root := durable.Define("root", func(c *durable.Ctx, _ int) (int, error) { return c.Child("middle", middle, 1) })
		e := engineOn(t, s, root, middle, leaf)
		running(t, e)
		if got, err := orFail(root.Start(ctx, e, 0, durable.ID("r")))(t).Result(ctx); err != nil || got != 30 {
			t.Fatalf("the root ended with %d, %v", got, err)
		}
		for e := range e.WatchEvents(ctx, "") {
			if e.Type == durable.EventCancelled {
				t.Errorf("child %q was cancelled", e.Name)
			}
			if ended.Load() == 6 {
				return
			}
		}
	})
}

// Signals that were not received stay, and a key counts once for all generations. A retry of the newest generation releases only
// what that generation has received.
func TestContinueAsNewKeepsSignals(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		w := durable.Define("entity", func(c *durable.Ctx, seen []int) ([]int, error) {
			n, err := c.Receive[int]("next")
			if err != nil {
				return nil, err
			}
			if seen = append(seen, n); len(seen) < 3 {
				return nil, c.ContinueAsNew(seen)
			}
			return seen, c.Do("last", func(context.Context) error { return bank.err() })
		})
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(ctx, e, nil, durable.ID("entity")))(t)
		for _, n := range []int{1, 2, 1, 3} {
			if err := e.Signal(ctx, "entity", "next", n, durable.SignalKey(fmt.Sprint(n))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := run.Result(ctx); !errors.Is(err, errDeclined) {
			t.Fatalf("the run ended with %v", err)
		}
		bank.fixed.Store(true)
		made := orFail(e.Retry(ctx, "entity", durable.From("next")))(t)
		if made.Generation != 4 {
			t.Errorf("the retry is %+v", made)
		}
		if got, err := run.Result(ctx); err != nil || !slices.Equal(got, []int{1, 2, 3}) {
			t.Errorf("the run ended with %v, %v", got, err)
		}
	})
}

// A cancel and a pause that come while the function returns its next input take effect, and a timeout is for all generations.
func TestContinueAsNewAgainstControl(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		inside, release := make(chan struct{}), make(chan struct{})
		w := durable.Define("controlled", func(c *durable.Ctx, n int) (int, error) {
			next := c.ContinueAsNew(n + 1)
			if n == 2 {
				inside <- struct{}{}
				<-release
			}
			if n == 4 {
				return n, nil
			}
			return 0, next
		})
		e := engineOn(t, s, w)
		running(t, e)
		cancelled := orFail(w.Start(ctx, e, 1, durable.ID("cancelled")))(t)
		<-inside
		orFail(e.Cancel(ctx, "cancelled"))(t)
		release <- struct{}{}
		if _, err := cancelled.Result(ctx); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the cancelled run ended with %v", err)
		}
		if n := len(orFail(e.Generations(ctx, "cancelled"))(t)); n != 2 {
			t.Errorf("the cancelled run has %d generations", n)
		}
		paused := orFail(w.Start(ctx, e, 1, durable.ID("paused")))(t)
		<-inside
		orFail(e.Pause(ctx, "paused"))(t)
		release <- struct{}{}
		for orFail(e.Get(ctx, "paused"))(t).Status != durable.StatusPaused {
		}
		if n := len(orFail(e.Generations(ctx, "paused"))(t)); n != 2 {
			t.Errorf("the paused run has %d generations", n)
		}
		orFail(e.Resume(ctx, "paused"))(t)
		<-inside
		release <- struct{}{}
		if got, err := paused.Result(ctx); err != nil || got != 4 {
			t.Errorf("the resumed run ended with %d, %v", got, err)
		}
	})
}

func TestTimeoutIsForAllGenerations(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("endless", func(c *durable.Ctx, n int) (int, error) {
			if err := c.Do("work", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return 0, c.ContinueAsNew(n + 1)
		})
		e := engineOn(t, s, w)
		running(t, e)
		run := orFail(w.Start(ctx, e, 1, durable.ID("endless"), durable.Timeout(200*time.Millisecond)))(t)
		if _, err := run.Result(ctx); !errors.Is(err, durable.ErrTimeout) {
			t.Errorf("the run ended with %v", err)
		}
	})
}

// A worker that stops gives the next generation to another one.
func TestContinueAsNewInAnotherProcess(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var reached atomic.Int32
		w := durable.Define("long", func(c *durable.Ctx, n int) (int, error) {
			if err := c.Do("work", func(context.Context) error { reached.Store(int32(n)); return nil }); err != nil {
				return 0, err
			}
			if n < 60 {
				return 0, c.ContinueAsNew(n + 1)
			}
			return n, nil
		})
		first := engineOn(t, s, w)
		stop := running(t, first)
		run := orFail(w.Start(ctx, first, 1, durable.ID("long")))(t)
		for reached.Load() < 20 {
			if ctx.Err() != nil {
				t.Fatal("the run does not go on")
			}
		}
		stop()
		second := engineOn(t, s, w)
		running(t, second)
		if got, err := orFail(w.Handle(ctx, second, "long"))(t).Result(ctx); err != nil || got != 60 {
			t.Errorf("the run ended with %d, %v", got, err)
		}
		all := orFail(second.Generations(ctx, run.ID()))(t)
		if len(all) != 60 || all[59].Number != 60 {
			t.Errorf("there are %d generations", len(all))
		}
	})
}
