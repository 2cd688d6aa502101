package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// steps makes steps in order, and counts which of them it executes.
func (x *stepCounts) steps(names ...string) func(c *durable.Ctx) error {
	return func(c *durable.Ctx) error {
		for _, name := range names {
			if err := c.Do(name, func(context.Context) error { x.add(name); return nil }); err != nil {
				return err
			}
		}
		return nil
	}
}

type stepCounts struct {
	mu sync.Mutex
	of map[string]int
}

func (x *stepCounts) add(name string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.of == nil {
		x.of = make(map[string]int)
	}
	x.of[name]++
}

func (x *stepCounts) String() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return fmt.Sprint(x.of)
}

// waits is a workflow that waits for the signal "go" between two parts.
func waits(before, after func(c *durable.Ctx) error, opts ...durable.WorkflowOption) *durable.Workflow[int, string] {
	return durable.Define("waits", func(c *durable.Ctx, _ int) (string, error) {
		if err := before(c); err != nil {
			return "", err
		}
		if _, err := c.Receive[int]("go"); err != nil {
			return "", err
		}
		return "done", after(c)
	}, opts...)
}

// afterChange executes a run with one workflow until it waits, and then with the other one. It returns once the run has
// ended or is held.
func afterChange(t *testing.T, s durable.Store, before, after durable.Definition) *durable.RunInfo {
	t.Helper()
	stop := atVersion(t, s, "v1", before)
	client := engineOn(t, s)
	if _, err := before.(*durable.Workflow[int, string]).Start(within(t), client, 0, durable.ID("run")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, client, "run", durable.StatusWaiting)
	stop()
	if err := client.Signal(within(t), "run", "go", 1); err != nil {
		t.Fatal(err)
	}
	atVersion(t, s, "v2", after)
	var info *durable.RunInfo
	waitFor(t, func() bool {
		info = read(client.Get(within(t), "run"))(t)
		return info.Diverged || info.Status == durable.StatusCompleted || info.Status == durable.StatusFailed
	})
	return info
}

// A call that is about to be executed while the history holds calls that the code has not made holds the run before anything is
// executed. What the definition says about the change lets it go on.
func TestRenamedRemovedAndMovedCalls(t *testing.T) {
	var none func(c *durable.Ctx) error = func(*durable.Ctx) error { return nil }
	for name, test := range map[string]struct {
		before, after []string
		opts          []durable.WorkflowOption
		holds         string // what the reason names; empty: the run completes
		executed      string
	}{
		"no change":              {before: []string{"a", "b"}, after: []string{"a", "b"}, executed: "map[a:1 b:1]"},
		"renamed":                {before: []string{"a", "b"}, after: []string{"a", "c"}, holds: `"c"`, executed: "map[a:1 b:1]"},
		"renamed, declared":      {before: []string{"a", "b"}, after: []string{"a", "c"}, opts: []durable.WorkflowOption{durable.Renamed("b", "c")}, executed: "map[a:1 b:1]"},
		"renamed twice":          {before: []string{"a"}, after: []string{"c"}, opts: []durable.WorkflowOption{durable.Renamed("a", "b"), durable.Renamed("b", "c")}, executed: "map[a:1]"},
		"removed":                {before: []string{"a", "b"}, after: []string{"a"}, holds: `"b"`, executed: "map[a:1 b:1]"},
		"removed, declared":      {before: []string{"a", "b"}, after: []string{"a"}, opts: []durable.WorkflowOption{durable.Retired("b")}, executed: "map[a:1 b:1]"},
		"new before a recorded":  {before: []string{"a"}, after: []string{"n", "a"}, holds: `"n"`, executed: "map[a:1]"},
		"the order of recorded":  {before: []string{"a", "b"}, after: []string{"b", "a"}, executed: "map[a:1 b:1]"},
		"renamed, and continues": {before: []string{"a"}, after: []string{"c"}, opts: []durable.WorkflowOption{durable.OnDrift(durable.DriftContinues)}, executed: "map[a:1 c:1]"},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				info := afterChange(t, s, waits(x.steps(test.before...), none), waits(x.steps(test.after...), none, test.opts...))
				if info.Diverged != (test.holds != "") || !strings.Contains(info.Reason, test.holds) || !info.Diverged && info.Status != durable.StatusCompleted {
					t.Errorf("it is %s, diverged %t: %s", info.Status, info.Diverged, info.Reason)
				}
				if x.String() != test.executed {
					t.Errorf("executed %s, want %s", x, test.executed)
				}
			})
		})
	}
}

// With DriftFails the call returns the error, so that the run fails.
func TestDriftFails(t *testing.T) {
	x := new(stepCounts)
	none := func(*durable.Ctx) error { return nil }
	info := afterChange(t, openStore(t), waits(x.steps("a"), none), waits(x.steps("b"), none, durable.OnDrift(durable.DriftFails)))
	if info.Status != durable.StatusFailed || !errors.Is(info.Err, durable.ErrDiverged) || x.String() != "map[a:1]" {
		t.Errorf("it is %s, %v, executed %s", info.Status, info.Err, x)
	}
}

