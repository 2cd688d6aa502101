package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// A failed child is retried beneath its parent, and so is its own failed child. The parent gets the new result.
func TestRetryReachesFailedChildren(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		var bank fixable
		leaf := durable.Define("leaf", func(c *durable.Ctx, _ string) (string, error) {
			if err := l.do(c, "prepare", nil); err != nil {
				return "", err
			}
			return "paid", l.do(c, "pay", bank.err())
		})
		middle := durable.Define("middle", func(c *durable.Ctx, _ string) (string, error) { return c.Child("leaf", leaf, "") })
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) {
			if err := l.do(c, "begin", nil); err != nil {
				return "", err
			}
			return c.Child("middle", middle, "")
		})
		e := engineOn(t, s, root, middle, leaf)
		running(t, e)
		wantFailed(t, orFail(root.Start(ctx, e, "", durable.ID("r")))(t))
		l.want(t, "at first", "begin", "prepare", "pay")
		before := orFail(e.Tree(ctx, "r"))(t)
		child := before.Children[0].RunID
		var refused *durable.StateError
		if _, err := e.Retry(ctx, child); !errors.As(err, &refused) {
			t.Errorf("a retry of a child whose parent has recorded its end: %v", err)
		}
		bank.fixed.Store(true)
		made := orFail(e.Retry(ctx, "r"))(t)
		if len(made.Children) != 1 || made.Children[0].RunID != child || len(made.Children[0].Children) != 1 || !slices.Equal(made.Children[0].Children[0].Dropped, []string{"pay"}) {
			t.Errorf("the retry did %+v", made)
		}
		wantResult(t, root, e, "r", "paid")
		l.want(t, "in the retry", "pay")
		after := orFail(e.Tree(ctx, "r"))(t)
		if len(after.Children) != 1 || after.Children[0].RunID != child || after.Children[0].Children[0].RunID != before.Children[0].Children[0].RunID {
			t.Errorf("the tree was %+v and is %+v", before, after)
		}
		if n := len(orFail(e.Generations(ctx, child))(t)); n != 2 {
			t.Errorf("the child has %d generations", n)
		}
	})
}

// A retry tells which runs it retried as a tree: two children that failed together stand side by side.
func TestRetryShowsSiblingsSideBySide(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		kid := durable.Define("kid", func(c *durable.Ctx, _ string) (string, error) {
			return "", c.Do("pay", func(context.Context) error { return errDeclined })
		})
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) {
			_, err := durable.All(
				c.Go("left", func(c *durable.Ctx) (string, error) { return c.Child("kid", kid, "") }),
				c.Go("right", func(c *durable.Ctx) (string, error) { return c.Child("kid", kid, "") }))
			return "", err
		})
		e := engineOn(t, s, root, kid)
		running(t, e)
		if _, err := orFail(root.Start(ctx, e, "", durable.ID("r")))(t).Result(ctx); !errors.Is(err, errDeclined) {
			t.Fatal(err)
		}
		if made := orFail(e.Retry(ctx, "r", durable.DryRun()))(t); len(made.Children) != 2 || len(made.Children[0].Children)+len(made.Children[1].Children) != 0 {
			t.Errorf("the retry would do %+v", made)
		}
	})
}

// A child that was cancelled because its parent failed is started again by the next generation, as another run.
func TestRetryStartsCancelledChildrenAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		waits := durable.Define("waits", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("go") })
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) {
			kid, err := c.StartChild("kid", waits, "")
			if err != nil {
				return "", err
			}
			if err := c.Do("charge", func(context.Context) error { return bank.err() }); err != nil {
				return "", err
			}
			return kid.Wait()
		})
		e := engineOn(t, s, root, waits)
		running(t, e)
		wantFailed(t, orFail(root.Start(ctx, e, "", durable.ID("r")))(t))
		old := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		awaitStatus(t, e, old, durable.StatusCancelled)
		bank.fixed.Store(true)
		made := orFail(e.Retry(ctx, "r"))(t)
		if !slices.Equal(made.Dropped, []string{"kid", "charge"}) {
			t.Errorf("the retry did %+v", made)
		}
		awaitStatus(t, e, "r", durable.StatusWaiting)
		kids := orFail(e.Tree(ctx, "r"))(t).Children
		if len(kids) != 2 || kids[0].RunID != old || kids[0].ParentGeneration != 1 || kids[1].ParentGeneration != 0 {
			t.Fatalf("the children are %+v, and the former was %s", kids, old)
		}
		if err := e.Signal(ctx, kids[1].RunID, "go", "gone"); err != nil {
			t.Fatal(err)
		}
		wantResult(t, root, e, "r", "gone")
		if info := orFail(e.Get(ctx, old))(t); info.Status != durable.StatusCancelled || info.Parent != made.RunID || info.ParentGeneration != 1 {
			t.Errorf("the former child is %+v", info)
		}
	})
}

