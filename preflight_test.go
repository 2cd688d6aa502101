package durable_test

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A preflight finds the runs that do not fit, and changes nothing.
func TestPreflight(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(stepCounts)
		none := func(*durable.Ctx) error { return nil }
		other := durable.Define("other", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("never") })
		old := waits(x.steps("a", "b"), x.steps("c"))
		stop := running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{old, other}}))
		client := engineOn(t, s)
		const runs = 450
		for i := range runs {
			if _, err := old.Start(within(t), client, i, durable.ID(fmt.Sprint("run ", i))); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := other.Start(within(t), client, 0, durable.ID("other")); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool {
			page := read(client.List(within(t), durable.Filter{Status: []durable.Status{durable.StatusWaiting}}, durable.Page{Limit: 1000}))(t)
			return len(page.Runs) == runs+1
		})
		stop()
		before, executed := historyOf(t, client, "run 7"), x.String()
		patched := func(c *durable.Ctx) error {
			if _, err := c.Patched("early"); err != nil {
				return err
			}
			return x.steps("b2")(c)
		}
		for name, test := range map[string]struct {
			w    *durable.Workflow[int, string]
			want durable.PreflightReport
			run  durable.PreflightRun
		}{
			"fits": {old, durable.PreflightReport{Fit: runs, Unknown: 1}, durable.PreflightRun{Next: []string{"go"}}},
			"diverges": {
				waits(x.steps("a", "b2"), none), durable.PreflightReport{Diverged: runs, Unknown: 1}, durable.PreflightRun{Diverged: true, Call: "b2"},
			},
			"fails": {
				waits(func(c *durable.Ctx) error { return errors.Join(x.steps("a", "b")(c), errDeclined) }, none, durable.Retired("go")),
				durable.PreflightReport{Failing: runs, Unknown: 1, Needed: []durable.NeededChange{{Workflow: "waits", Name: "go", Kind: "receive", Runs: runs}}},
				durable.PreflightRun{Err: "card declined"},
			},
			"is declared": {
				waits(func(c *durable.Ctx) error { return patched(c) }, none, durable.Retired("a"), durable.Renamed("b", "b2")),
				durable.PreflightReport{Fit: runs, Unknown: 1, Needed: []durable.NeededChange{
					{Workflow: "waits", Name: "a", Kind: "step", Runs: runs},
					{Workflow: "waits", Name: "b", Kind: "step", Runs: runs},
					{Workflow: "waits", Name: "early", Kind: "patch", Runs: runs},
				}},
				durable.PreflightRun{Next: []string{"go"}},
			},
		} {
			t.Run(name, func(t *testing.T) {
				got := read(engineOn(t, s, test.w).Preflight(within(t), durable.Filter{}))(t)
				i := slices.IndexFunc(got.Runs, func(r durable.PreflightRun) bool { return r.ID == "run 7" })
				run := got.Runs[i]
				if n := len(got.Runs); n != runs+1 || run.Diverged != test.run.Diverged || run.Call != test.run.Call || !slices.Equal(run.Next, test.run.Next) || run.Diverged != (run.Reason != "") || !strings.Contains(run.Err, test.run.Err) || (run.Err == "") != (test.run.Err == "") {
					t.Errorf("%d runs, run 7: %+v", n, run)
				}
				got.Runs = nil
				if !reflect.DeepEqual(*got, test.want) {
					t.Errorf("got %+v, want %+v", *got, test.want)
				}
			})
		}
		if after := historyOf(t, client, "run 7"); !reflect.DeepEqual(before, after) || x.String() != executed {
			t.Errorf("it has changed something: %v, then %v; executed %s", before, after, x)
		}
	})
}

// A run that is to be cancelled does not fail because its calls return ErrCancelled.
func TestPreflightOfACancelledRun(t *testing.T) {
	s := openStore(t)
	none := func(*durable.Ctx) error { return nil }
	w := waits(none, none)
	stop := atVersion(t, s, "v1", w)
	e := engineOn(t, s)
	if _, err := w.Start(within(t), e, 1, durable.ID("run")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, e, "run", durable.StatusWaiting)
	stop()
	if _, err := e.Cancel(within(t), "run"); err != nil {
		t.Fatal(err)
	}
	if got := read(engineOn(t, s, w).Preflight(within(t), durable.Filter{}))(t); got.Fit != 1 || got.Failing != 0 {
		t.Errorf("got %+v", got)
	}
}

// A replay follows branches, waits and children up to what is not recorded.
func TestPreflightOfConcurrentCalls(t *testing.T) {
	s := openStore(t)
	kid := durable.Define("kid", func(c *durable.Ctx, _ int) (int, error) { return c.Receive[int]("never") })
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		side := c.Go("side", func(c *durable.Ctx) (int, error) { return c.Child("kid", kid, 1) })
		nap := c.Go("nap", func(c *durable.Ctx) (int, error) { return 0, c.Sleep("long", time.Hour) })
		_, err := durable.All(side, nap)
		return 0, err
	})
	e := engineOn(t, s, w, kid)
	stop := running(t, e)
	if _, err := w.Start(within(t), e, 0, durable.ID("run")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(historyOf(t, e, "run")) == 2 })
	stop()
	got := read(engineOn(t, s, w, kid).Preflight(within(t), durable.Filter{Roots: true}))(t)
	if len(got.Runs) != 1 {
		t.Fatalf("got %+v", got)
	}
	next := got.Runs[0].Next
	slices.Sort(next)
	if got.Fit != 1 || !slices.Equal(next, []string{"nap/long", "side/kid"}) {
		t.Errorf("got %+v", got)
	}
}
