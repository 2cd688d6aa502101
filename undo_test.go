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

// sale is a workflow whose compensations can be held, and whose code changes.
type sale struct {
	undoing                     gate // the compensation "release" blocks on it
	packing                     gate // the step "pack" blocks on it
	refunded, released, shipped atomic.Int32
}

func newSale() *sale { return &sale{undoing: newGate(), packing: newGate()} }

// define returns a version of the workflow. The workflow calls charge after it registered the compensations, and before the step
// "pack".
func (x *sale) define(charge func(c *durable.Ctx) error, compensations ...string) *durable.Workflow[int, string] {
	return durable.Define("sell", func(c *durable.Ctx, _ int) (string, error) {
		for _, name := range compensations {
			if err := c.Compensate(name, func(ctx context.Context) error {
				if name == "refund" {
					x.refunded.Add(1)
					return nil
				}
				if err := x.undoing.pass(ctx); err != nil {
					return err
				}
				x.released.Add(1)
				return nil
			}); err != nil {
				return "", err
			}
		}
		if err := charge(c); err != nil {
			return "", err
		}
		if err := c.Do("pack", x.packing.pass); err != nil {
			return "", err
		}
		return c.Step("ship", func(context.Context) (string, error) { x.shipped.Add(1); return "shipped", nil })
	}, durable.OnDrift(durable.DriftContinues))
}

func charge(c *durable.Ctx) error { return c.Do("charge", func(context.Context) error { return nil }) }

// serve executes a version until the returned function is called, which lets no step finish.
func serve(t *testing.T, s durable.Store, w durable.Definition) (stop func()) {
	return running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, Grace: -1}))
}

// A run that has begun to execute compensations ends with its failure, also if corrected code would not fail.
func TestFailedRunDoesNotGoForwardAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := newSale()
		close(x.packing.open)
		stop := serve(t, s, x.define(func(c *durable.Ctx) error {
			if err := charge(c); err != nil {
				return err
			}
			return errDeclined
		}, "release", "refund"))
		client := engineOn(t, s)
		run, err := x.define(charge).Start(within(t), client, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-x.undoing.entered // the refund is recorded
		stop()
		close(x.undoing.open)
		serve(t, s, x.define(charge, "release", "refund"))
		_, err = run.Result(within(t))
		if !errors.Is(err, errDeclined) || x.shipped.Load() != 0 || x.refunded.Load() != 1 || x.released.Load() != 1 {
			t.Errorf("%v, shipped %d, refunded %d, released %d times", err, x.shipped.Load(), x.refunded.Load(), x.released.Load())
		}
	})
}

// The same holds if no compensation was recorded before the process died.
func TestFailedRunDoesNotGoForwardBeforeItsFirstCompensationIsRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := newSale()
		close(x.packing.open)
		stop := serve(t, s, x.define(func(c *durable.Ctx) error { return errors.Join(charge(c), errDeclined) }, "release"))
		run, err := x.define(charge).Start(within(t), engineOn(t, s), 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-x.undoing.entered
		stop()
		close(x.undoing.open)
		serve(t, s, x.define(charge, "release"))
		if _, err = run.Result(within(t)); !errors.Is(err, errDeclined) || x.shipped.Load() != 0 || x.released.Load() != 1 {
			t.Errorf("%v, shipped %d, released %d times", err, x.shipped.Load(), x.released.Load())
		}
	})
}

// Code that diverges makes the run fail. With the old code back, the run still executes its compensations only.
func TestRollbackOfCodeThatDiverged(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := newSale()
		good := x.define(charge, "release", "refund")
		stop := serve(t, s, good)
		run, err := good.Start(within(t), engineOn(t, s), 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-x.packing.entered
		stop()
		stop = serve(t, s, x.define(func(c *durable.Ctx) error { return c.Sleep("charge", time.Second) }, "release", "refund"))
		<-x.undoing.entered // the refund is recorded
		stop()
		close(x.packing.open)
		close(x.undoing.open)
		serve(t, s, good)
		_, err = run.Result(within(t))
		if !errors.Is(err, durable.ErrDiverged) || x.shipped.Load() != 0 || x.refunded.Load() != 1 || x.released.Load() != 1 {
			t.Errorf("%v, shipped %d, refunded %d, released %d times", err, x.shipped.Load(), x.refunded.Load(), x.released.Load())
		}
	})
}

// If the code registers fewer compensations than the run has to execute, and another one, the run is held until the old code is
// back.
func TestCompensationThatTheCodeLacksHoldsTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := newSale()
		close(x.packing.open)
		failing := func(c *durable.Ctx) error { return errors.Join(charge(c), errDeclined) }
		first := x.define(failing, "release", "refund")
		stop := serve(t, s, first)
		client := engineOn(t, s)
		run, err := first.Start(within(t), client, 0, durable.ID("run"))
		if err != nil {
			t.Fatal(err)
		}
		<-x.undoing.entered
		stop()
		close(x.undoing.open)
		stop = serve(t, s, x.define(failing, "refund", "other"))
		waitFor(t, func() bool { return strings.Contains(read(client.Get(within(t), "run"))(t).Reason, "release") })
		stop()
		serve(t, s, first)
		_, err = run.Result(within(t))
		if !errors.Is(err, errDeclined) || x.refunded.Load() != 1 || x.released.Load() != 1 {
			t.Errorf("%v, refunded %d, released %d times", err, x.refunded.Load(), x.released.Load())
		}
		for _, c := range historyOf(t, client, "run") {
			if c.Name == "other" {
				t.Errorf("a compensation of the other code was executed: %+v", c)
			}
		}
	})
}
