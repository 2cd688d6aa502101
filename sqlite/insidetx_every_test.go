package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// Each method of Engine that is called inside a Tx returns: it reads, or it is refused with ErrInsideTx. None waits for the step.
func TestNoEngineCallInsideATxWaitsForIt(t *testing.T) {
	const patience = 20 * time.Second // only a call that waits for the step takes as long
	s := shop(t)
	failing := durable.Define("failing", func(*durable.Ctx, int) (int, error) { return 0, errors.New("declined") })
	var e *durable.Engine
	calls := 0
	w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
		return sqlite.Tx(c, "tx", func(ctx context.Context, _ *sql.Tx) (int, error) {
			engine := reflect.ValueOf(e)
			for i := range engine.NumMethod() {
				m := engine.Type().Method(i)
				if m.Type.NumIn() < 2 || m.Type.In(1) != reflect.TypeFor[context.Context]() || m.Name == "Run" || m.Name == "WatchEvents" {
					continue
				}
				limited, cancel := context.WithTimeout(ctx, patience)
				out := engine.Method(i).Call(append([]reflect.Value{reflect.ValueOf(limited)}, exampleArgs(m.Type)...))
				if err, _ := out[len(out)-1].Interface().(error); limited.Err() != nil {
					t.Errorf("%s waits for the step: %v", m.Name, err)
				}
				cancel()
				calls++
			}
			return 1, nil
		})
	})
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w, failing, other}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := failing.Call(t.Context(), e, 1, durable.ID("x")); err == nil {
		t.Fatal("the run did not fail")
	}
	if _, err := other.Start(t.Context(), e, 1, durable.ID("live")); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Call(t.Context(), e, 1); err != nil || calls < 40 {
		t.Errorf("%d calls: %v", calls, err)
	}
}

// exampleArgs returns arguments for a method of Engine, after the context and without options. They select the failed run.
func exampleArgs(method reflect.Type) (args []reflect.Value) {
	for i := 2; i < method.NumIn() && !(method.IsVariadic() && i == method.NumIn()-1); i++ {
		in := method.In(i)
		arg := reflect.Zero(in)
		switch {
		case in.Kind() == reflect.String:
			arg = reflect.ValueOf("x").Convert(in)
		case in == reflect.TypeFor[durable.Filter]():
			arg = reflect.ValueOf(durable.Filter{Workflow: "failing"})
		case in == reflect.TypeFor[durable.Schedule]():
			arg = reflect.ValueOf(durable.Schedule{Name: "s", Every: time.Hour, Workflow: "failing", Input: 1})
		case in == reflect.TypeFor[any]():
			arg = reflect.ValueOf(1)
		}
		args = append(args, arg)
	}
	return args
}
