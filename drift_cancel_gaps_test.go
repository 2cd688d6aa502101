package durable_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
)

// refundedOrder is a workflow that does something first, registers a refund, pays and waits. It counts the refunds.
type refundedOrder struct{ registrations, refunds atomic.Int32 }

type orderPart = func(c *durable.Ctx) error

func (x *refundedOrder) define(before, pay orderPart) *durable.Workflow[int, int] {
	return durable.Define("order", func(c *durable.Ctx, in int) (int, error) {
		if err := before(c); err != nil {
			return 0, err
		}
		if err := c.Compensate("refund", func(context.Context) error { x.refunds.Add(1); return nil }); err != nil {
			return 0, err
		}
		x.registrations.Add(1)
		return in, pay(c)
	})
}

// waiting starts the order with the workflow, up to a wait behind its compensation, and stops the process.
func (x *refundedOrder) waiting(t *testing.T, s durable.Store, w *durable.Workflow[int, int], opts ...durable.StartOption) *durable.Engine {
	t.Helper()
	stop := orderAtVersion(t, s, "v1", w)
	client := engineOn(t, s)
	read(w.Start(within(t), client, 1, append(opts, durable.ID("order"))...))(t)
	waitFor(t, func() bool {
		info := read(client.Get(within(t), "order"))(t)
		return x.registrations.Load() > 0 && info.Status == durable.StatusWaiting && len(info.OpenCalls) > 0
	})
	stop()
	return client
}

func orderAtVersion(t *testing.T, s durable.Store, version string, w durable.Definition) (stop func()) {
	t.Helper()
	return running(t, engineWith(t, s, durable.Config{
		Workflows: []durable.Definition{w, neverEnding}, Version: version, Lease: 3 * time.Second, ParkAfter: time.Millisecond,
	}))
}

// awaitHeldOrEnded returns when the order is held or has ended.
func awaitHeldOrEnded(t *testing.T, client *durable.Engine) (info *durable.RunInfo) {
	t.Helper()
	waitFor(t, func() bool {
		info = read(client.Get(within(t), "order"))(t)
		return info.Diverged || !info.EndedAt.IsZero()
	})
	return info
}

// wantRefunded checks that the order ends under the workflow, with its refund.
func (x *refundedOrder) wantRefunded(t *testing.T, s durable.Store, version string, w *durable.Workflow[int, int], want durable.Status) {
	t.Helper()
	orderAtVersion(t, s, version, w)
	awaitStatus(t, engineOn(t, s), "order", want)
	if x.refunds.Load() != 1 {
		t.Errorf("refunded %d times", x.refunds.Load())
	}
}

// wantPreflightDiverged checks that a preflight of the order reports that a worker with the workflow would hold it.
func wantPreflightDiverged(t *testing.T, s durable.Store, w *durable.Workflow[int, int]) {
	t.Helper()
	e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, neverEnding}})
	if got := read(e.Preflight(within(t), durable.Filter{Workflow: "order"}))(t); got.Diverged != 1 {
		t.Errorf("the preflight found %+v", got)
	}
}

func noCalls(*durable.Ctx) error { return nil }

func doNothing(name string) orderPart {
	return func(c *durable.Ctx) error { return c.Do(name, func(context.Context) error { return nil }) }
}

func payAndWait(c *durable.Ctx) error {
	if err := doNothing("pay")(c); err != nil {
		return err
	}
	_, err := c.Receive[int]("gate")
	return err
}

func payByChild(c *durable.Ctx) error {
	_, err := c.Child("pay", neverEnding, 1)
	return err
}

func reserve(items []string, opts ...durable.MapOption) orderPart {
	return func(c *durable.Ctx) error {
		_, err := c.Map("reserve", items, func(_ context.Context, item string) (string, error) { return item, nil }, opts...)
		return err
	}
}

var byItem = durable.Key(func(item string) string { return item })

