package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// wantSupersededChild checks that operators find a child of a superseded generation from its parent, and the parent from the child.
func wantSupersededChild(t *testing.T, e *durable.Engine, parent, child string, generation int) {
	t.Helper()
	ctx := within(t)
	run := orFail(e.Get(ctx, parent))(t)
	var node *durable.RunNode
	for _, n := range orFail(e.Tree(ctx, parent))(t).Children {
		if n.RunID == child {
			node = n
		}
	}
	if node == nil {
		t.Fatalf("the tree of %s lacks the child %s", parent, child)
	}
	got := map[string]durable.RunInfo{"Tree": node.RunInfo, "Get": *orFail(e.Get(ctx, child))(t), "Tree of the child": orFail(e.Tree(ctx, child))(t).RunInfo}
	for what, f := range map[string]durable.Filter{
		"List":            {RunID: []string{child}},
		"List by Parent":  {Parent: []string{run.RunID}, Workflow: node.Workflow},
		"List by parents": {Parent: []string{run.RunID, child}, RunID: []string{child}},
	} {
		for _, r := range orFail(e.List(ctx, f, durable.Page{}))(t).Runs {
			if r.RunID == child {
				got[what] = r
			}
		}
	}
	for _, what := range []string{"Tree", "Get", "Tree of the child", "List", "List by Parent", "List by parents"} {
		if r := got[what]; r.RunID != child || r.Parent != run.RunID || r.ParentGeneration != generation {
			t.Errorf("%s: the run %q has the parent %q and its generation %d, want %q and %d", what, r.RunID, r.Parent, r.ParentGeneration, run.RunID, generation)
		}
	}
	if exported := orFail(e.Export(ctx, child))(t); !strings.Contains(string(exported), `"parent": "`+run.RunID+`"`) {
		t.Errorf("the export of the child does not name its parent %s:\n%s", run.RunID, exported)
	}
}

// The child of a call that a repair has dropped, and the children beneath it, are found from the repaired run.
func TestOperatorsFindTheChildrenOfDroppedCalls(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		leaf := durable.Define("leaf", func(*durable.Ctx, string) (string, error) { return "", nil })
		kid := durable.Define("kid", func(c *durable.Ctx, _ string) (string, error) { return c.Child("leaf", leaf, "") })
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) { return c.Child("kid", kid, "") })
		e := engineOn(t, s, root, kid, leaf)
		running(t, e)
		wantResult(t, root, e, "r", "")
		first := orFail(e.Tree(ctx, "r"))(t).Children[0]
		orFail(e.Rerun(ctx, "r", "kid"))(t)
		wantResult(t, root, e, "r", "")
		wantSupersededChild(t, e, "r", first.RunID, 1)
		tree := orFail(e.Tree(ctx, "r"))(t)
		if len(tree.Children) != 2 || tree.Children[0].RunID != first.RunID || tree.Children[1].ParentGeneration != 0 || tree.Children[1].Parent != tree.RunID {
			t.Fatalf("the tree is %+v", tree)
		}
		if beneath := tree.Children[0].Children; len(beneath) != 1 || beneath[0].Parent != first.RunID || beneath[0].ParentGeneration != 0 {
			t.Errorf("beneath the first child are %+v", beneath)
		}
		if n := orFail(e.TreeCounts(ctx, "r"))(t).Statuses[durable.StatusCompleted]; n != 5 {
			t.Errorf("%d runs of the tree have completed, want 5", n)
		}
		for _, refuse := range []func() error{
			func() error { _, err := e.Rerun(ctx, first.RunID, "leaf"); return err },
			func() error { _, err := e.Delete(ctx, first.RunID); return err },
		} {
			if err := refuse(); !errors.Is(err, durable.ErrState) || !strings.Contains(err.Error(), `generation 1 of run "r"`) {
				t.Errorf("a change of the first child: %v", err)
			}
		}
		if n := orFail(e.Delete(ctx, "r"))(t); n.Deleted != 5 {
			t.Errorf("deleted %d runs of 5", n.Deleted)
		}
	})
}

