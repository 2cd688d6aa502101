package durable_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// shop is a workflow with a recorded step, a compensation and a signal that it waits for. The code of its call "charge" changes.
type shop struct{ charged, refunded, shipped atomic.Int32 }

func (x *shop) define(charge func(c *durable.Ctx) error, opts ...durable.WorkflowOption) *durable.Workflow[int, string] {
	return durable.Define("shop", func(c *durable.Ctx, _ int) (string, error) {
		if err := c.Compensate("refund", func(context.Context) error { x.refunded.Add(1); return nil }); err != nil {
			return "", err
		}
		if err := charge(c); err != nil {
			return "", err
		}
		if _, err := c.Receive[int]("go"); err != nil {
			return "", err
		}
		return "shipped", c.Do("ship", func(context.Context) error { x.shipped.Add(1); return nil })
	}, opts...)
}

func (x *shop) charge(c *durable.Ctx) error {
	return c.Do("charge", func(context.Context) error { x.charged.Add(1); return nil })
}

// asSleep is the call charge with another kind.
func asSleep(c *durable.Ctx) error { return c.Sleep("charge", time.Hour) }

// atVersion executes a workflow in a process of the version, until the returned function is called.
func atVersion(t *testing.T, s durable.Store, version string, w durable.Definition) (stop func()) {
	t.Helper()
	return running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Version: version, Lease: 3 * time.Second, ParkAfter: time.Millisecond}))
}

// waiting starts the run "run" with the old code at v1, up to its wait for a signal, and stops the process.
func (x *shop) waiting(t *testing.T, s durable.Store) (*durable.Engine, *durable.Run[string]) {
	t.Helper()
	w := x.define(x.charge)
	stop := atVersion(t, s, "v1", w)
	client := engineOn(t, s)
	run, err := w.Start(within(t), client, 0, durable.ID("run"))
	if err != nil {
		t.Fatal(err)
	}
	awaitStatus(t, client, "run", durable.StatusWaiting)
	stop()
	if err := client.Signal(within(t), "run", "go", 1); err != nil {
		t.Fatal(err)
	}
	return client, run
}

// Code that does not fit the history holds the run: nothing is executed or compensated, and the reason, the call, both sides and
// the version are there to read. The old version continues it without a hand.
func TestDriftHoldsARunUntilAVersionFits(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, run := x.waiting(t, s)
		atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		info := read(client.Get(within(t), "run"))(t)
		for _, part := range []string{`"v2"`, `"charge"`, "recorded as a step", "a sleep"} {
			if !strings.Contains(info.Reason, part) {
				t.Errorf("the reason %q does not contain %s", info.Reason, part)
			}
		}
		all := read(client.Divergences(within(t), "run"))(t)
		if !info.Diverged || len(all) != 1 || all[0].Version != "v2" || all[0].Call != "charge" || all[0].At.IsZero() {
			t.Errorf("diverged %t: %+v", info.Diverged, all)
		}
		atVersion(t, s, "v1", x.define(x.charge)) // beside v2
		if out, err := run.Result(within(t)); out != "shipped" || err != nil || x.charged.Load() != 1 || x.refunded.Load() != 0 || x.shipped.Load() != 1 {
			t.Errorf("%q, %v, charged %d, refunded %d, shipped %d times", out, err, x.charged.Load(), x.refunded.Load(), x.shipped.Load())
		}
		waitFor(t, func() bool { return len(read(client.Divergences(within(t), "run"))(t)) == 0 })
	})
}

// A version that diverged does not try the run again by itself, also after a restart; an operator's resume does.
func TestDivergedVersionTriesARunOnlyWhenItIsResumed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, run := x.waiting(t, s)
		stop := atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		stop()
		before := read(client.Divergences(within(t), "run"))(t)
		stop = atVersion(t, s, "v2", x.define(asSleep))
		awaitNewRun(t, s)
		stop()
		if after := read(client.Divergences(within(t), "run"))(t); len(after) != 1 || !after[0].At.Equal(before[0].At) {
			t.Errorf("tried again: %+v, then %+v", before, after)
		}
		if _, err := client.Resume(within(t), "run"); err != nil {
			t.Fatal(err)
		}
		atVersion(t, s, "v2", x.define(x.charge)) // the same version, mended
		if _, err := run.Result(within(t)); err != nil {
			t.Error(err)
		}
	})
}