// A run that must end is held under code that comes to a new call before it has registered the compensations again, whatever the call
// is, if a call after it has an outcome. A preflight reports it. Code that fits ends the run, with its compensations.
func TestNewCallsBeforeACompensationHoldARunThatMustEnd(t *testing.T) {
	two := []string{"a", "b"}
	for name, test := range map[string]struct{ before, after, pay orderPart }{
		"the Key of a Map was removed":         {reserve(two, byItem), reserve(two), payAndWait},
		"an item was added to a Map":           {reserve(two, byItem), reserve([]string{"a", "b", "gift"}, byItem), payAndWait},
		"a step became a Map":                  {doNothing("reserve"), reserve(two), payAndWait},
		"a step moved into a branch":           {doNothing("reserve"), inBranch("stock", doNothing("reserve")), payAndWait},
		"a branch was renamed":                 {inBranch("stock", doNothing("reserve")), inBranch("store", doNothing("reserve")), payAndWait},
		"a Map moved into a branch":            {reserve(two), inBranch("stock", reserve(two)), payAndWait},
		"a choice in front":                    {noCalls, inRace(doNothing("check")), payAndWait},
		"a step was removed, and a child runs": {doNothing("check"), noCalls, payByChild},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(refundedOrder)
				old, changed := x.define(test.before, test.pay), x.define(test.after, test.pay)
				client := x.waiting(t, s, old)
				must(t)(client.Cancel(within(t), "order"))
				wantPreflightDiverged(t, s, changed)
				stop := orderAtVersion(t, s, "v2", changed)
				if info := awaitHeldOrEnded(t, client); !info.Diverged || x.refunds.Load() != 0 {
					t.Fatalf("refunded %d times, %+v", x.refunds.Load(), info)
				}
				stop()
				x.wantRefunded(t, s, "v3", old, durable.StatusCancelled)
			})
		})
	}
}

// A run that expires while no worker has it is held like a cancelled one.
func TestAnExpiredRunWithANewCallBeforeItsCompensationIsHeld(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(refundedOrder)
		old := x.define(reserve([]string{"a"}, byItem), payAndWait)
		client := x.waiting(t, s, old)
		if err := client.SetTimeout(within(t), "order", time.Millisecond); err != nil {
			t.Fatal(err)
		}
		stop := orderAtVersion(t, s, "v2", x.define(reserve([]string{"a"}), payAndWait))
		if info := awaitHeldOrEnded(t, client); !info.Diverged {
			t.Fatalf("%+v", info)
		}
		stop()
		x.wantRefunded(t, s, "v3", old, durable.StatusExpired)
	})
}

// A cancel of a held run does not end the run under the code that holds it.
func TestACancelOfAHeldRunWaitsForCodeThatFits(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(refundedOrder)
		old, changed := x.define(reserve([]string{"a"}, byItem), payAndWait), x.define(reserve([]string{"a"}), payAndWait)
		client := x.waiting(t, s, old)
		must(t)(client.Pause(within(t), "order"))
		must(t)(client.Resume(within(t), "order"))
		stop := orderAtVersion(t, s, "v2", changed)
		awaitStatus(t, client, "order", durable.StatusPaused)
		must(t)(client.Cancel(within(t), "order"))
		stop()
		stop = orderAtVersion(t, s, "v2b", changed)
		waitFor(t, func() bool {
			info := read(client.Get(within(t), "order"))(t)
			return info.Status == durable.StatusCancelled || info.Diverged && info.Version == "v2b"
		})
		if info := read(client.Get(within(t), "order"))(t); info.Status == durable.StatusCancelled || x.refunds.Load() != 0 {
			t.Fatalf("refunded %d times, %+v", x.refunds.Load(), info)
		}
		stop()
		x.wantRefunded(t, s, "v3", old, durable.StatusCancelled)
	})
}

