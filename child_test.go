package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// A tree of children is executed by two engines, while the parents are not in memory.
func TestChildren(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var leaves atomic.Int32
		leaf := durable.Define("leaf", func(c *durable.Ctx, n int) (int, error) {
			return c.Step("square", func(context.Context) (int, error) { leaves.Add(1); return n * n, nil })
		})
		var tree *durable.Workflow[int, int]
		tree = durable.Define("tree", func(c *durable.Ctx, depth int) (int, error) {
			if depth == 0 {
				return c.Child("leaf", leaf, 3)
			}
			left, err := c.StartChild("left", tree, depth-1)
			if err != nil {
				return 0, err
			}
			right, err := c.Child("right", tree, depth-1)
			if err != nil {
				return 0, err
			}
			n, err := left.Wait()
			if again, _ := left.Wait(); again != n {
				return 0, fmt.Errorf("the second wait returned %d, the first %d", again, n)
			}
			return n + right, err
		})
		a, b := engineOn(t, s, tree, leaf), engineWith(t, s, durable.Config{Workflows: []durable.Definition{leaf, tree}, Concurrency: 2})
		running(t, a)
		running(t, b)
		run, err := tree.Start(within(t), b, 4, durable.ID("root"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(within(t)); got != 16*9 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		if leaves.Load() != 16 {
			t.Errorf("%d leaves ran", leaves.Load())
		}
		counts, err := a.TreeCounts(within(t), "root")
		if err != nil || counts.Statuses[durable.StatusCompleted] != 31+16 || len(counts.Statuses) != 1 {
			t.Errorf("counts %v, %v", counts, err)
		}
		root, err := a.Tree(within(t), "root")
		if err != nil || len(root.Children) != 2 || root.Children[0].Parent != root.RunID || len(root.Children[1].Children[0].Children) != 2 {
			t.Errorf("tree %+v, %v", root, err)
		}
	})
}

func TestChildFailures(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		child := durable.Define("child", func(c *durable.Ctx, fail bool) (int, error) {
			if fail {
				return 0, c.Do("pay", func(context.Context) error { return errDeclined })
			}
			return c.Receive[int]("never")
		})
		var inner atomic.Value
		parent := durable.Define("parent", func(c *durable.Ctx, fail bool) (string, error) {
			_, err := c.Child("child", child, fail)
			if errors.Is(err, durable.ErrSuspended) {
				return "", err
			}
			var failed *durable.RunError
			if !errors.As(err, &failed) {
				return "", fmt.Errorf("no RunError: %w", err)
			}
			inner.Store(failed.ID)
			return fmt.Sprint(failed.Workflow, " ", failed.Status, " ", errors.Is(err, errDeclined), errors.Is(err, durable.ErrCancelled)), nil
		})
		e := engineOn(t, s, parent, child)
		running(t, e)
		run, err := parent.Start(within(t), e, true, durable.ID("fails"))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := run.Result(within(t)); got != "child failed true false" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		info, err := e.Get(within(t), inner.Load().(string))
		if err != nil || info.Parent != run.RunID() || info.ID != info.RunID || info.Name != "child" {
			t.Errorf("the child's ID leads to %+v, %v", info, err)
		}

		run, err = parent.Start(within(t), e, false, durable.ID("waits"))
		if err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "waits", durable.StatusWaiting)
		root, err := e.Tree(within(t), "waits")
		if err != nil || len(root.Children) != 1 {
			t.Fatalf("%+v, %v", root, err)
		}
		must(t)(e.Cancel(within(t), root.Children[0].RunID))
		if got, err := run.Result(within(t)); got != "child cancelled false true" || err != nil {
			t.Errorf("got %q, %v", got, err)
		}
		_, err = durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) { return c.Child("c", child, true, durable.ID("own")) })
		if !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a child with an ID: %v", err)
		}
	})
}

