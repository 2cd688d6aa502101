package durable_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/seed8ec063be/durable"
)

// A run is held if newer code gives the items of a completed Map other names: it would execute all of them again.
func TestOtherKeysOfACompletedMapHoldTheRun(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var charged atomic.Int32
		charge := func(context.Context, int) (int, error) { return int(charged.Add(1)), nil }
		byNumber := durable.Key(func(n int) string { return fmt.Sprint("order ", n) })
		inFunction := func(c *durable.Ctx, opts ...durable.MapOption) error {
			_, err := c.Map("charge", []int{1, 2}, charge, opts...)
			return err
		}
		inBranch := func(c *durable.Ctx, opts ...durable.MapOption) error {
			_, err := c.Go("branch", func(c *durable.Ctx) (int, error) { return 0, inFunction(c, opts...) }).Wait()
			return err
		}
		function := func(charges func(*durable.Ctx, ...durable.MapOption) error, opts ...durable.MapOption) *durable.Workflow[int, int] {
			return durable.Define("charges", func(c *durable.Ctx, _ int) (int, error) {
				if err := charges(c, opts...); err != nil {
					return 0, err
				}
				return c.Receive[int]("go")
			})
		}
		graph := func(opts ...durable.NodeOption) *durable.Workflow[int, int] {
			return durable.DefineGraph("charges", func(g *durable.Graph[int]) *durable.Node[int] {
				list := g.Step("list", constant([]int{1, 2}))
				charges := g.Each("charge", list, func(ctx context.Context, n int, _ *durable.NodeInput) (int, error) { return charge(ctx, n) }, opts...)
				return g.Receive[int]("go", durable.Needs(charges))
			})
		}
		for where, c := range map[string]struct {
			before, after *durable.Workflow[int, int]
			receive       string
		}{
			"function":    {function(inFunction), function(inFunction, byNumber), "go"},
			"branch":      {function(inBranch), function(inBranch, byNumber), "go"},
			"graph":       {graph(), graph(byNumber), "go/receive"},
			"key removed": {function(inFunction, byNumber), function(inFunction), "go"},
		} {
			charged.Store(0)
			old := engineWith(t, s, durable.Config{Workflows: []durable.Definition{c.before}})
			stop := running(t, old)
			run := orFail(c.before.Start(within(t), old, 1, durable.ID(where)))(t)
			awaitCheckpoint(t, old, where, c.receive, "started")
			stop()
			client := engineWith(t, s, durable.Config{Workflows: []durable.Definition{c.after}})
			if report := read(client.Preflight(within(t), durable.Filter{}))(t); report.Diverged != 1 {
				t.Errorf("%s: the preflight reports %+v", where, report)
			}
			stop = running(t, client)
			if err := client.Signal(within(t), where, "go", 1); err != nil {
				t.Fatal(err)
			}
			waitFor(t, func() bool { return read(client.Get(within(t), where))(t).Diverged })
			if info := read(client.Get(within(t), where))(t); !strings.Contains(info.Reason, "by the same Key") || charged.Load() != 2 {
				t.Errorf("%s: the run is %s, %q; charged %d times", where, info.Status, info.Reason, charged.Load())
			}
			stop()
			if _, err := client.Terminate(within(t), run.ID()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// The reason for which a run is held names a call with its scope, as the history does.
func TestTheReasonOfAHoldNamesTheScopeOfTheCall(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		before := durable.Define("charges", func(c *durable.Ctx, _ int) (int, error) {
			if _, err := c.Map("charge", []int{1, 2}, func(context.Context, int) (string, error) { return "paid", nil }); err != nil {
				return 0, err
			}
			return c.Receive[int]("go")
		})
		after := durable.Define("charges", func(c *durable.Ctx, _ int) (int, error) {
			if _, err := c.Map("charge", []int{1, 2}, func(context.Context, int) (int, error) { return 1, nil }, durable.Parallel(1)); err != nil {
				return 0, err
			}
			return c.Receive[int]("go")
		})
		old := engineWith(t, s, durable.Config{Workflows: []durable.Definition{before}})
		stop := running(t, old)
		orFail(before.Start(within(t), old, 1, durable.ID("run")))(t)
		awaitCheckpoint(t, old, "run", "go", "started")
		stop()
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{after}})
		running(t, e)
		orFail(0, e.Signal(within(t), "run", "go", 1))(t) // the run may have left memory
		awaitStatus(t, e, "run", durable.StatusPaused)
		if info := read(e.Get(within(t), "run"))(t); !info.Diverged || !strings.Contains(info.Reason, `the output of step "charge/0" in run "run"`) {
			t.Errorf("the reason is %s", info.Reason)
		}
	})
}