// The code of a run that must end is not held if it was not changed, and registers all its compensations again.
func TestACancelledRunOfUnchangedCodeIsNotHeld(t *testing.T) {
	failing := func(_ context.Context, item string) (string, error) {
		if item == "b" {
			return "", durable.Permanent(errors.New("sold out"))
		}
		return item, nil
	}
	ignores := func(part orderPart) orderPart {
		return func(c *durable.Ctx) error { _ = part(c); return nil }
	}
	loser := func(c *durable.Ctx) (int, error) { return c.Receive[int]("never") }
	for name, test := range map[string]struct{ before, pay orderPart }{
		"a failed Map": {ignores(func(c *durable.Ctx) error {
			_, err := c.Map("reserve", []string{"a", "b", "c", "d"}, failing, durable.Parallel(1))
			return err
		}), payAndWait},
		"a failed Map that collects": {ignores(func(c *durable.Ctx) error {
			_, err := c.Map("reserve", []string{"a", "b", "c"}, failing, durable.Collect())
			return err
		}), payAndWait},
		"a Map with an invalid name": {ignores(reserve([]string{"a", ""}, byItem)), payAndWait},
		"a Map that waits": {noCalls, func(c *durable.Ctx) error {
			if err := doNothing("pay")(c); err != nil {
				return err
			}
			_, err := c.Map("send", []string{"a", "b"}, func(_ context.Context, item string) (string, error) {
				if item == "b" {
					return "", errors.New("no reply")
				}
				return item, nil
			}, durable.ItemOptions(durable.Retry(durable.Fixed(time.Hour, 9))))
			return err
		}},
		"a call with an invalid name": {ignores(doNothing("")), payAndWait},
		"a decided choice": {func(c *durable.Ctx) error {
			a, b := c.Go("a", loser), c.Go("b", func(c *durable.Ctx) (int, error) { return 0, doNothing("x")(c) })
			_, _, err := durable.Any(c, "first", durable.CancelLosers, a, b)
			return err
		}, payAndWait},
		"a choice whose losers continue": {func(c *durable.Ctx) error {
			a, b := c.Go("a", loser), c.Go("b", func(c *durable.Ctx) (int, error) { return 0, doNothing("x")(c) })
			_, _, err := durable.Any(c, "first", durable.KeepLosers, a, b)
			return err
		}, payAndWait},
		"a first failure of branches": {ignores(func(c *durable.Ctx) error {
			b := c.Go("b", func(c *durable.Ctx) (int, error) { return 0, errors.New("no") })
			_, err := durable.AllOrCancel(c, "all", c.Go("a", loser), b)
			return err
		}), payAndWait},
		"a child that runs": {func(c *durable.Ctx) error {
			_, err := c.StartChild("kid", neverEnding, 1)
			return err
		}, payAndWait},
		"a child that runs, and a wait for the context": {noCalls, func(c *durable.Ctx) error {
			if _, err := c.StartChild("kid", neverEnding, 1); err != nil {
				return err
			}
			c.Go("side", loser)
			<-c.Done()
			return c.Err()
		}},
		"nested branches":                    {inBranch("outer", inOrder(inBranch("inner", doNothing("x")), doNothing("y"))), inBranch("outer 2", inBranch("inner", payAndWait))},
		"a branch that waits and is awaited": {doNothing("reserve"), inBranch("pay", payAndWait)},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				x := new(refundedOrder)
				w := x.define(test.before, test.pay)
				client := x.waiting(t, s, w)
				must(t)(client.Cancel(within(t), "order"))
				e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, neverEnding}})
				if got := read(e.Preflight(within(t), durable.Filter{Workflow: "order"}))(t); got.Diverged != 0 {
					t.Errorf("the preflight found %+v", got)
				}
				x.wantRefunded(t, s, "v1", w, durable.StatusCancelled)
			})
		})
	}
}

// The context of a run that must end does not end at the open call of a branch while the function repeats its recorded calls. So code that
// looks at its context registers all its compensations again, and is not held.
func TestAnOpenCallOfABranchDoesNotEndTheContextOfAFunctionThatReplays(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		x := new(refundedOrder)
		var replays atomic.Bool
		w := x.define(inOrder(func(c *durable.Ctx) error {
			c.Go("side", func(c *durable.Ctx) (int, error) { return c.Receive[int]("never") })
			return nil
		}, doNothing("a"), func(c *durable.Ctx) error {
			if replays.Load() {
				realtime.Pass(50*time.Millisecond, "the branch comes to its open call meanwhile")
			}
			return c.Err()
		}, doNothing("b"), (*durable.Ctx).Err), payAndWait)
		client := x.waiting(t, s, w)
		must(t)(client.Cancel(within(t), "order"))
		replays.Store(true)
		x.wantRefunded(t, s, "v1", w, durable.StatusCancelled)
	})
}