// The end of a parent cancels its children, except detached ones. A replay finds the children, and starts none twice.
func TestParentEnds(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		g := newGate()
		child := durable.Define("child", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		parent := durable.Define("parent", func(c *durable.Ctx, _ int) (int, error) {
			if _, err := c.StartChild("left behind", child, 0); err != nil {
				return 0, err
			}
			if _, err := c.StartChild("goes on", child, 0, durable.Detached()); err != nil {
				return 0, err
			}
			return 1, c.Do("hold", g.pass)
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{parent, child}, Grace: -1})
		stop := running(t, e)
		run, err := parent.Start(within(t), e, 0, durable.ID("p"))
		if err != nil {
			t.Fatal(err)
		}
		<-g.entered
		stop()
		close(g.open)
		running(t, engineOn(t, s, parent, child))
		if _, err := run.Result(within(t)); err != nil {
			t.Fatal(err)
		}
		root, err := e.Tree(within(t), "p")
		if err != nil || len(root.Children) != 2 {
			t.Fatalf("%+v, %v", root, err)
		}
		awaitStatus(t, e, root.Children[0].RunID, durable.StatusCancelled)
		signal(t, e, root.Children[1].RunID, "go", 1)
		awaitStatus(t, e, root.Children[1].RunID, durable.StatusCompleted)
	})
}

// Pause, resume and cancel apply to the whole tree. A resume of the parent does not resume a child that was paused by a call of
// its own.
func TestControlOfATree(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("go") })
		middle := durable.Define("middle", func(c *durable.Ctx, _ int) (int, error) { return c.Child("leaf", leaf, 0) })
		root := durable.Define("root", func(c *durable.Ctx, _ int) (int, error) {
			a := c.Go("a", func(c *durable.Ctx) (int, error) { return c.Child("middle", middle, 0) })
			b := c.Go("b", func(c *durable.Ctx) (int, error) { return c.Child("middle", middle, 0) })
			got, err := durable.All(a, b)
			if err != nil {
				return 0, err
			}
			return got[0] + got[1], nil
		})
		e := engineOn(t, s, root, middle, leaf)
		running(t, e)
		for _, id := range []string{"one", "two"} {
			if _, err := root.Start(within(t), e, 0, durable.ID(id)); err != nil {
				t.Fatal(err)
			}
		}
		counts := func(id string, want map[durable.Status]int) {
			t.Helper()
			for ctx := within(t); ; {
				got, err := e.TreeCounts(ctx, id)
				if err != nil {
					t.Fatalf("the tree of %s: %v, want %v, last %v", id, err, want, got)
				}
				if fmt.Sprint(got.Statuses) == fmt.Sprint(want) {
					return
				}
			}
		}
		counts("one", map[durable.Status]int{durable.StatusWaiting: 5})
		counts("two", map[durable.Status]int{durable.StatusWaiting: 5})
		tree, err := e.Tree(within(t), "one")
		if err != nil {
			t.Fatal(err)
		}
		a, b := tree.Children[0], tree.Children[1]
		if got := must(t)(e.Pause(within(t), a.RunID)); got.Done != 2 {
			t.Errorf("pause of a branch: %+v", got)
		}
		if got := must(t)(e.Pause(within(t), "one")); got.Done != 4 {
			t.Errorf("pause of the tree: %+v", got)
		}
		counts("one", map[durable.Status]int{durable.StatusPaused: 5})
		if _, err := e.Resume(within(t), b.RunID); !errors.Is(err, durable.ErrState) {
			t.Errorf("resume of a run that is paused with its parent: %v", err)
		}
		if got := must(t)(e.Resume(within(t), "one")); got.Done != 3 {
			t.Errorf("resume of the tree: %+v", got)
		}
		counts("one", map[durable.Status]int{durable.StatusWaiting: 3, durable.StatusPaused: 2})
		must(t)(e.Resume(within(t), a.RunID))
		counts("one", map[durable.Status]int{durable.StatusWaiting: 5})
		signal(t, e, a.Children[0].RunID, "go", 1)
		signal(t, e, b.Children[0].RunID, "go", 2)
		counts("one", map[durable.Status]int{durable.StatusCompleted: 5})

		must(t)(e.Cancel(within(t), "two"))
		counts("two", map[durable.Status]int{durable.StatusCancelled: 5})
	})
}

// A run that only waits leaves memory, and a run with a Delay begins later.
func TestDelay(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (time.Time, error) {
			return c.Step("now", func(context.Context) (time.Time, error) { return time.Now(), nil })
		})
		e := engineOn(t, s, w)
		running(t, e)
		began := time.Now()
		run, err := w.Start(within(t), e, 0, durable.Delay(200*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		if at, err := run.Result(within(t)); err != nil || at.Sub(began) < 199*time.Millisecond {
			t.Errorf("it began after %v, %v", at.Sub(began), err)
		}
	})
}

