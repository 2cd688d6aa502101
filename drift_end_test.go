package durable_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// Code that fails, panics or continues as new before it has made the recorded calls does not fit the history: its compensations would
// undo too little. So the run is held as one that would complete.
func TestDriftIsJudgedHoweverTheFunctionEnds(t *testing.T) {
	for name, test := range map[string]struct {
		end  func(c *durable.Ctx) error
		opts []durable.WorkflowOption
	}{
		"fails":               {end: func(*durable.Ctx) error { return errDeclined }},
		"panics":              {end: func(*durable.Ctx) error { panic("declined") }},
		"would retry itself":  {end: func(*durable.Ctx) error { return errDeclined }, opts: []durable.WorkflowOption{durable.RetryRun(durable.Fixed(0, 3))}},
		"fails with a branch": {end: func(c *durable.Ctx) error { _, err := c.Go("side", declines).Wait(); return err }},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(shop)
				client, run := x.waiting(t, s)
				after := x.define(test.end, test.opts...)
				if found := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{}))(t); found.Diverged != 1 {
					t.Errorf("the preflight found %+v", found)
				}
				stop := atVersion(t, s, "v2", after)
				var info *durable.RunInfo
				waitFor(t, func() bool {
					info = read(client.Get(within(t), "run"))(t)
					return info.Diverged || info.Status == durable.StatusFailed || info.Status == durable.StatusCompleted
				})
				if !info.Diverged || !strings.Contains(info.Reason, "charge") || x.refunded.Load() != 0 {
					t.Errorf("it is %s, %q, refunded %d times", info.Status, info.Reason, x.refunded.Load())
				}
				stop()
				atVersion(t, s, "v1", x.define(x.charge))
				if _, err := run.Result(within(t)); err != nil || x.charged.Load() != 1 || x.shipped.Load() != 1 {
					t.Errorf("%v, charged %d, shipped %d times", err, x.charged.Load(), x.shipped.Load())
				}
			})
		})
	}
}

func declines(*durable.Ctx) (int, error) { return 0, errDeclined }

// With DriftFails such a run fails, with the error of the function in the message, and does not retry itself.
func TestDriftFailsNamesTheErrorOfTheFunction(t *testing.T) {
	x := new(shop)
	s := openStore(t)
	_, run := x.waiting(t, s)
	atVersion(t, s, "v2", x.define(func(*durable.Ctx) error { return errDeclined }, durable.OnDrift(durable.DriftFails), durable.RetryRun(durable.Fixed(0, 3))))
	if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrDiverged) || !strings.Contains(err.Error(), errDeclined.Error()) || x.refunded.Load() != 1 {
		t.Errorf("%v, refunded %d times", err, x.refunded.Load())
	}
}

// A branch that returns before it has made its recorded calls holds the run before anything depends on what it returned.
func TestBranchThatReturnsTooEarlyHoldsTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for name, end := range map[string]func(c *durable.Ctx) (int, error){
			"returns": func(*durable.Ctx) (int, error) { return 0, nil },
			"fails":   declines,
			"panics":  func(*durable.Ctx) (int, error) { panic("declined") },
		} {
			t.Run(name, func(t *testing.T) {
				x := new(stepCounts)
				branch := func(fn func(c *durable.Ctx) (int, error)) func(c *durable.Ctx) error {
					return func(c *durable.Ctx) error {
						_, err := c.Go("side", fn).Wait()
						if err != nil {
							return x.steps("sorry")(c)
						}
						return x.steps("main")(c)
					}
				}
				charge := func(c *durable.Ctx) (int, error) {
					if err := x.steps("charge")(c); err != nil {
						return 0, err
					}
					return c.Receive[int]("paid", durable.OnSignal("go"))
				}
				before := waitsAs("early "+name, branch(charge))
				stop := atVersion(t, s, "v1", before)
				client := engineOn(t, s)
				if _, err := before.Start(within(t), client, 0, durable.ID(name)); err != nil {
					t.Fatal(err)
				}
				awaitStatus(t, client, name, durable.StatusWaiting)
				stop()
				after := waitsAs("early "+name, branch(end))
				if found := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{Workflow: after.Name()}))(t); found.Diverged != 1 {
					t.Errorf("the preflight found %+v", found)
				}
				if err := client.Signal(within(t), name, "go", 1); err != nil {
					t.Fatal(err)
				}
				atVersion(t, s, "v2", after)
				var info *durable.RunInfo
				waitFor(t, func() bool {
					info = read(client.Get(within(t), name))(t)
					return info.Diverged || info.Status == durable.StatusCompleted || info.Status == durable.StatusFailed
				})
				if !info.Diverged || x.String() != "map[charge:1]" {
					t.Errorf("it is %s %s, executed %s", info.Status, info.Reason, x)
				}
			})
		}
	})
}

