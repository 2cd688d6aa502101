package durable_test

import (
	"context"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// mapOf makes a Map whose items are counted.
func (x *stepCounts) mapOf(name string, items ...string) func(c *durable.Ctx) error {
	return func(c *durable.Ctx) error {
		_, err := c.Map(name, items, func(_ context.Context, item string) (int, error) { x.add(item); return 0, nil })
		return err
	}
}

// A Map that is not recorded is judged like a step: none of its items is executed while the history holds calls that the code has not made.
func TestANewMapHoldsARunThatHasPassedIt(t *testing.T) {
	both := func(all ...func(c *durable.Ctx) error) func(c *durable.Ctx) error {
		return func(c *durable.Ctx) error {
			for _, f := range all {
				if err := f(c); err != nil {
					return err
				}
			}
			return nil
		}
	}
	for name, test := range map[string]struct {
		before, after func(x *stepCounts) func(c *durable.Ctx) error
		opts          []durable.WorkflowOption
		holds         string // the item that the reason names; empty: the run completes
		ran           string
	}{
		"renamed": {
			before: func(x *stepCounts) func(c *durable.Ctx) error { return x.mapOf("send", "a", "b") },
			after:  func(x *stepCounts) func(c *durable.Ctx) error { return x.mapOf("deliver", "a", "b") },
			holds:  `"deliver/`, ran: "map[a:1 b:1]",
		},
		"renamed, declared": {
			before: func(x *stepCounts) func(c *durable.Ctx) error { return x.mapOf("send", "a", "b") },
			after:  func(x *stepCounts) func(c *durable.Ctx) error { return x.mapOf("deliver", "a", "b") },
			opts:   []durable.WorkflowOption{durable.Renamed("send", "deliver")}, ran: "map[a:1 b:1 end:1]",
		},
		"renamed in a branch": {
			before: func(x *stepCounts) func(c *durable.Ctx) error { return inAwaitedBranch(x.mapOf("send", "a", "b")) },
			after:  func(x *stepCounts) func(c *durable.Ctx) error { return inAwaitedBranch(x.mapOf("deliver", "a", "b")) },
			holds:  `"side/deliver/`, ran: "map[a:1 b:1]",
		},
		"inserted": {
			before: func(x *stepCounts) func(c *durable.Ctx) error { return x.steps("pay") },
			after:  func(x *stepCounts) func(c *durable.Ctx) error { return both(x.mapOf("send", "a", "b"), x.steps("pay")) },
			holds:  `"send/`, ran: "map[pay:1]",
		},
		"inserted, and continues": {
			before: func(x *stepCounts) func(c *durable.Ctx) error { return x.steps("pay") },
			after:  func(x *stepCounts) func(c *durable.Ctx) error { return both(x.mapOf("send", "a", "b"), x.steps("pay")) },
			opts:   []durable.WorkflowOption{durable.OnDrift(durable.DriftContinues)}, ran: "map[a:1 b:1 end:1 pay:1]",
		},
		"moved into a branch": {
			before: func(x *stepCounts) func(c *durable.Ctx) error { return x.mapOf("send", "a", "b") },
			after:  func(x *stepCounts) func(c *durable.Ctx) error { return inAwaitedBranch(x.mapOf("send", "a", "b")) },
			holds:  `"side/send/`, ran: "map[a:1 b:1]",
		},
		"moved out of a branch": {
			before: func(x *stepCounts) func(c *durable.Ctx) error { return inAwaitedBranch(x.mapOf("send", "a", "b")) },
			after:  func(x *stepCounts) func(c *durable.Ctx) error { return x.mapOf("send", "a", "b") },
			holds:  `"send/`, ran: "map[a:1 b:1]",
		},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(stepCounts)
				changed := waits(test.after(x), x.steps("end"), test.opts...)
				info := afterChange(t, s, waits(test.before(x), x.steps("end")), changed)
				if info.Diverged != (test.holds != "") || !strings.Contains(info.Reason, test.holds) || !info.Diverged && info.Status != durable.StatusCompleted {
					t.Errorf("it is %s, diverged %t: %s", info.Status, info.Diverged, info.Reason)
				}
				if x.String() != test.ran {
					t.Errorf("executed %s, want %s", x, test.ran)
				}
				if !info.Diverged {
					return
				}
				if report := read(engineOn(t, s, changed).Preflight(within(t), durable.Filter{}))(t); report.Diverged != 1 {
					t.Errorf("the preflight reports %+v", report.Runs)
				}
			})
		})
	}
}