// A failure that decided a choice is retried, and the branch that it ended goes on.
func TestRetryMakesADecidedChoiceAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		var bank fixable
		w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
			left := c.Go("left", func(c *durable.Ctx) (string, error) { return "left", l.do(c, "charge", bank.err()) })
			right := c.Go("right", func(c *durable.Ctx) (string, error) { return c.Receive[string]("go") })
			both, err := durable.AllOrCancel(c, "both", left, right)
			if err != nil {
				return "", err
			}
			return both[0] + " " + both[1], nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		wantFailed(t, orFail(w.Start(ctx, e, "", durable.ID("r")))(t))
		bank.fixed.Store(true)
		made := orFail(e.Retry(ctx, "r"))(t)
		if !slices.Contains(made.Dropped, "both") || !slices.Contains(made.Dropped, "left/charge") {
			t.Errorf("the retry did %+v", made)
		}
		if err := e.Signal(ctx, "r", "go", "right"); err != nil {
			t.Fatal(err)
		}
		wantResult(t, w, e, "r", "left right")
	})
}

// A retry of a compensated run executes what was undone again with new keys, if the code says what that is.
func TestRetryOfACompensatedRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var l keyLedger
		var ship fixable
		w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) {
			var opts []durable.StepOption
			if in == "known" {
				opts = append(opts, durable.Undoes("charge"))
			}
			if err := c.Compensate("refund", func(ctx context.Context) error { l.note(ctx); return nil }, opts...); err != nil {
				return "", err
			}
			for _, name := range []string{"reserve", "charge"} {
				if err := l.do(c, name, nil); err != nil {
					return "", err
				}
			}
			return "shipped", l.do(c, "ship", ship.err())
		})
		e := engineOn(t, s, w)
		running(t, e)
		for _, in := range []string{"known", "unknown"} {
			ship.fixed.Store(false)
			run := orFail(w.Start(ctx, e, in, durable.ID(in)))(t)
			wantFailed(t, run)
			l.want(t, "at first", "reserve", "charge", "ship", "refund")
			var opts []durable.ControlOption
			if in == "unknown" {
				if _, err := e.Retry(ctx, in); !errors.Is(err, durable.ErrFromRequired) {
					t.Fatalf("nobody knows what was undone: %v", err)
				}
				opts = append(opts, durable.From("charge"))
			}
			orFail(e.Retry(ctx, in, opts...))(t)
			wantFailed(t, orFail(w.Start(ctx, e, in, durable.ID(in)))(t))
			l.want(t, "in a retry that fails", "charge#2", "ship", "refund#2")
			ship.fixed.Store(true)
			orFail(e.Retry(ctx, in, opts...))(t)
			if got, err := orFail(w.Start(ctx, e, in, durable.ID(in)))(t).Result(ctx); got != "shipped" || err != nil {
				t.Fatalf("got %q, %v", got, err)
			}
			l.want(t, "in the retry", "charge#3", "ship")
		}
	})
}

// A child that failed while its parent is paused can be retried alone, because the parent has not recorded that.
func TestRetryOfAChildBeneathAPausedParent(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		g := newGate()
		child := durable.Define("child", func(c *durable.Ctx, _ string) (string, error) {
			return "paid", c.Do("pay", func(context.Context) error { return bank.err() })
		})
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) {
			kid, err := c.StartChild("kid", child, "")
			if err != nil {
				return "", err
			}
			if err := c.Do("slow", func(ctx context.Context) error { return g.pass(ctx) }); err != nil {
				return "", err
			}
			return kid.Wait()
		})
		e := engineOn(t, s, root, child)
		running(t, e)
		orFail(root.Start(ctx, e, "", durable.ID("r")))(t)
		<-g.entered
		kid := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		awaitStatus(t, e, kid, durable.StatusFailed)
		if _, err := e.Retry(ctx, kid); !errors.Is(err, durable.ErrState) {
			t.Errorf("a retry of a child whose parent may record its end at any moment: %v", err)
		}
		if _, err := e.Pause(ctx, "r"); err != nil {
			t.Fatal(err)
		}
		close(g.open)
		awaitStatus(t, e, "r", durable.StatusPaused)
		bank.fixed.Store(true)
		orFail(e.Retry(ctx, kid))(t)
		if info := orFail(e.Get(ctx, kid))(t); info.Status != durable.StatusPaused {
			t.Errorf("the child of a paused run is %v", info.Status)
		}
		if _, err := e.Resume(ctx, "r"); err != nil {
			t.Fatal(err)
		}
		wantResult(t, root, e, "r", "paid")
	})
}

// beforeFind calls a function once, before the run with this ID is read.
type beforeFind struct {
	store.Store
	id     string
	before func()
	once   sync.Once
}

func (s *beforeFind) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	if len(refs) == 1 && refs[0].UUIDOrName == s.id {
		s.once.Do(s.before)
	}
	return s.Store.GetRunsSelectingPayloads(ctx, refs, with)
}

