package durable_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable"
)

// fanned begins with steps of plain goroutines, whose rows lie between those of the function's own goroutine.
func fanned(x *stepCounts, charge string) *durable.Workflow[int, string] {
	return waits(func(c *durable.Ctx) error {
		var all sync.WaitGroup
		errs := make([]error, 2)
		for i := range errs {
			all.Go(func() { errs[i] = x.steps(fmt.Sprint("part ", i))(c) })
		}
		all.Wait()
		return errors.Join(append(errs, x.steps(charge)(c))...)
	}, func(*durable.Ctx) error { return nil })
}

// A renamed step behind steps of plain goroutines is not executed a second time, and a preflight finds it.
func TestRenamedStepBehindPlainGoroutines(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		before, after := fanned(x, "charge"), fanned(x, "charge card")
		stop := atVersion(t, s, "v1", before)
		client := engineOn(t, s)
		if _, err := before.Start(within(t), client, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, client, "run", durable.StatusWaiting)
		stop()
		found := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{}))(t)
		if found.Diverged != 1 || found.Fit != 0 || found.Runs[0].Call != "charge card" {
			t.Errorf("the preflight found %+v", found)
		}
		atVersion(t, s, "v2", after)
		if err := client.Signal(within(t), "run", "go", 1); err != nil {
			t.Fatal(err)
		}
		var info *durable.RunInfo
		waitFor(t, func() bool {
			info = read(client.Get(within(t), "run"))(t)
			return info.Diverged || info.Status == durable.StatusCompleted
		})
		if !info.Diverged || x.String() != "map[charge:1 part 0:1 part 1:1]" {
			t.Errorf("it is %s, diverged %t, executed %s", info.Status, info.Diverged, x)
		}
	})
}

// A run that was forked may have gaps in its history: a child that had not ended is started anew, although the calls behind it are
// recorded. Nor need a call behind a value that the fork sets be made.
func TestDriftDoesNotHoldForks(t *testing.T) {
	kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
	w := durable.Define("family", func(c *durable.Ctx, _ int) (int, error) {
		if _, err := c.StartChild("kid", kid, 1); err != nil {
			return 0, err
		}
		few, err := c.Step("count", func(context.Context) (int, error) { return 1, nil })
		if err == nil && few == 1 {
			err = c.Do("one", func(context.Context) error { return nil })
		}
		if err != nil {
			return 0, err
		}
		return c.Receive[int]("go")
	})
	onStores(t, func(t *testing.T, s durable.Store) {
		e := engineOn(t, s, w, kid)
		running(t, e)
		if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "run", durable.StatusWaiting)
		for id, opts := range map[string][]durable.ControlOption{
			"plain": {durable.FromEnd()}, "valued": {durable.FromEnd(), durable.OverrideStep("count", 2)},
		} {
			if _, err := e.Fork(within(t), "run", append(opts, durable.NewID(id))...); err != nil {
				t.Fatal(err)
			}
			if err := e.Signal(within(t), id, "go", 7); err != nil {
				t.Fatal(err)
			}
			var info *durable.RunInfo
			waitFor(t, func() bool {
				info = read(e.Get(within(t), id))(t)
				return info.Diverged || info.Status == durable.StatusCompleted
			})
			if info.Diverged {
				t.Errorf("%s is held: %s", id, info.Reason)
			}
		}
	})
}

// An export says that a repair has changed its run's history, so its replay does not find calls missing that need not be made.
func TestReplayOfTheExportOfARepairedRun(t *testing.T) {
	w := waitsAs("shop", func(c *durable.Ctx) error {
		if _, err := c.Step("pay", func(context.Context) (int, error) { return 0, errDeclined }); err != nil {
			return errors.Join(new(stepCounts).steps("notify")(c), err)
		}
		return nil
	})
	e := engineOn(t, openStore(t), w)
	running(t, e)
	if _, err := w.Call(within(t), e, 0, durable.ID("run")); !errors.Is(err, errDeclined) {
		t.Fatal(err)
	}
	if _, err := e.Skip(within(t), "run", "pay", 7); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "run", durable.StatusCompleted)
	if got, err := e.ReplayExport(within(t), read(e.Export(within(t), "run"))(t)); err != nil || got.Diverged {
		t.Errorf("%+v, %v", got, err)
	}
}
