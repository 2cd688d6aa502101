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

// changed executes a run with the function before, up to a step that is held, and then executes the same run with the function
// after.
func changed(t *testing.T, s durable.Store, before, after func(c *durable.Ctx) (string, error), more ...durable.Definition) (string, error) {
	t.Helper()
	g := newGate()
	v1 := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		if v, err := before(c); err != nil && !errors.Is(err, errDeclined) {
			return v, err
		}
		return "", c.Do("hold", g.pass)
	})
	v2 := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		v, err := after(c)
		if err != nil {
			return "", err
		}
		return v, c.Do("hold", func(context.Context) error { return nil })
	}, durable.OnDrift(durable.DriftContinues))
	stop := running(t, engineWith(t, s, durable.Config{Workflows: append(more, v1), Grace: -1}))
	run, err := v1.Start(within(t), engineOn(t, s), 0, durable.ID("run"))
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	stop()
	running(t, engineWith(t, s, durable.Config{Workflows: append(more, v2)}))
	return run.Result(within(t))
}

// A recorded choice is replayed only by the same choice among the same branches in the same order.
func TestChangedChoiceDiverges(t *testing.T) {
	var charged atomic.Int32
	branch := func(c *durable.Ctx, name string, nap time.Duration) *durable.Future[string] {
		return c.Go(name, func(c *durable.Ctx) (string, error) {
			if nap > 0 {
				if err := c.Sleep("nap", nap); err != nil {
					return "", err
				}
			}
			return c.Step("charge", func(context.Context) (string, error) { charged.Add(1); return name, nil })
		})
	}
	fails := func(c *durable.Ctx, name string) *durable.Future[string] {
		return c.Go(name, func(c *durable.Ctx) (string, error) {
			return c.Step("charge", func(context.Context) (string, error) { return "", errDeclined })
		})
	}
	anyOf := func(rest durable.LoserPolicy, names ...string) func(c *durable.Ctx) (string, error) {
		return func(c *durable.Ctx) (string, error) {
			var all []*durable.Future[string]
			for _, name := range names {
				nap := time.Hour
				if name == "a" {
					nap = 0
				}
				all = append(all, branch(c, name, nap))
			}
			_, v, err := durable.Any(c, "first", rest, all...)
			return v, err
		}
	}
	quorum := func(k int) func(c *durable.Ctx) (string, error) {
		return func(c *durable.Ctx) (string, error) {
			_, err := durable.Quorum(c, "first", k, durable.CancelLosers, branch(c, "a", 0), branch(c, "b", time.Hour))
			return "", err
		}
	}
	allOrCancel := func(c *durable.Ctx) (string, error) {
		_, err := durable.AllOrCancel(c, "first", branch(c, "b", time.Hour), fails(c, "a"))
		return "", err
	}
	ab := anyOf(durable.CancelLosers, "a", "b")
	for name, test := range map[string]struct {
		before, after func(c *durable.Ctx) (string, error)
		same          bool
	}{
		"no change":                      {before: ab, after: ab, same: true},
		"any as a quorum of one":         {before: ab, after: quorum(1), same: true},
		"reordered":                      {before: ab, after: anyOf(durable.CancelLosers, "b", "a")},
		"reordered, kept":                {before: anyOf(durable.KeepLosers, "a", "b"), after: anyOf(durable.KeepLosers, "b", "a")},
		"a loser renamed":                {before: ab, after: anyOf(durable.CancelLosers, "a", "b2")},
		"one added":                      {before: ab, after: anyOf(durable.CancelLosers, "a", "b", "c")},
		"one removed":                    {before: ab, after: anyOf(durable.CancelLosers, "a")},
		"keep becomes cancel":            {before: anyOf(durable.KeepLosers, "a", "b"), after: ab},
		"cancel becomes keep":            {before: ab, after: anyOf(durable.KeepLosers, "a", "b")},
		"another k":                      {before: ab, after: quorum(2)},
		"any becomes all or cancel":      {before: ab, after: allOrCancel},
		"all or cancel becomes a choice": {before: allOrCancel, after: anyOf(durable.CancelLosers, "b", "a")},
		"the winner fails": {before: anyOf(durable.KeepLosers, "a"), after: func(c *durable.Ctx) (string, error) {
			_, err := durable.Quorum(c, "first", 1, durable.KeepLosers, c.Go("a", func(*durable.Ctx) (string, error) { return "", errDeclined }))
			return "", err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := changed(t, openStore(t), test.before, test.after)
			switch {
			case test.same && err != nil:
				t.Error(err)
			case !test.same && (!errors.Is(err, durable.ErrDiverged) || !strings.Contains(err.Error(), `"first"`)):
				t.Errorf("got %v, want ErrDiverged that names the choice", err)
			}
		})
	}
	if got := charged.Load(); got > 13 {
		t.Errorf("charged %d times: a loser was executed", got)
	}
}

