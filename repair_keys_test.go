package durable_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// A step that failed is executed again with its key although the code calls it otherwise now.
func TestARenamedStepKeepsItsKey(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var f fixable
		version := func(name string, opts ...durable.WorkflowOption) (*durable.Workflow[string, string], *durable.Engine, func()) {
			w := durable.Define("w", func(c *durable.Ctx, in string) (string, error) {
				if in != "items" {
					return "done", l.do(c, name, f.err())
				}
				_, err := c.Map(name, []int{1}, func(ctx context.Context, _ int) (int, error) { l.note(ctx); return 0, f.err() })
				return "done", err
			}, opts...)
			e := engineOn(t, s, w)
			return w, e, running(t, e)
		}
		retries := durable.RetryRun(durable.Fixed(time.Hour, 9))
		w, e, stop := version("charge")
		step := orFail(w.Start(within(t), e, "step", durable.ID("step")))(t)
		items := orFail(w.Start(within(t), e, "items", durable.ID("items")))(t)
		wantFailed(t, step)
		wantFailed(t, items)
		stop()
		w, e, stop = version("charge", retries)
		orFail(w.Start(within(t), e, "", durable.ID("retries")))(t)
		waitFor(t, func() bool { return len(orFail(e.Generations(within(t), "retries"))(t)) == 2 })
		stop()
		slices.Sort(l.calls)
		l.want(t, "before the change", "charge", "charge", "charge/0")

		_, e, _ = version("charge card", retries, durable.Renamed("pay", "charge"), durable.Renamed("charge", "charge card"))
		report := orFail(e.Preflight(within(t), durable.Filter{}))(t)
		if len(report.Needed) != 1 || report.Needed[0].Name != "charge" {
			t.Errorf("needed: %+v", report.Needed)
		}
		for _, r := range []struct {
			id, want string
			repair   func(id string, opts ...durable.ControlOption) (*durable.Repaired, error)
		}{
			{"step", "charge", func(id string, opts ...durable.ControlOption) (*durable.Repaired, error) {
				return e.Retry(within(t), id)
			}},
			{"items", "charge/0", func(id string, opts ...durable.ControlOption) (*durable.Repaired, error) {
				return e.Retry(within(t), id, durable.From("charge"))
			}},
			{"retries", "charge", func(id string, opts ...durable.ControlOption) (*durable.Repaired, error) {
				return e.Fork(within(t), id, durable.FromEnd())
			}},
		} {
			f.fixed.Store(false)
			orFail(r.repair(r.id))(t)
			waitFor(t, func() bool { // it fails again, and the code retries it in an hour
				all := orFail(e.Generations(within(t), r.id))(t)
				return len(all) > 2 && all[len(all)-1].Verb == durable.VerbRetry && all[len(all)-1].Actor == ""
			})
			f.fixed.Store(true)
			orFail(e.Fork(within(t), r.id, durable.FromEnd()))(t)
			awaitStatus(t, e, r.id, durable.StatusCompleted)
			l.want(t, r.id, r.want, r.want)
		}
	})
}

// Undoes names a step, a Map or a branch, by the name that the code has now: a retry executes again what the compensation undid.
func TestUndoesOfAMapABranchAndARenamedStep(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var f fixable
		version := func(fee string, opts ...durable.WorkflowOption) (*durable.Workflow[string, string], *durable.Engine, func()) {
			w := durable.Define("w", func(c *durable.Ctx, _ string) (string, error) {
				err := c.Compensate("refund", func(ctx context.Context) error { l.note(ctx); return nil }, durable.Undoes("charge", "left", fee, "later"))
				if err != nil {
					return "", err
				}
				if _, err := c.Map("charge", []int{1}, func(ctx context.Context, _ int) (int, error) { l.note(ctx); return 0, nil }); err != nil {
					return "", err
				}
				if _, err := c.Go("left", func(c *durable.Ctx) (int, error) { return 0, l.do(c, "hold", nil) }).Wait(); err != nil {
					return "", err
				}
				if err := l.do(c, fee, nil); err != nil {
					return "", err
				}
				if _, err := c.Receive[int]("go"); err != nil {
					return "", err
				}
				if err := l.do(c, "ship", f.err()); err != nil {
					return "", err
				}
				return "done", l.do(c, "later", nil)
			}, opts...)
			e := engineOn(t, s, w)
			return w, e, running(t, e)
		}
		w, e, stop := version("fee")
		orFail(w.Start(within(t), e, "", durable.ID("a")))(t)
		awaitStatus(t, e, "a", durable.StatusWaiting)
		stop()
		w, e, _ = version("small fee", durable.Renamed("fee", "small fee"))
		if err := e.Signal(within(t), "a", "go", 1); err != nil {
			t.Fatal(err)
		}
		awaitStatus(t, e, "a", durable.StatusFailed)
		l.want(t, "at first", "charge/0", "left/hold", "fee", "ship", "refund")
		orFail(e.Retry(within(t), "a"))(t)
		awaitStatus(t, e, "a", durable.StatusFailed)
		l.want(t, "the first retry", "charge/0#2", "left/hold#2", "small fee", "ship", "refund#2")
		f.fixed.Store(true)
		orFail(e.Retry(within(t), "a"))(t)
		wantResult(t, w, e, "a", "done")
		l.want(t, "the second retry", "charge/0#3", "left/hold#3", "small fee#3", "ship", "later#3")
	})
}