// The children of the earlier generations of a run that continues as new are found from the run, whether they are detached or not.
func TestOperatorsFindTheChildrenOfEarlierGenerations(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		kid := durable.Define("kid", func(*durable.Ctx, int) (string, error) { return "", nil })
		job := durable.Define("job", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("go") })
		loop := durable.Define("loop", func(c *durable.Ctx, n int) (string, error) {
			if _, err := c.StartChild("job", job, n, durable.Detached()); err != nil {
				return "", err
			}
			if _, err := c.Child("kid", kid, n); err != nil || n == 3 {
				return "", err
			}
			return "", c.ContinueAsNew(n + 1)
		})
		e := engineOn(t, s, loop, kid, job)
		running(t, e)
		run := orFail(loop.Start(ctx, e, 1, durable.ID("r")))(t)
		orFail(run.Result(ctx))(t)
		seen := make(map[string]int)
		for _, c := range orFail(e.Tree(ctx, "r"))(t).Children {
			seen[fmt.Sprint(c.Name, " of ", string(c.Workflow), " ", c.ParentGeneration)]++
			if c.ParentGeneration > 0 {
				wantSupersededChild(t, e, "r", c.RunID, c.ParentGeneration)
			}
		}
		if len(seen) != 6 {
			t.Errorf("the children of the run are %v, want a kid and a job of each generation", seen)
		}
		counts := orFail(e.TreeCounts(ctx, "r"))(t)
		if live := counts.Statuses[durable.StatusPending] + counts.Statuses[durable.StatusRunning] + counts.Statuses[durable.StatusWaiting]; live != 3 {
			t.Errorf("the tree has %d live runs, want the 3 jobs: %v", live, counts.Statuses)
		}
	})
}

// A repair keeps the children of calls that it keeps: Child.Signal and Child.Cancel of the next generation reach them.
func TestKeptChildrenGetSignalsAndCancels(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		gets := durable.Define("gets", func(c *durable.Ctx, _ string) (string, error) { return c.Receive[string]("word") })
		root := durable.Define("root", func(c *durable.Ctx, _ string) (string, error) {
			done, err := c.StartChild("done", gets, "")
			if err == nil {
				err = done.Signal("first word", "word", "done")
			}
			if err == nil {
				_, err = done.Wait()
			}
			if err != nil {
				return "", err
			}
			told, err := c.StartChild("told", gets, "", durable.Detached())
			if err != nil {
				return "", err
			}
			stopped, err := c.StartChild("stopped", gets, "", durable.Detached())
			if err != nil {
				return "", err
			}
			if err := c.Do("charge", func(context.Context) error { return bank.err() }); err != nil {
				return "", err
			}
			if err := done.Signal("late word", "word", "late"); !errors.Is(err, durable.ErrState) {
				return "", fmt.Errorf("a signal to a kept child that has ended: %w", err)
			}
			if err := errors.Join(done.Cancel("late cancel"), told.Signal("word", "word", "told"), stopped.Cancel("cancel")); err != nil {
				return "", err
			}
			return told.Wait()
		})
		e := engineOn(t, s, root, gets)
		running(t, e)
		wantFailed(t, orFail(root.Start(ctx, e, "", durable.ID("r")))(t))
		before := orFail(e.Tree(ctx, "r"))(t).Children
		orFail(e.Retry(ctx, "r", durable.From("charge")))(t) // fails again: the third generation has copies of copies
		wantFailed(t, orFail(root.Handle(ctx, e, "r"))(t))
		bank.fixed.Store(true)
		orFail(e.Retry(ctx, "r"))(t)
		wantResult(t, root, e, "r", "told")
		if after := orFail(e.Tree(ctx, "r"))(t).Children; len(before) != 3 || len(after) != 3 {
			t.Errorf("the run had %d children, and has %d, want 3", len(before), len(after))
		}
		awaitStatus(t, e, before[2].RunID, durable.StatusCancelled)
	})
}
