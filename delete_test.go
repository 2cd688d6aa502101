package durable_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
)

// wantNotFound checks that no call knows the run any more.
func wantNotFound(t testing.TB, e *durable.Engine, id string) {
	t.Helper()
	_, get := e.Get(within(t), id)
	_, tree := e.Tree(within(t), id)
	_, history := e.History(within(t), id)
	_, generations := e.Generations(within(t), id)
	_, retry := e.Retry(within(t), id)
	_, again := e.Delete(within(t), id)
	for i, err := range []error{get, tree, history, generations, retry, again, e.Signal(within(t), id, "n", 1)} {
		if !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("call %d about the deleted run %q: %v", i, id, err)
		}
	}
}

// A run that has just ended is deleted with all that is its own, and its ID can start again. Clients may do so.
func TestDelete(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		leaf := durable.Define("leaf", func(c *durable.Ctx, in int) (int, error) { return in, nil })
		root := durable.Define("root", func(c *durable.Ctx, in int) (int, error) {
			if err := c.Do("first", func(context.Context) error { return nil }); err != nil {
				return 0, err
			}
			return c.Child("kid", leaf, in)
		})
		e := engineOn(t, s, root, leaf)
		client := engineOn(t, s)
		running(t, e)
		run := orFail(root.Start(ctx, e, 1, durable.ID("order"), durable.Tag("a.b", "c")))(t)
		if got := orFail(run.Result(ctx))(t); got != 1 {
			t.Fatal(got)
		}
		kid := orFail(client.Tree(ctx, "order"))(t).Children[0].RunID
		var refused *durable.StateError
		if _, err := client.Delete(ctx, kid); !errors.As(err, &refused) || refused.Verb != durable.VerbDelete || !strings.Contains(refused.Error(), `"order"`) {
			t.Errorf("the deletion of a child: %v", err)
		}
		if got := orFail(client.Delete(ctx, "order", durable.DryRun()))(t); got.Deleted != 2 || got.Matched != 1 {
			t.Errorf("it would delete %+v", got)
		}
		if got := orFail(client.Delete(ctx, run.RunID(), durable.Actor("ada"), durable.Reason("asked to")))(t); got.Deleted != 2 || got.Matched != 1 {
			t.Errorf("it deleted %+v", got)
		}
		for _, id := range []string{"order", run.RunID(), kid} {
			wantNotFound(t, client, id)
		}
		if _, err := root.Handle(ctx, client, run.RunID()); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("a handle of a deleted run: %v", err)
		}
		again := orFail(root.Start(ctx, e, 2, durable.ID("order")))(t)
		if got := orFail(again.Result(ctx))(t); got != 2 || again.RunID() == run.RunID() {
			t.Errorf("the next run with the ID is %s and returned %d", again.RunID(), got)
		}
		var told []durable.Event
		waitFor(t, func() bool { // events wait for older transactions of other tests
			told = slices.DeleteFunc(orFail(e.Events(ctx, durable.Page{}))(t), func(v durable.Event) bool { return v.Type != durable.EventDeleted })
			return len(told) > 0
		})
		if len(told) > 1 || told[0].RunID != run.RunID() || told[0].Actor != "ada" || told[0].Reason != "asked to" || told[0].Old != "order" || told[0].New != "2" {
			t.Errorf("the events are %+v", told)
		}
	})
}

