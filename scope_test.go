package durable_test

import (
	"context"
	"errors"
	"testing"

	"github.com/seed8ec063be/durable"
)

// family is a parent with a running child, a running grandchild, and a child that no worker executes.
type family struct {
	e       *durable.Engine
	run     *durable.Run[int]
	ids     map[string]string
	release chan struct{}
}

func newFamily(t *testing.T, s durable.Store) *family {
	f := &family{ids: map[string]string{}, release: make(chan struct{})}
	entered := make(chan struct{})
	leaf := durable.Define("leaf", func(c *durable.Ctx, _ int) (int, error) {
		return 1, c.Do("work", func(context.Context) error { close(entered); <-f.release; return nil })
	})
	middle := durable.Define("middle", func(c *durable.Ctx, _ int) (int, error) { return c.Child("leaf", leaf, 0) })
	later := durable.Define("later", func(*durable.Ctx, int) (int, error) { return 1, nil })
	root := durable.Define("root", func(c *durable.Ctx, _ int) (int, error) {
		begun, err := c.StartChild("begun", middle, 0)
		if err != nil {
			return 0, err
		}
		if _, err := c.StartChild("unbegun", later, 0); err != nil { // this process does not execute the workflow
			return 0, err
		}
		return begun.Wait()
	})
	f.e = engineOn(t, s, root, middle, leaf)
	running(t, f.e)
	var err error
	if f.run, err = root.Start(within(t), f.e, 0, durable.ID("root")); err != nil {
		t.Fatal(err)
	}
	<-entered
	for tree := read(f.e.Tree(within(t), "root"))(t); len(f.ids) < 3; tree = read(f.e.Tree(within(t), "root"))(t) {
		for _, n := range tree.Children {
			f.ids[n.Workflow] = n.RunID
			for _, m := range n.Children {
				f.ids[m.Workflow] = m.RunID
			}
		}
	}
	return f
}

func (f *family) want(t *testing.T, statuses map[string]durable.Status) {
	t.Helper()
	for name, want := range statuses {
		awaitStatus(t, f.e, f.ids[name], want)
	}
}

// With OnlyItself the descendants continue, and the end of the run does not cancel them either.
func TestCancelOnlyItselfSparesMembers(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		f := newFamily(t, s)
		if got := must(t)(f.e.Cancel(within(t), "root", durable.OnlyItself())); !counts(got, 1, 0, 1) {
			t.Errorf("%+v", got)
		}
		if _, err := f.run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the run: %v", err)
		}
		f.want(t, map[string]durable.Status{"later": durable.StatusPending})
		close(f.release)
		f.want(t, map[string]durable.Status{"leaf": durable.StatusCompleted, "middle": durable.StatusCompleted, "later": durable.StatusPending})
		if info := read(f.e.Get(within(t), f.ids["middle"]))(t); !info.Detached {
			t.Error("a child that goes on is not shown as detached")
		}
	})
}

// OnlyUnstarted cancels a run that has begun, and its descendants that have not begun. Running descendants finish.
func TestCancelOnlyUnstartedLetsRunningMembersFinish(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		f := newFamily(t, s)
		got := must(t)(f.e.Cancel(within(t), "root", durable.OnlyUnstarted()))
		if !counts(got, 1, 1, 1) || got.DoneIDs[0] != f.ids["later"] || got.RequestedIDs[0] != f.run.RunID() {
			t.Errorf("%+v of %v", got, f.ids)
		}
		if _, err := f.run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) {
			t.Errorf("the run: %v", err)
		}
		f.want(t, map[string]durable.Status{"later": durable.StatusCancelled})
		close(f.release)
		f.want(t, map[string]durable.Status{"leaf": durable.StatusCompleted, "middle": durable.StatusCompleted})
	})
}

// A Cancel of a cancelled run returns no error, whether the run has ended yet or not.
func TestCancelAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		f := newFamily(t, s)
		must(t)(f.e.Cancel(within(t), "root"))
		for ended := false; !ended; {
			ended = read(f.e.Get(within(t), "root"))(t).Status == durable.StatusCancelled
			if _, err := f.e.Cancel(within(t), "root"); err != nil {
				t.Fatalf("ended %v: %v", ended, err)
			}
		}
		close(f.release)
	})
}