// awaitNewRun waits until the workers have executed a run that is started now.
func awaitNewRun(t *testing.T, s durable.Store) {
	t.Helper()
	w := new(shop).define(asSleep)
	if _, err := w.Start(within(t), engineOn(t, s), 0, durable.ID("new")); err != nil {
		t.Fatal(err)
	}
	waitFor(t, func() bool { return len(historyOf(t, engineOn(t, s), "new")) > 0 })
}

// A pause on top of a hold stays when a version fits. A cancel of a held run is carried out by a version that fits.
func TestPauseAndCancelOfAHeldRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		client, run := x.waiting(t, s)
		stop := atVersion(t, s, "v2", x.define(asSleep))
		awaitStatus(t, client, "run", durable.StatusPaused)
		if _, err := client.Pause(within(t), "run", durable.Reason("look first")); err != nil {
			t.Fatal(err)
		}
		if _, err := client.Cancel(within(t), "run"); err != nil {
			t.Fatal(err)
		}
		waitFor(t, func() bool { return read(client.Get(within(t), "run"))(t).Diverged }) // v2 diverges again
		stop()
		if x.refunded.Load() != 0 {
			t.Error("it was compensated by code that does not fit")
		}
		atVersion(t, s, "v1", x.define(x.charge))
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrCancelled) || x.refunded.Load() != 1 || x.shipped.Load() != 0 {
			t.Errorf("%v, refunded %d, shipped %d times", err, x.refunded.Load(), x.shipped.Load())
		}
	})
}

// With DriftContinues the function gets the error, and the run fails and is compensated.
func TestDriftContinues(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(shop)
		_, run := x.waiting(t, s)
		atVersion(t, s, "v2", x.define(asSleep, durable.OnDrift(durable.DriftContinues)))
		if _, err := run.Result(within(t)); !errors.Is(err, durable.ErrDiverged) || x.refunded.Load() != 1 {
			t.Errorf("%v, refunded %d times", err, x.refunded.Load())
		}
	})
}

func TestOnDriftIsChecked(t *testing.T) {
	for _, opts := range [][]durable.WorkflowOption{
		{durable.OnDrift(7)}, {durable.OnDrift(durable.DriftHolds), durable.OnDrift(durable.DriftHolds)},
	} {
		if _, err := durable.New(openStore(t), durable.Config{Workflows: []durable.Definition{new(shop).define(asSleep, opts...)}}); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("got %v", err)
		}
	}
}

// An input that does not decode holds the run. If nothing of the run is recorded, the input itself is likely wrong, and the reason says so.
func TestUnreadableInputOfARunThatHasNotBegun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		client, _ := new(shop).waiting(t, s) // its input is a number
		asText := durable.Define("shop", func(c *durable.Ctx, in string) (string, error) { return in, nil })
		if _, err := new(shop).define(asSleep).Start(within(t), client, 7, durable.ID("new")); err != nil {
			t.Fatal(err)
		}
		atVersion(t, s, "v2", asText)
		const startAgain, oldType = "start it again with an input that decodes, and terminate this run", "bring back the old type"
		for id, want := range map[string]string{"run": oldType, "new": startAgain} {
			waitFor(t, func() bool {
				info, err := client.Get(within(t), id)
				return err == nil && info.Diverged
			})
			all, err := client.Divergences(within(t), id)
			if err != nil || len(all) != 1 || all[0].Call != "" || !strings.Contains(all[0].Reason, want) || strings.Contains(all[0].Reason, startAgain) != (want == startAgain) {
				t.Errorf("run %q: %+v, %v", id, all, err)
			}
		}
	})
}