func TestDeleteRefusals(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var fromInside error
		wait := durable.Define("wait", func(c *durable.Ctx, in string) (string, error) { return c.Receive[string]("go") })
		root := durable.Define("root", func(c *durable.Ctx, in string) (string, error) {
			_, err := c.StartChild("kid", wait, in, durable.Detached())
			return in, err
		})
		var e *durable.Engine
		inside := durable.Define("inside", func(c *durable.Ctx, in string) (string, error) {
			_, fromInside = e.Delete(c, "live")
			return in, nil
		})
		e = engineOn(t, s, wait, root, inside)
		running(t, e)
		live := orFail(wait.Start(ctx, e, "", durable.ID("live")))(t)
		var refused *durable.StateError
		if _, err := e.Delete(ctx, "live"); !errors.As(err, &refused) || refused.ID != "live" || refused.Status == durable.StatusCompleted {
			t.Errorf("a live run: %v", err)
		}
		for what, c := range map[string]struct {
			err  error
			want error
		}{
			"unknown":       {second(e.Delete(ctx, "unknown")), durable.ErrNotFound},
			"an option":     {second(e.Delete(ctx, "live", durable.FromEnd())), durable.ErrInvalidConfig},
			"an actor":      {second(e.Delete(ctx, "live", durable.Actor("\x00"))), durable.ErrInvalidName},
			"no filter":     {second(e.DeleteAll(ctx, durable.Filter{})), durable.ErrInvalidConfig},
			"a wrong state": {second(e.DeleteAll(ctx, durable.Filter{Status: []durable.Status{"x"}})), durable.ErrInvalidConfig},
		} {
			if !errors.Is(c.err, c.want) {
				t.Errorf("%s: %v, want %v", what, c.err, c.want)
			}
		}
		orFail(inside.Call(ctx, e, "", durable.ID("inside")))(t)
		if fromInside == nil {
			t.Error("a workflow function deleted a run")
		}
		if got := orFail(e.DeleteAll(ctx, durable.Filter{Status: []durable.Status{durable.StatusPending, durable.StatusRunning, durable.StatusWaiting}}))(t); got.Deleted != 0 || len(got.Refused) != got.Matched {
			t.Errorf("of live runs: %+v", got)
		}

		// A detached child that is live stays, continues without its parent, and can then be deleted by itself.
		orFail(root.Call(ctx, e, "", durable.ID("root")))(t)
		kid := orFail(e.Tree(ctx, "root"))(t).Children[0]
		if got := orFail(e.Delete(ctx, "root"))(t); got.Deleted != 1 {
			t.Errorf("%+v", got)
		}
		wantNotFound(t, e, "root")
		if got := orFail(e.Tree(ctx, kid.RunID))(t); got.Parent != kid.Parent || len(got.Children) != 0 {
			t.Errorf("without its parent: %+v", got)
		}
		for _, id := range []string{"live", kid.RunID} {
			if err := e.Signal(ctx, id, "go", "x"); err != nil {
				t.Fatal(err)
			}
			orFail(orFail(wait.Handle(ctx, e, id))(t).Result(ctx))(t)
			if got := orFail(e.Delete(ctx, id))(t); got.Deleted != 1 {
				t.Errorf("%s: %+v", id, got)
			}
			wantNotFound(t, e, id)
		}
		if _, err := live.Result(ctx); !errors.Is(err, durable.ErrNotFound) && err != nil {
			t.Errorf("the handle of a deleted run: %v", err)
		}
	})
}

func TestDeleteAll(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", func(c *durable.Ctx, fail bool) (string, error) {
			if fail {
				return "", errDeclined
			}
			return "x", nil
		})
		e := engineOn(t, s, w)
		var starts []durable.StartItem[bool]
		for i := range 120 { // more than a transaction deletes
			starts = append(starts, durable.StartItem[bool]{Input: i%2 == 0, ID: fmt.Sprint("run-", i)})
		}
		running(t, e)
		for _, run := range orFail(w.StartMany(ctx, e, starts))(t) {
			_, _ = run.Result(ctx)
		}
		failed := durable.Filter{Workflow: "w", Status: []durable.Status{durable.StatusFailed}}
		if got := orFail(e.DeleteAll(ctx, failed, durable.DryRun()))(t); got.Matched != 60 || got.Deleted != 60 {
			t.Errorf("it would delete %+v", got)
		}
		if got := orFail(e.DeleteAll(ctx, failed))(t); got.Matched != 60 || got.Deleted != 60 || len(got.Refused) != 0 {
			t.Errorf("it deleted %+v", got)
		}
		if got := orFail(e.DeleteAll(ctx, durable.Filter{IDPrefix: "run-1"}))(t); got.Deleted != 1+5+10 { // the odd ones of 1, 10 to 19 and 100 to 119; the others are deleted
			t.Errorf("it deleted %+v", got)
		}
		if got := orFail(e.List(ctx, durable.Filter{Workflow: "w"}, durable.Page{}))(t); len(got.Runs) != 60-16 {
			t.Errorf("%d runs are left", len(got.Runs))
		}
	})
}

// Of a retry and a deletion at the same moment, one wins: the run is deleted, or it lives on with all that is its own.
func TestDeleteAgainstRetry(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		var bank fixable
		w := durable.Define("order", func(c *durable.Ctx, _ string) (string, error) {
			return "done", c.Do("charge", func(context.Context) error { return bank.err() })
		})
		e, other := engineOn(t, s, w), engineOn(t, s)
		running(t, e)
		const runs = 12
		for i := range runs {
			wantFailed(t, orFail(w.Start(ctx, e, "", durable.ID(fmt.Sprint("order-", i))))(t))
		}
		bank.fixed.Store(true)
		deleted := 0
		for i := range runs {
			id := fmt.Sprint("order-", i)
			var retried, gone error
			var wg sync.WaitGroup
			wg.Go(func() { _, retried = e.Retry(ctx, id) })
			wg.Go(func() { _, gone = other.Delete(ctx, id) })
			wg.Wait()
			switch {
			case retried == nil && gone == nil: // the run was retried, ended, and was deleted then
				wantNotFound(t, e, id)
			case gone == nil:
				deleted++
				if !errors.Is(retried, durable.ErrNotFound) {
					t.Errorf("the retry of a deleted run: %v", retried)
				}
				wantNotFound(t, e, id)
			case retried == nil && (errors.Is(gone, durable.ErrState) || errors.Is(gone, durable.ErrLocked)):
				wantResult(t, w, e, id, "done")
			default:
				t.Errorf("retry: %v, delete: %v", retried, gone)
			}
		}
		t.Logf("%d of %d deletions were first", deleted, runs)
	})
}
