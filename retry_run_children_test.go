package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A parent that retries itself ends, whatever it was that failed two levels beneath it: what failed by itself continues after what is recorded, and
// after compensations of which nobody knows what they undid, the parent fails.
func TestARunThatRetriesItselfOverGrandchildrenEnds(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		undoing := &till{failures: 1, err: errClosed}
		var counted, calls atomic.Int32
		byItself := durable.Define("by itself", func(c *durable.Ctx, _ int) (string, error) {
			if err := c.Do("count", func(context.Context) error { counted.Add(1); return nil }); err != nil {
				return "", err
			}
			if calls.Add(1) == 1 {
				return "", errClosed
			}
			return "paid", nil
		})
		for _, c := range []struct {
			name     string
			grandkid *durable.Workflow[int, string]
			fails    bool
		}{{name: "failed by itself", grandkid: byItself}, {name: "compensated", grandkid: undoing.define(), fails: true}} {
			kid := durable.Define("kid", func(ctx *durable.Ctx, _ int) (string, error) { return ctx.Child("grandkid", c.grandkid, 0) })
			parent := durable.Define("parent", func(c *durable.Ctx, _ int) (string, error) { return c.Child("kid", kid, 0) }, durable.RetryRun(durable.Fixed(time.Millisecond, 3)))
			e := engineOn(t, s, parent, kid, c.grandkid)
			stop := running(t, e)
			out, err := parent.Call(within(t), e, 0, durable.ID(c.name))
			if _, failed := errors.AsType[*durable.RunError](err); failed != c.fails || !failed && (out != "paid" || err != nil) {
				t.Errorf("%s: %q, %v", c.name, out, err)
			}
			if n := len(read(e.Generations(within(t), c.name))(t)); !c.fails && n != 2 {
				t.Errorf("%s: %d generations, want 2", c.name, n)
			}
			stop()
		}
		if counted.Load() != 1 {
			t.Errorf("the recorded step was executed %d times", counted.Load())
		}
	})
}

// A repair of a run that waits for its retry executes at once the descendants that are retried with it, too.
func TestAForkOfARunThatWaitsForItsRetryExecutesItsChildren(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		for id, opts := range map[string][]durable.ControlOption{"a": {durable.FromEnd()}, "b": {durable.FromEnd(), durable.InterruptSteps()}} {
			x := &till{failures: 1, err: errClosed}
			grandkid := durable.Define("grandkid", func(c *durable.Ctx, _ int) (string, error) { return "paid", c.Do("charge", x.charge) })
			kid := durable.Define("kid", func(c *durable.Ctx, _ int) (string, error) { return c.Child("grandkid", grandkid, 0) })
			parent := durable.Define("parent", func(c *durable.Ctx, _ int) (string, error) { return c.Child("kid", kid, 0) }, durable.RetryRun(durable.Fixed(time.Hour, 3)))
			e := engineOn(t, s, parent, kid, grandkid)
			stop := running(t, e)
			run := read(parent.Start(within(t), e, 0, durable.ID(id)))(t)
			waitFor(t, func() bool { return len(read(e.Generations(within(t), id))(t)) == 2 })
			must(t)(e.Pause(within(t), id))
			must(t)(e.Resume(within(t), id))
			grandchild := func() *durable.RunNode { return read(e.Tree(within(t), id))(t).Children[0].Children[0] }
			waitFor(t, func() bool {
				kid := grandchild()
				return kid.Status == durable.StatusWaiting && kid.WakeAt.After(time.Now())
			}) // the resume has not brought it forward
			if _, err := e.Fork(within(t), id, opts...); err != nil {
				t.Fatal(err)
			}
			if out, err := run.Result(within(t)); out != "paid" || err != nil {
				t.Errorf("%s: %q, %v", id, out, err)
			}
			stop()
		}
	})
}

// A parent does not retry itself over a child whose error was marked by Permanent, in whatever way the error reached the parent.
func TestAParentDoesNotRetryAPermanentFailureOfAChild(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		step := durable.Define("step", func(c *durable.Ctx, _ int) (string, error) {
			return "", c.Do("charge", func(context.Context) error { return durable.Permanent(errClosed) })
		})
		returned := durable.Define("returned", func(*durable.Ctx, int) (string, error) { return "", durable.Permanent(errClosed) })
		between := durable.Define("between", func(c *durable.Ctx, _ int) (string, error) { return c.Child("grandkid", step, 0) })
		often := durable.RetryRun(durable.Fixed(time.Millisecond, 3))
		parents := []*durable.Workflow[int, string]{
			durable.Define("of a step", func(c *durable.Ctx, _ int) (string, error) { return c.Child("kid", step, 0) }, often),
			durable.Define("of a function", func(c *durable.Ctx, _ int) (string, error) { return c.Child("kid", returned, 0) }, often),
			durable.Define("of a grandchild", func(c *durable.Ctx, _ int) (string, error) { return c.Child("kid", between, 0) }, often),
			durable.Define("in a branch", func(c *durable.Ctx, _ int) (string, error) {
				return c.Go("b", func(c *durable.Ctx) (string, error) { return c.Child("kid", step, 0) }).Wait()
			}, often),
			durable.DefineGraph("of a graph", func(g *durable.Graph[int]) *durable.Node[string] {
				return g.Child("kid", step, func(*durable.NodeInput) (int, error) { return 0, nil })
			}, often),
		}
		defs := []durable.Definition{step, returned, between}
		for _, p := range parents {
			defs = append(defs, p)
		}
		e := engineOn(t, s, defs...)
		running(t, e)
		for _, p := range parents {
			if _, err := p.Call(within(t), e, 0, durable.ID(p.Name())); err == nil {
				t.Errorf("%s: the run completed", p.Name())
			}
			if n := len(read(e.Generations(within(t), p.Name()))(t)); n != 1 {
				t.Errorf("%s: %d generations, want 1", p.Name(), n)
			}
		}
	})
}
