package durable_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// refusesNil checks that the call returns ErrInvalidConfig with the argument's name, and does not panic.
func refusesNil(t *testing.T, what, argument string, call func() error) {
	t.Helper()
	defer func() {
		if v := recover(); v != nil {
			t.Errorf("%s panicked: %v", what, v)
		}
	}()
	if err := call(); !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), argument) {
		t.Errorf("%s returned %v, want ErrInvalidConfig that names the %s", what, err, argument)
	}
}

// Every method that is called from outside of runs returns an error that names a nil argument.
func TestNilArgumentsAreNamed(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil })
		e := engineOn(t, s, w)
		run, err := w.Start(within(t), e, 0, durable.ID("x"))
		if err != nil {
			t.Fatal(err)
		}
		var none context.Context
		calls := func(ctx context.Context, e *durable.Engine) map[string]func() error {
			return map[string]func() error{
				"Start":      func() error { _, err := w.Start(ctx, e, 0); return err },
				"StartMany":  func() error { _, err := w.StartMany(ctx, e, nil); return err },
				"Call":       func() error { _, err := w.Call(ctx, e, 0); return err },
				"Handle":     func() error { _, err := w.Handle(ctx, e, "x"); return err },
				"Signal":     func() error { return e.Signal(ctx, "x", "s", 1) },
				"Complete":   func() error { return e.Complete(ctx, "token", 1) },
				"Pause":      func() error { _, err := e.Pause(ctx, "x"); return err },
				"Resume":     func() error { _, err := e.Resume(ctx, "x"); return err },
				"Cancel":     func() error { _, err := e.Cancel(ctx, "x"); return err },
				"Terminate":  func() error { _, err := e.Terminate(ctx, "x"); return err },
				"CancelAll":  func() error { _, err := e.CancelAll(ctx, durable.Filter{Workflow: "w"}); return err },
				"SetTimeout": func() error { return e.SetTimeout(ctx, "x", time.Hour) },
				"SetTags":    func() error { return e.SetTags(ctx, "x", nil) },
				"Get":        func() error { _, err := e.Get(ctx, "x"); return err },
				"List":       func() error { _, err := e.List(ctx, durable.Filter{}, durable.Page{}); return err },
				"Tree":       func() error { _, err := e.Tree(ctx, "x"); return err },
				"Counts":     func() error { _, err := e.TreeCounts(ctx, "x"); return err },
				"History":    func() error { _, err := e.History(ctx, "x"); return err },
				"Export":     func() error { _, err := e.Export(ctx, "x"); return err },
				"Workers":    func() error { _, err := e.Workers(ctx); return err },
				"Events":     func() error { _, err := e.Events(ctx, durable.Page{}); return err },
				"Latest":     func() error { _, err := e.LatestEvents(ctx, durable.Page{}); return err },
				"Watch": func() error {
					for _, err := range e.WatchEvents(ctx, "") {
						return err
					}
					return nil
				},
				"Run": func() error { return e.Run(ctx) },
			}
		}
		for what, call := range calls(none, e) {
			refusesNil(t, what+" with a nil context", "context", call)
		}
		for what, call := range calls(within(t), nil) {
			refusesNil(t, what+" with a nil engine", "*Engine", call)
		}
		refusesNil(t, "Result with a nil context", "context", func() error { _, err := run.Result(none); return err })
		refusesNil(t, "TryResult with a nil context", "context", func() error { _, _, err := run.TryResult(none); return err })
		refusesNil(t, "Result of a nil run", "*Run", func() error { _, err := (*durable.Run[int])(nil).Result(within(t)); return err })
		var start durable.StartOption
		refusesNil(t, "Start", "StartOption", func() error { _, err := w.Start(within(t), e, 0, start); return err })
		refusesNil(t, "StartMany", "StartOption", func() error { _, err := w.StartMany(within(t), e, []durable.StartItem[int]{{}}, start); return err })
		refusesNil(t, "Signal", "SignalOption", func() error { return e.Signal(within(t), "x", "s", 1, nil) })
		refusesNil(t, "Pause", "ControlOption", func() error { _, err := e.Pause(within(t), "x", nil); return err })
		refusesNil(t, "PauseAll", "ControlOption", func() error { _, err := e.PauseAll(within(t), durable.Filter{Workflow: "w"}, nil); return err })
		refusesNil(t, "Define", "WorkflowOption", func() error {
			w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 0, nil }, nil)
			_, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
			return err
		})
		switch s.Name() {
		case "postgres":
			refusesNil(t, "StartTx", "transaction", func() error { _, err := postgres.StartTx(within(t), nil, e, w, 0); return err })
			refusesNil(t, "SignalTx", "transaction", func() error { return postgres.SignalTx(within(t), nil, e, "x", "s", 1) })
		case "sqlite":
			refusesNil(t, "StartTx", "transaction", func() error { _, err := sqlite.StartTx(within(t), nil, e, w, 0); return err })
			refusesNil(t, "SignalTx", "transaction", func() error { return sqlite.SignalTx(within(t), nil, e, "x", "s", 1) })
		}
	})
}

// Every durable call returns an error that names a nil option, and other calls are not affected.
func TestNilOptionsOfDurableCallsAreNamed(t *testing.T) {
	nothing := func(context.Context) error { return nil }
	_, err := durableCall(t, 0, func(c *durable.Ctx, _ int) (int, error) {
		kid := durable.Define("kid", func(*durable.Ctx, int) (int, error) { return 0, nil })
		for _, x := range []struct {
			option string
			call   func() error
		}{
			{"StepOption", func() error { return c.Do("a", nothing, nil) }},
			{"StepOption", func() error { return c.Compensate("b", nothing, nil) }},
			{"MapOption", func() error {
				_, err := c.Map("c", []int{1}, func(context.Context, int) (int, error) { return 0, nil }, nil)
				return err
			}},
			{"ReceiveOption", func() error { _, err := c.Receive[int]("d", nil); return err }},
			{"ReceiveOption", func() error { _, err := c.Callback[int]("e").Wait(nil); return err }},
			{"StartOption", func() error { _, err := c.Child("f", kid, 1, nil); return err }},
			{"StartOption", func() error { _, err := c.Start("g", kid, 1, nil); return err }},
			{"SignalOption", func() error { return c.Signal("h", "other", "s", 1, nil) }},
		} {
			if err := x.call(); !errors.Is(err, durable.ErrInvalidConfig) || !strings.Contains(err.Error(), x.option) {
				return 0, fmt.Errorf("%w, want ErrInvalidConfig that names the %s", err, x.option)
			}
		}
		return 0, nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStoresRefuseNilArguments(t *testing.T) {
	var none context.Context
	var file *sqlite.Store
	var server *postgres.Store
	var pool *pgxpool.Pool
	refusesNil(t, "New with a nil *sqlite.Store", "store", func() error { _, err := durable.New(file, durable.Config{}); return err })
	refusesNil(t, "New with a nil *postgres.Store", "store", func() error { _, err := durable.New(server, durable.Config{}); return err })
	refusesNil(t, "sqlite.Open", "Option", func() error { _, err := sqlite.Open(t.TempDir()+"/x.db", nil); return err })
	refusesNil(t, "postgres.Open", "Option", func() error { _, err := postgres.Open(within(t), pgtest.URL(t), nil); return err })
	refusesNil(t, "postgres.Open with a nil context", "context", func() error { _, err := postgres.Open(none, pgtest.URL(t)); return err })
	refusesNil(t, "postgres.New with a nil pool", "pool", func() error { _, err := postgres.New(pool); return err })
}