func waitsAs(name string, fn func(c *durable.Ctx) error, opts ...durable.WorkflowOption) *durable.Workflow[int, int] {
	return durable.Define(name, func(c *durable.Ctx, _ int) (int, error) { return 0, fn(c) }, opts...)
}

// A run that continues as new before it has made its recorded calls is held, too.
func TestDriftIsJudgedBeforeARunContinuesAsNew(t *testing.T) {
	x := new(stepCounts)
	x.judgeContinue(t, openStore(t))
	if x.String() != "map[charge:1]" {
		t.Errorf("executed %s", x)
	}
}

func (x *stepCounts) judgeContinue(t *testing.T, s durable.Store) {
	t.Helper()
	receive := func(c *durable.Ctx) error {
		if err := x.steps("charge")(c); err != nil {
			return err
		}
		_, err := c.Receive[int]("go")
		return err
	}
	before, after := waitsAs("again", receive), waitsAs("again", func(c *durable.Ctx) error { return c.ContinueAsNew(1) })
	stop := atVersion(t, s, "v1", before)
	client := engineOn(t, s)
	if _, err := before.Start(within(t), client, 0, durable.ID("run")); err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, client, "run", durable.StatusWaiting)
	stop()
	if found := read(engineOn(t, s, after).Preflight(within(t), durable.Filter{}))(t); found.Diverged != 1 {
		t.Errorf("the preflight found %+v", found)
	}
	if err := client.Signal(within(t), "run", "go", 1); err != nil {
		t.Fatal(err)
	}
	atVersion(t, s, "v2", after)
	waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Diverged })
	if all := read(client.Generations(within(t), "run"))(t); len(all) > 1 {
		t.Errorf("it has continued: %+v", all)
	}
}

// A branch that nobody awaits may return early because its context has ended with the function, so it need not make all its recorded calls.
func TestDriftDoesNotHoldABranchThatNobodyAwaits(t *testing.T) {
	s := openStore(t)
	x := new(stepCounts)
	ticker := func(tick func(c *durable.Ctx) error) *durable.Workflow[int, int] {
		return waitsAs("ticker", func(c *durable.Ctx) error {
			c.Go("ticks", func(c *durable.Ctx) (int, error) { return 0, tick(c) })
			_, err := c.Receive[int]("go")
			return err
		})
	}
	before := ticker(x.steps("tick", "tock"))
	stop := atVersion(t, s, "v1", before)
	client := engineOn(t, s)
	if _, err := before.Start(within(t), client, 0, durable.ID("run")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool {
		return read(client.Get(within(t), "run"))(t).Status == durable.StatusWaiting && x.String() == "map[tick:1 tock:1]"
	})
	stop()
	if err := client.Signal(within(t), "run", "go", 1); err != nil {
		t.Fatal(err)
	}
	atVersion(t, s, "v1", ticker(func(c *durable.Ctx) error { <-c.Done(); return nil }))
	var info *durable.RunInfo
	waitFor(t, func() bool {
		info = read(client.Get(within(t), "run"))(t)
		return info.Diverged || info.Status == durable.StatusCompleted
	})
	if info.Diverged {
		t.Error(info.Reason)
	}
}