// A branch has calls of its own, which are judged like those of the function.
func TestRenamedCallInABranch(t *testing.T) {
	branch := func(x *stepCounts, names ...string) func(c *durable.Ctx) error {
		return func(c *durable.Ctx) error {
			_, err := c.Go("side", func(c *durable.Ctx) (int, error) { return 0, x.steps(names...)(c) }).Wait()
			return err
		}
	}
	x := new(stepCounts)
	none := func(*durable.Ctx) error { return nil }
	info := afterChange(t, openStore(t), waits(branch(x, "a", "b"), none), waits(branch(x, "a", "c"), none))
	if !info.Diverged || x.String() != "map[a:1 b:1]" {
		t.Errorf("it is %s, diverged %t, executed %s", info.Status, info.Diverged, x)
	}
}

// Programs whose goroutines are scheduled differently in each execution are never held.
func TestDriftNeverHoldsGoroutines(t *testing.T) {
	w := durable.Define("fan", func(c *durable.Ctx, n int) (string, error) {
		x := new(stepCounts)
		var all sync.WaitGroup
		for i := range 4 {
			all.Go(func() { _ = x.steps(fmt.Sprint("plain ", i), fmt.Sprint("then ", i))(c) })
		}
		side := c.Go("side", func(c *durable.Ctx) (int, error) {
			inner := c.Go("inner", func(c *durable.Ctx) (int, error) { return 0, x.steps("a", "b")(c) })
			err := x.steps("own", "own 2")(c)
			_, err2 := inner.Wait()
			return 0, errors.Join(err, err2)
		})
		if err := x.steps("main", "main 2")(c); err != nil {
			return "", err
		}
		all.Wait()
		_, err := side.Wait()
		if err != nil {
			return "", err
		}
		return "done", x.steps("last")(c)
	})
	durabletest.CrashEverywhere(t, w, 1)
}

// A run that has passed the place of a patch keeps the old path, also when its history has grown; any other run takes the new one.
func TestPatched(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		var takes atomic.Int32
		patched := func(next string) func(c *durable.Ctx) error {
			return func(c *durable.Ctx) error {
				for range 2 { // both calls return the same
					yes, err := c.Patched("check")
					if err != nil {
						return err
					}
					if yes {
						takes.Add(1)
					}
				}
				yes, err := c.Patched("check")
				if err == nil && yes {
					err = x.steps("check " + next)(c)
				}
				return err
			}
		}
		in := func(all ...func(c *durable.Ctx) error) func(c *durable.Ctx) error {
			return func(c *durable.Ctx) error {
				for _, f := range all {
					if err := f(c); err != nil {
						return err
					}
				}
				return nil
			}
		}
		old := waits(x.steps("a", "b"), x.steps("c"))
		passed := waits(in(x.steps("a"), patched("early"), x.steps("b")), x.steps("c"))
		info := afterChange(t, s, old, passed)
		if info.Status != durable.StatusCompleted || takes.Load() != 0 || x.String() != "map[a:1 b:1 c:1]" {
			t.Errorf("passed: %s %s, takes %d, executed %s", info.Status, info.Reason, takes.Load(), x)
		}
	})
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		late := func(c *durable.Ctx) error {
			yes, err := c.Patched("check")
			if err == nil && yes {
				err = x.steps("check")(c)
			}
			if err == nil {
				err = x.steps("b")(c)
			}
			return err
		}
		info := afterChange(t, s, waits(x.steps("a"), x.steps("b")), waits(x.steps("a"), late))
		if info.Status != durable.StatusCompleted || x.String() != "map[a:1 b:1 check:1]" {
			t.Errorf("not passed: %s %s, executed %s", info.Status, info.Reason, x)
		}
	})
}

// What a function did after a failure is no longer called when a repair lets the failed call succeed. That is no drift.
func TestDriftDoesNotHoldRepairedRuns(t *testing.T) {
	for name, repair := range map[string]func(e *durable.Engine) error{
		"retry": func(e *durable.Engine) error { _, err := e.Retry(within(t), "run"); return err },
		"skip":  func(e *durable.Engine) error { _, err := e.Skip(within(t), "run", "pay", 7); return err },
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				var open atomic.Bool
				w := durable.Define("shop", func(c *durable.Ctx, _ int) (string, error) {
					if err := x.steps("a")(c); err != nil {
						return "", err
					}
					_, err := c.Step("pay", func(context.Context) (int, error) {
						if !open.Load() {
							return 0, errDeclined
						}
						return 1, nil
					})
					if err != nil {
						return "", errors.Join(x.steps("notify", "notify 2")(c), err)
					}
					return "paid", x.steps("ship")(c)
				})
				e := engineOn(t, s, w)
				if _, err := w.Call(within(t), e, 0, durable.ID("run")); !errors.Is(err, errDeclined) {
					t.Fatal(err)
				}
				open.Store(true)
				if err := repair(e); err != nil {
					t.Fatal(err)
				}
				if out, err := w.Call(within(t), e, 0, durable.ID("run")); out != "paid" || err != nil {
					t.Errorf("%q, %v: %s", out, err, read(e.Get(within(t), "run"))(t).Reason)
				}
			})
		})
	}
}