// Of two retries at once one is refused. It does not touch a child that the other one has already retried.
func TestARetryThatIsLateDoesNotTouchChildren(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		began, release := make(chan struct{}, 9), make(chan struct{})
		kid := durable.Define("kid", func(c *durable.Ctx, _ string) (string, error) {
			return c.Step("pay", func(ctx context.Context) (string, error) {
				if err := bank.err(); err != nil {
					return "", err
				}
				began <- struct{}{}
				select {
				case <-release:
					return "paid", nil
				case <-ctx.Done():
					return "", ctx.Err()
				}
			}, durable.AtMostOnce())
		})
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) { return c.Child("kid", kid, "") })
		e := engineOn(t, s, root, kid)
		running(t, e)
		wantFailed(t, orFail(root.Start(ctx, e, "", durable.ID("r")))(t))
		bank.fixed.Store(true)
		child := orFail(e.Tree(ctx, "r"))(t).Children[0].RunID
		late := engineOn(t, &beforeFind{Store: s, id: child, before: func() {
			orFail(e.Retry(ctx, "r"))(t)
			<-began
		}}, root, kid)
		var refused *durable.StateError
		if made, err := late.Retry(ctx, "r"); !errors.As(err, &refused) {
			t.Errorf("the late retry returned %+v, %v; want a *StateError", made, err)
		}
		close(release)
		wantResult(t, root, e, "r", "paid")
		if n := len(orFail(e.Generations(ctx, "r"))(t)); n != 2 {
			t.Errorf("the run has %d generations", n)
		}
	})
}

// A detached child whose parent was deleted, or has continued as new, is repaired and deleted as a root run.
func TestADetachedChildWithoutItsParentIsARoot(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		job := durable.Define("job", func(c *durable.Ctx, _ int) (string, error) {
			if _, err := c.Receive[string]("go"); err != nil {
				return "", err
			}
			return "paid", c.Do("pay", func(context.Context) error { return bank.err() })
		})
		loop := durable.Define("loop", func(c *durable.Ctx, n int) (string, error) {
			if n == 3 {
				return c.Receive[string]("go")
			}
			child, err := c.StartChild(fmt.Sprint("job ", n), job, n, durable.Detached())
			if err == nil {
				err = child.Signal("go on", "go", "on")
			}
			if err != nil {
				return "", err
			}
			return "", c.ContinueAsNew(n + 1)
		})
		once := durable.Define("once", func(c *durable.Ctx, _ int) (string, error) {
			_, err := c.StartChild("job", job, 0, durable.Detached())
			return "", err
		})
		e := engineOn(t, s, loop, once, job)
		running(t, e)
		orFail(loop.Start(ctx, e, 1, durable.ID("loop")))(t)
		orFail(once.Start(ctx, e, 0, durable.ID("once")))(t)
		awaitStatus(t, e, "once", durable.StatusCompleted)
		orphan := orFail(e.Tree(ctx, "once"))(t).Children[0].RunID
		awaitStatus(t, e, orphan, durable.StatusWaiting)
		if all := orFail(e.DeleteAll(ctx, durable.Filter{Workflow: "job", RunID: []string{orphan}, Status: []durable.Status{durable.StatusWaiting}}, durable.DryRun()))(t); all.Matched != 0 {
			t.Errorf("while its parent is there, a child counts as a root: %+v", all)
		}
		orFail(e.Delete(ctx, "once"))(t)
		if err := e.Signal(ctx, orphan, "go", "on"); err != nil {
			t.Fatal(err)
		}
		failed := durable.Filter{Workflow: "job", Status: []durable.Status{durable.StatusFailed}}
		waitFor(t, func() bool { return len(orFail(e.List(ctx, failed, durable.Page{}))(t).Runs) == 3 })
		bank.fixed.Store(true)
		orFail(e.Retry(ctx, orphan))(t)
		awaitStatus(t, e, orphan, durable.StatusCompleted)
		if all := orFail(e.RetryAll(ctx, failed))(t); all.Matched != 2 || len(all.Repaired) != 2 {
			t.Errorf("of the 2 jobs of a run that has continued as new, RetryAll repaired %+v", all)
		}
		completed := durable.Filter{Workflow: "job", Status: []durable.Status{durable.StatusCompleted}}
		waitFor(t, func() bool { return len(orFail(e.List(ctx, completed, durable.Page{}))(t).Runs) == 3 })
		orFail(e.Delete(ctx, orphan))(t)
		if all := orFail(e.DeleteAll(ctx, completed))(t); all.Matched != 2 || all.Deleted != 2 {
			t.Errorf("of the 2 jobs of a run that has continued as new, DeleteAll deleted %+v", all)
		}
		awaitStatus(t, e, "loop", durable.StatusWaiting)
	})
}