// A recorded child keeps the workflow that it was started with, whether it has ended or not.
func TestChildOfAnotherWorkflowDiverges(t *testing.T) {
	refund := durable.Define("refund", func(*durable.Ctx, int) (string, error) { return "refunded", nil })
	charge := durable.Define("charge", func(*durable.Ctx, int) (string, error) { return "charged", nil })
	never := durable.Define("never", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("never") })
	fails := durable.Define("fails", func(*durable.Ctx, int) (string, error) { return "", errDeclined })
	for name, test := range map[string]struct {
		before, after *durable.Workflow[int, string]
		wait, same    bool
	}{
		"it has completed": {before: refund, after: charge, wait: true},
		"it has failed":    {before: fails, after: charge, wait: true},
		"it waits":         {before: never, after: charge},
		"no change":        {before: refund, after: refund, wait: true, same: true},
	} {
		t.Run(name, func(t *testing.T) {
			onStores(t, func(t *testing.T, s durable.Store) {
				child := func(w *durable.Workflow[int, string], in int) func(c *durable.Ctx) (string, error) {
					return func(c *durable.Ctx) (string, error) {
						h, err := c.StartChild("pay", w, in)
						if err != nil || !test.wait {
							return "", err
						}
						return h.Wait()
					}
				}
				got, err := changed(t, s, child(test.before, 1), child(test.after, 2), refund, charge, never, fails)
				switch {
				case test.same && (got != "refunded" || err != nil):
					t.Errorf("got %q, %v", got, err)
				case !test.same && (!errors.Is(err, durable.ErrDiverged) || !strings.Contains(err.Error(), `"pay"`) || !strings.Contains(err.Error(), `"charge"`)):
					t.Errorf("got %q, %v; want ErrDiverged with the names", got, err)
				}
			})
		})
	}
}

// A value that was recorded under a larger MaxPayload is replayed under a smaller one, which bounds new values.
func TestLoweredMaxPayloadKeepsWhatIsRecorded(t *testing.T) {
	big := strings.Repeat("x", 2000)
	echo := durable.Define("echo", func(c *durable.Ctx, _ string) (string, error) { return "", nil })
	s := openStore(t)
	g := newGate()
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
		if err := c.Signal("tell", c.ID(), "note", big); err != nil {
			return "", err
		}
		if _, err := c.Start("start", echo, big); err != nil {
			return "", err
		}
		if _, err := c.Child("child", echo, big); err != nil {
			return "", err
		}
		if _, err := c.Receive[string]("wait", durable.Within(0), durable.Else(big)); err != nil {
			return "", err
		}
		if err := c.Do("hold", g.pass); err != nil {
			return "", err
		}
		if err := c.Signal("new", c.ID(), "note", big); !errors.Is(err, durable.ErrPayloadTooLarge) {
			t.Errorf("a new call: %v", err)
		}
		return "", nil
	})
	stop := running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, echo}, Grace: -1}))
	run, err := w.Start(within(t), engineOn(t, s), 0, durable.ID("run"))
	if err != nil {
		t.Fatal(err)
	}
	<-g.entered
	stop()
	close(g.open)
	running(t, engineWith(t, s, durable.Config{Workflows: []durable.Definition{w, echo}, MaxPayload: 1000}))
	if _, err := run.Result(within(t)); err != nil {
		t.Error(err)
	}
}

// A choice with an invalid branch returns an error with the index of that branch.
func TestChoiceRefusesItsArguments(t *testing.T) {
	one := func(c *durable.Ctx, name string) *durable.Future[int] {
		return c.Go(name, func(*durable.Ctx) (int, error) { return 1, nil })
	}
	for name, test := range map[string]struct {
		want string
		call func(c *durable.Ctx) error
	}{
		"a nil branch": {"nil as branch 1 of 2", func(c *durable.Ctx) error {
			_, _, err := durable.Any(c, "x", durable.CancelLosers, one(c, "a"), nil)
			return err
		}},
		"a nil branch of All": {"nil as branch 0 of 2", func(c *durable.Ctx) error { _, err := durable.All(nil, one(c, "a")); return err }},
		"a nil branch of AllOrCancel": {"nil as branch 0 of 1", func(c *durable.Ctx) error {
			_, err := durable.AllOrCancel[int](c, "x", nil)
			return err
		}},
		"a branch twice": {"as 0 and 2 of 3", func(c *durable.Ctx) error {
			f := one(c, "a")
			_, err := durable.Quorum(c, "x", 2, durable.KeepLosers, f, one(c, "b"), f)
			return err
		}},
		"an unknown value": {"Losers(7)", func(c *durable.Ctx) error {
			_, _, err := durable.Any(c, "x", durable.LoserPolicy(7), one(c, "a"))
			return err
		}},
		"no branch": {"1 of 0", func(c *durable.Ctx) error {
			_, _, err := durable.Any[int](c, "x", durable.CancelLosers)
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
				err := test.call(c)
				if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want ErrInvalidConfig with %q", err, test.want)
				}
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}
