package durable_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/seed8ec063be/durable"
)

// undoneSale is a workflow that reserves and charges, and then fails by itself until it is fixed. The options are those of the
// compensation of the charge.
func undoneSale(l *keyLedger, f *fixable, refund ...durable.StepOption) *durable.Workflow[string, string] {
	return durable.Define("sale", func(c *durable.Ctx, _ string) (string, error) {
		note := func(ctx context.Context) error { l.note(ctx); return nil }
		if err := c.Compensate("release", note, durable.Undoes("reserve")); err != nil {
			return "", err
		}
		if err := l.do(c, "reserve", nil); err != nil {
			return "", err
		}
		if err := c.Compensate("refund", note, refund...); err != nil {
			return "", err
		}
		if err := l.do(c, "charge", nil); err != nil {
			return "", err
		}
		if err := l.do(c, "wrap", nil); err != nil {
			return "", err
		}
		if err := f.err(); err != nil {
			return "", err
		}
		return "shipped", l.do(c, "ship", nil)
	})
}

// repairOf is a repair of the run "r".
type repairOf func(e *durable.Engine, opts ...durable.ControlOption) (*durable.Repaired, error)

func retryWith(t *testing.T, begin durable.ControlOption) repairOf {
	return func(e *durable.Engine, opts ...durable.ControlOption) (*durable.Repaired, error) {
		return e.Retry(within(t), "r", append(opts, begin)...)
	}
}

func forkWith(t *testing.T, begin durable.ControlOption) repairOf {
	return func(e *durable.Engine, opts ...durable.ControlOption) (*durable.Repaired, error) {
		return e.Fork(within(t), "r", append(opts, begin)...)
	}
}

// Each repair of a compensated run under its ID executes again the steps that compensations have undone, wherever the repair begins. If the run
// fails again, the compensations have new idempotency keys.
func TestRepairExecutesUndoneStepsAgain(t *testing.T) {
	for name, test := range map[string]struct {
		repair func(t *testing.T, begin durable.ControlOption) repairOf
		begin  durable.ControlOption
		again  []string // beside the undone steps
	}{
		"retry from the end": {retryWith, durable.FromEnd(), nil},
		"retry from a step":  {retryWith, durable.From("wrap"), []string{"wrap"}},
		"fork from the end":  {forkWith, durable.FromEnd(), nil},
		"fork from a step":   {forkWith, durable.From("charge"), []string{"wrap"}},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				var l keyLedger
				var f fixable
				w := undoneSale(&l, &f, durable.Undoes("charge"))
				e := engineOn(t, s, w)
				running(t, e)
				wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("r")))(t))
				l.want(t, "at first", "reserve", "charge", "wrap", "refund", "release")
				repair := test.repair(t, test.begin)
				plan := orFail(repair(e, durable.DryRun()))(t)
				if want := slices.Concat([]string{"reserve", "charge"}, test.again, []string{"refund", "release"}); !slices.Equal(plan.Dropped, want) {
					t.Errorf("a dry run drops %q, want %q", plan.Dropped, want)
				}
				for _, generation := range []string{"#2", "#3"} {
					f.fixed.Store(generation == "#3")
					orFail(repair(e))(t)
					want := []string{"reserve" + generation, "charge" + generation}
					for _, step := range test.again {
						want = append(want, step+generation)
					}
					if generation == "#2" {
						awaitStatus(t, e, "r", durable.StatusFailed)
						l.want(t, "the repair that fails", append(want, "refund#2", "release#2")...)
					} else {
						wantResult(t, w, e, "r", "shipped")
						l.want(t, "the repair that succeeds", append(want, "ship")...)
					}
				}
			})
		})
	}
}

// A fork under another ID executes the steps again that compensations of the forked run have undone: what was refunded is not shipped unpaid.
func TestAForkUnderAnotherIDExecutesUndoneStepsAgain(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var f fixable
		w := undoneSale(&l, &f, durable.Undoes("charge"))
		e := engineOn(t, s, w)
		running(t, e)
		wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("r")))(t))
		l.want(t, "at first", "reserve", "charge", "wrap", "refund", "release")
		f.fixed.Store(true)
		plan := orFail(e.Fork(within(t), "r", durable.FromEnd(), durable.NewID("copy"), durable.DryRun()))(t)
		if !slices.Equal(plan.Dropped, []string{"reserve", "charge", "refund", "release"}) || plan.Kept != 1 {
			t.Errorf("a dry run would do %+v", plan)
		}
		orFail(e.Fork(within(t), "r", durable.FromEnd(), durable.NewID("copy")))(t)
		wantResult(t, w, e, "copy", "shipped")
		l.want(t, "the fork", "reserve", "charge", "ship")
	})
}

// A repair from the end is refused if it is not known what a compensation has undone. With From, a person says what is executed again.
func TestRepairFromEndOfARunWithUnknownUndoneStepsIsRefused(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		var l keyLedger
		var f fixable
		w := undoneSale(&l, &f)
		e := engineOn(t, s, w)
		running(t, e)
		wantFailed(t, orFail(w.Start(within(t), e, "", durable.ID("r")))(t))
		l.want(t, "at first", "reserve", "charge", "wrap", "refund", "release")
		f.fixed.Store(true)
		for _, repair := range []repairOf{retryWith(t, durable.FromEnd()), forkWith(t, durable.FromEnd())} {
			for _, opts := range [][]durable.ControlOption{{durable.DryRun()}, nil} {
				if _, err := repair(e, opts...); !errors.Is(err, durable.ErrFromRequired) || !strings.Contains(err.Error(), `"refund"`) || !strings.Contains(err.Error(), "From names") {
					t.Errorf("a repair from the end: %v", err)
				}
			}
		}
		orFail(e.Retry(within(t), "r", durable.From("charge")))(t)
		wantResult(t, w, e, "r", "shipped")
		l.want(t, "from the charge", "reserve#2", "charge#2", "wrap#2", "ship")
	})
}
