package durable_test

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// An option that is given twice, that another option excludes, or that can have no effect where it is given, is refused with an
// error that names it, and nothing is recorded.
func TestOptionsWithoutEffect(t *testing.T) {
	s := openStore(t)
	w := durable.Define("w", double)
	e := engineOn(t, s, w)
	start := func(opts ...durable.StartOption) func(*durable.Ctx) error {
		return func(c *durable.Ctx) error { _, err := w.Start(context.Background(), e, 1, opts...); return err }
	}
	child := func(opts ...durable.StartOption) func(*durable.Ctx) error {
		return func(c *durable.Ctx) error { _, err := c.Child("kid", w, 1, opts...); return err }
	}
	step := func(opts ...durable.StepOption) func(*durable.Ctx) error {
		return func(c *durable.Ctx) error {
			return c.Do("a", func(context.Context) error { panic("it runs") }, opts...)
		}
	}
	receive := func(opts ...durable.ReceiveOption) func(*durable.Ctx) error {
		return func(c *durable.Ctx) error { _, err := c.Receive[int]("a", opts...); return err }
	}
	cancel := func(opts ...durable.ControlOption) func(*durable.Ctx) error {
		return func(c *durable.Ctx) error { _, err := e.Cancel(context.Background(), "run", opts...); return err }
	}
	each := func(opts ...durable.MapOption) func(*durable.Ctx) error {
		return func(c *durable.Ctx) error {
			_, err := c.Map("a", []int{1}, func(context.Context, int) (int, error) { panic("it runs") }, opts...)
			return err
		}
	}
	key, verify := durable.Key(func(int) string { return "k" }), durable.Verify(func(context.Context) (struct{}, bool, error) { return struct{}{}, false, nil })
	for name, do := range map[string]func(*durable.Ctx) error{
		"ID":             start(durable.ID("a"), durable.ID("b")),
		"Timeout":        start(durable.Timeout(time.Hour), durable.Timeout(time.Minute)),
		"Timeout of 0s":  start(durable.Timeout(0)),
		"Delay":          start(durable.Delay(time.Hour), durable.Delay(time.Minute)),
		"Detached":       start(durable.Detached()),
		"Tag":            start(durable.Tag("team.owner", "ann"), durable.Tag("team.owner", "bob")),
		"option ID":      child(durable.ID("a")),
		"Detached twice": child(durable.Detached(), durable.Detached()),
		"Detached of Ctx.Start": func(c *durable.Ctx) error {
			_, err := c.Start("a", w, 1, durable.Detached())
			return err
		},
		"Detached of ElseStart": receive(durable.Within(time.Hour), durable.ElseStart(w, 1, durable.Detached())),
		"Queue": func(c *durable.Ctx) error {
			_, err := durable.Define("q", double, durable.Queue("a"), durable.Queue("b")).Start(context.Background(), e, 1)
			return err
		},
		"Retry":                                step(durable.Retry(durable.NoRetry), durable.Retry(durable.Fixed(0, 3))),
		"no Attempts":                          step(durable.Retry(durable.RetryPolicy{Initial: time.Second})),
		"AttemptTimeout":                       step(durable.AttemptTimeout(1), durable.AttemptTimeout(2)),
		"TotalTimeout":                         step(durable.TotalTimeout(1), durable.TotalTimeout(2)),
		"AttemptTimeout of 2m0s has no effect": step(durable.TotalTimeout(time.Minute), durable.AttemptTimeout(2*time.Minute)),
		"AtMostOnce":                           step(durable.AtMostOnce(), durable.AtMostOnce()),
		"Verify":                               step(verify, verify),
		"OnSignal":                             receive(durable.OnSignal("b"), durable.OnSignal("c")),
		"Within":                               receive(durable.Within(1), durable.Within(2)),
		"ElseCancel":                           receive(durable.Within(1), durable.Else(1), durable.ElseCancel()),
		"ElseExpire":                           receive(durable.Within(1), durable.ElseCancel(), durable.ElseExpire()),
		"ElseSignal":                           receive(durable.Within(1), durable.ElseExpire(), durable.ElseSignal("id", "n", 1)),
		"ElseStart":                            receive(durable.Within(1), durable.ElseSignal("id", "n", 1), durable.ElseStart(w, 1)),
		"Else":                                 receive(durable.Within(1), durable.ElseStart(w, 1), durable.Else(1)),
		"OnSignal is for Receive": func(c *durable.Ctx) error {
			_, err := c.Callback[int]("a").Wait(durable.OnSignal("b"))
			return err
		},
		"SignalKey": func(c *durable.Ctx) error {
			return e.Signal(context.Background(), "run", "n", 1, durable.SignalKey("a"), durable.SignalKey("b"))
		},
		"Reason":     cancel(durable.Reason("a"), durable.Reason("b")),
		"Actor":      cancel(durable.Actor("a"), durable.Actor("b")),
		"OnlyItself": cancel(durable.OnlyUnstarted(), durable.OnlyItself()),
		"FreezeTimers": func(c *durable.Ctx) error {
			_, err := e.Resume(context.Background(), "run", durable.FreezeTimers(), durable.FreezeTimers())
			return err
		},
		"Parallel": each(durable.Parallel(1), durable.Parallel(2)),
		"Collect":  each(durable.Collect(), durable.Collect()),
		"Key":      each(key, key),
		"BusyTimeout": func(*durable.Ctx) error {
			_, err := sqlite.Open(filepath.Join(t.TempDir(), "f"), sqlite.BusyTimeout(1), sqlite.BusyTimeout(2))
			return err
		},
		"Schema": func(c *durable.Ctx) error {
			_, err := postgres.Open(c, "postgres://", postgres.Schema("a"), postgres.Schema("b"))
			return err
		},
		"OwnedBy": func(c *durable.Ctx) error { _, err := postgres.Open(c, "postgres://", postgres.OwnedBy()); return err },
	} {
		t.Run(name, func(t *testing.T) {
			option := strings.TrimSuffix(strings.Split(name, " of ")[0], " twice")
			if strings.Contains(name, "0s") {
				option = name
			}
			_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
				err := do(c)
				if !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), option) {
					t.Errorf("got %v, want ErrInvalidConfig about %s", err, option)
				}
				return 0, nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	if page, err := e.List(within(t), durable.Filter{Workflow: "w"}, durable.Page{}); err != nil || len(page.Runs) != 0 {
		t.Errorf("runs were started: %v, %v", page.Runs, err)
	}
}
