package durable_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Who changed a queue, a limit or a schedule last, how and why, is recorded, and deletions are logged.
func TestWhatOperatorsChangeIsRecorded(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		w := durable.Define("w", double)
		logged := new(bytes.Buffer)
		e := engineWith(t, s, durable.Config{Logger: slog.New(slog.NewTextHandler(logged, nil))})
		queue := func() *durable.OperatorChange { return orFail(e.Queues(ctx))(t)[0].LastChange }
		limit := func() *durable.OperatorChange { return orFail(e.Limits(ctx))(t)[0].LastChange }
		schedule := func() *durable.OperatorChange { return orFail(e.Schedules(ctx))(t)[0].LastChange }
		daily := w.Schedule(1, durable.Schedule{Name: "daily", Cron: "@daily"})
		for _, c := range []struct {
			verb durable.Verb
			call func(...durable.ControlOption) error
			got  func() *durable.OperatorChange // nil: it is deleted
		}{
			{durable.VerbSet, func(o ...durable.ControlOption) error {
				return e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1}, o...)
			}, queue},
			{durable.VerbPause, func(o ...durable.ControlOption) error { return e.PauseQueue(ctx, "mail", o...) }, queue},
			{durable.VerbResume, func(o ...durable.ControlOption) error { return e.ResumeQueue(ctx, "mail", o...) }, queue},
			{durable.VerbDelete, func(o ...durable.ControlOption) error { return e.DeleteQueue(ctx, "mail", o...) }, nil},
			{durable.VerbSet, func(o ...durable.ControlOption) error {
				return e.SetLimit(ctx, "stripe", durable.LimitBounds{Concurrent: 1}, o...)
			}, limit},
			{durable.VerbDelete, func(o ...durable.ControlOption) error { return e.DeleteLimit(ctx, "stripe", o...) }, nil},
			{durable.VerbSet, func(o ...durable.ControlOption) error { return e.SetSchedule(ctx, daily, o...) }, schedule},
			{durable.VerbPause, func(o ...durable.ControlOption) error { return e.PauseSchedule(ctx, "daily", o...) }, schedule},
			{durable.VerbResume, func(o ...durable.ControlOption) error { return e.ResumeSchedule(ctx, "daily", o...) }, schedule},
			{durable.VerbDelete, func(o ...durable.ControlOption) error { return e.DeleteSchedule(ctx, "daily", o...) }, nil},
		} {
			before := strings.Count(logged.String(), "\n")
			if err := c.call(durable.Actor("ann"), durable.Reason("outage")); err != nil {
				t.Fatalf("%s: %v", c.verb, err)
			}
			if c.got != nil {
				if got := c.got(); got == nil || got.Verb != c.verb || got.By != "ann" || got.Reason != "outage" || time.Since(got.At).Abs() > time.Hour {
					t.Errorf("%s: %+v", c.verb, got)
				}
			}
			lines := strings.Split(logged.String(), "\n")[before:]
			if want := fmt.Sprintf("verb=%s actor=ann reason=outage", c.verb); !slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, want) }) {
				t.Errorf("%s: the log has no %q in %q", c.verb, want, lines)
			}
		}
	})
}

// ResetQueue and ResetLimit return to what the code declares. The queue has settings at all times, so starts with a group key go on.
func TestAResetReturnsToWhatTheCodeDeclares(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		stripe := durable.NewLimit("stripe", durable.Concurrent(2))
		w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) {
			return c.Step("charge", func(context.Context) (int, error) { return in, nil }, stripe.Permit())
		})
		e := engineWith(t, s, durable.Config{Workflows: []durable.Definition{w}, QueueSettings: map[string]durable.QueueSettings{"mail": {MaxExecuting: 5}}})
		running(t, e)
		waitFor(t, func() bool { return len(orFail(e.Queues(ctx))(t)) == 1 })
		start := func() error {
			_, err := w.Call(ctx, e, 1, durable.InQueue("mail"), durable.GroupKey("acme"))
			return err
		}
		err := errors.Join(start(), e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1}), e.SetLimit(ctx, "stripe", durable.LimitBounds{Concurrent: 1}))
		err = errors.Join(err, e.ResetQueue(ctx, "mail", durable.Actor("ann")), e.ResetLimit(ctx, "stripe", durable.Actor("ann")), start())
		if err != nil {
			t.Fatal(err)
		}
		if q := orFail(e.Queues(ctx))(t)[0]; q.Settings.MaxExecuting != 5 || q.Set != nil || q.LastChange.Verb != durable.VerbReset || q.LastChange.By != "ann" {
			t.Errorf("the queue: %+v", q)
		}
		if l := orFail(e.Limits(ctx))(t)[0]; l.Concurrent != 2 || l.Set != nil || l.LastChange.Verb != durable.VerbReset || l.LastChange.By != "ann" {
			t.Errorf("the limit: %+v", l)
		}
		err = errors.Join(e.SetQueue(ctx, "undeclared", durable.QueueSettings{MaxExecuting: 1}), e.SetLimit(ctx, "undeclared", durable.LimitBounds{Concurrent: 1}))
		if err != nil {
			t.Fatal(err)
		}
		for _, reset := range []func(string) error{
			func(name string) error { return e.ResetQueue(ctx, name) },
			func(name string) error { return e.ResetLimit(ctx, name) },
		} {
			for name, want := range map[string]error{"undeclared": durable.ErrState, "none": durable.ErrNotFound, "": durable.ErrInvalidName} {
				if err := reset(name); !errors.Is(err, want) {
					t.Errorf("the reset of %q: %v, want %v", name, err, want)
				}
			}
		}
	})
}