// CancelLosers cancels the branches that did not win.
func TestCancelLosers(t *testing.T) {
	got, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (string, error) {
		var seen error
		slow := c.Go("slow", func(c *durable.Ctx) (string, error) {
			err := c.Do("hang", func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) })
			seen = err
			return "slow", err
		})
		quick := c.Go("quick", func(*durable.Ctx) (string, error) { return "quick", nil })
		_, winner, err := durable.Any(c, "first", durable.CancelLosers, slow, quick)
		if err != nil {
			return "", err
		}
		_, _ = slow.Wait()
		return fmt.Sprint(winner, " ", errors.Is(seen, durable.ErrCancelled)), nil
	})
	if got != "quick true" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

// If pauses and resumes come while children are being started, every child is started exactly once.
func TestPauseWhileChildrenStart(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		const n = 30
		var ran atomic.Int32
		child := durable.Define("child", func(c *durable.Ctx, i int) (int, error) {
			return c.Step("once", func(context.Context) (int, error) { ran.Add(1); return i, nil })
		})
		parent := durable.Define("parent", func(c *durable.Ctx, _ int) (sum int, err error) {
			children := make([]*durable.Child[int], n)
			for i := range children {
				if children[i], err = c.StartChild(fmt.Sprint(i), child, i); err != nil {
					return 0, err
				}
			}
			for _, h := range children {
				i, err := h.Wait()
				if err != nil {
					return 0, err
				}
				sum += i
			}
			return sum, nil
		})
		e, other := engineOn(t, s, parent, child), engineOn(t, s)
		running(t, e)
		run, err := parent.Start(within(t), e, 0, durable.ID("p"))
		if err != nil {
			t.Fatal(err)
		}
		pauses := 0
		for {
			if _, err := other.Pause(within(t), "p"); errors.Is(err, durable.ErrState) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			pauses++
			if _, err := other.Resume(within(t), "p"); errors.Is(err, durable.ErrState) {
				break // the run was about to complete when the pause was requested
			} else if err != nil {
				t.Fatal(err)
			}
			if pauses > 20 {
				break // gives the run time to continue
			}
		}
		if sum, err := run.Result(within(t)); sum != n*(n-1)/2 || err != nil {
			t.Errorf("got %d, %v", sum, err)
		}
		if ran.Load() != n {
			t.Errorf("%d steps of children ran, want %d; %d pauses", ran.Load(), n, pauses)
		}
	})
}

// The workflow function can use the handle of a child that a branch started.
func TestChildHandleOfABranch(t *testing.T) {
	s := openStore(t)
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) { return 2 * n, c.Sleep("s", 50*time.Millisecond) })
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		started := c.Go("b", func(c *durable.Ctx) (*durable.Child[int], error) { return c.StartChild("c", child, 21) })
		h, err := started.Wait()
		if err != nil {
			return 0, err
		}
		return h.Wait()
	})
	e := engineOn(t, s, w, child)
	if got, err := w.Call(within(t), e, 0, durable.ID("a")); got != 42 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
}

// strayStart is a store that withholds the start of a child until the test releases it.
type strayStart struct {
	durable.Store
	gate
}

func (s *strayStart) Commit(ctx context.Context, b *store.Batch) error {
	if slices.ContainsFunc(b.Starts, func(w *store.StartWrite) bool { return w.Run.Workflow == "kid" }) {
		if err := s.pass(ctx); err != nil {
			return err
		}
	}
	return s.Store.Commit(ctx, b)
}

// A child that a goroutine of the user's own starts while its parent's function returns ends with its parent.
func TestStrayChildEndsWithItsParent(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		h := &strayStart{s, newGate()}
		kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
		stray := make(chan error, 1)
		var id atomic.Value
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			go func() {
				k, err := c.StartChild("kid", kid, 1)
				if err == nil {
					id.Store(k.ID())
				}
				stray <- err
			}()
			<-h.entered
			return 1, nil
		})
		e := engineOn(t, h, w, kid)
		running(t, e)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if _, err := run.Result(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the run ended beside the start of its child: %v", err)
		}
		close(h.open)
		if _, err := run.Result(within(t)); err != nil {
			t.Fatal(err)
		}
		if err := <-stray; err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, id.Load().(string), durable.StatusCancelled)
	})
}
