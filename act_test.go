package durable_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
)

// Whatever a person does to a run, or deletes, is an event with an actor and a reason, once, although each call is repeated. Calls
// without them write no such event.
func TestActsOfPeopleAreEvents(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		tokens := make(chan string, 2)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) {
			approval := c.Callback[string]("approval")
			tokens <- approval.Token()
			return approval.Wait()
		})
		e := engineOn(t, s, w)
		stop := running(t, e)
		var token [2]string
		for i, id := range []string{"a", "quiet"} {
			orFail(w.Start(ctx, e, 0, durable.ID(id)))(t)
			token[i] = <-tokens
			waitFor(t, func() bool { return orFail(e.Get(ctx, id))(t).Status == durable.StatusWaiting })
		}
		stop()
		if err := errors.Join(e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: "daily", Cron: "@daily"})),
			e.SetLimit(ctx, "stripe", durable.LimitBounds{Concurrent: 1}), e.SetQueue(ctx, "mail", durable.QueueSettings{MaxExecuting: 1})); err != nil {
			t.Fatal(err)
		}
		var started string
		from := orFail(e.Now(ctx))(t).AddDate(0, 0, -1).Add(-time.Minute)
		act := func(id string, token string, by ...durable.ControlOption) {
			t.Helper()
			signal := []durable.SignalOption{durable.SignalKey("once")}
			for _, o := range by {
				signal = append(signal, o)
			}
			for range 2 {
				_, paused := e.Pause(ctx, id, by...)
				err := errors.Join(paused, e.Signal(ctx, id, "go", 1, signal...), e.SetTags(ctx, id, map[string]string{"team.owner": "ann", "team.late": ""}, by...),
					e.Complete(ctx, token, "yes", by...))
				if err != nil {
					t.Fatal(err)
				}
			}
			_, resumed := e.Resume(ctx, id, by...)
			if err := errors.Join(resumed, e.SetTimeout(ctx, id, time.Hour, by...)); err != nil {
				t.Fatal(err)
			}
		}
		act("quiet", token[1])
		by := []durable.ControlOption{durable.Actor("ann"), durable.Reason("the bank is back")}
		act("a", token[0], by...)
		var err error
		if started, err = e.TriggerSchedule(ctx, "daily", by...); err != nil {
			t.Fatal(err)
		}
		filled := orFail(e.Backfill(ctx, "daily", from, from.AddDate(0, 0, 1), by...))(t)
		again := orFail(e.Backfill(ctx, "daily", from, from.AddDate(0, 0, 1), by...))(t)
		if filled.Started != 1 || again.Started != 0 {
			t.Fatalf("the backfills started %d and %d runs", filled.Started, again.Started)
		}
		if err := errors.Join(e.DeleteSchedule(ctx, "daily", by...), e.DeleteLimit(ctx, "stripe", by...), e.DeleteQueue(ctx, "mail", by...)); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"a paused  ", "a signalled  go", "a tagged  team.late=, team.owner=ann", "a signalled  approval", "a resumed  ", "a timeout  later",
			started + " triggered  daily", "daily backfilled  daily", "daily schedule_deleted  ", "stripe limit_deleted  ", "mail queue_deleted  ",
		}
		var got []string
		waitFor(t, func() bool { // events wait for older transactions of other tests
			got = nil
			for _, event := range orFail(e.Events(ctx, durable.Page{}))(t) {
				if event.Actor == "" && event.Reason == "" {
					if event.Type != durable.EventPaused {
						t.Errorf("an event by nobody: %+v", event)
					}
					continue
				}
				if event.Actor != "ann" || event.Reason != "the bank is back" || event.At.IsZero() || (event.RunID == "") != strings.HasSuffix(string(event.Type), "_deleted") {
					t.Errorf("the event is %+v", event)
				}
				if at, err := time.Parse(time.RFC3339Nano, event.New); err == nil && at.After(event.At) {
					event.New = "later"
				}
				if event.Type == durable.EventBackfilled {
					event.ID, _, _ = strings.Cut(event.ID, "@")
				}
				got = append(got, fmt.Sprint(event.ID, " ", event.Type, " ", event.Old, " ", event.New))
			}
			return len(got) >= len(want)
		})
		if !slices.Equal(got, want) {
			t.Errorf("the events are\n%q, want\n%q", got, want)
		}
	})
}

// Where an actor and a reason cannot be recorded, they are refused, and so are other options.
func TestActsRefuseOptionsThatTheyCannotRecord(t *testing.T) {
	onStores(t, func(t *testing.T, s durable.Store) {
		ctx := within(t)
		failed := make(chan error, 1)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) {
			failed <- c.Signal("call", "other", "go", 1, durable.Actor("ann"))
			return 0, nil
		})
		e := engineOn(t, s, w)
		running(t, e)
		orFail(w.Call(ctx, e, 0, durable.ID("a")))(t)
		_, triggered := e.TriggerSchedule(ctx, "s", durable.DryRun())
		_, filled := e.Backfill(ctx, "s", time.Now().Add(-time.Hour), time.Now(), durable.DryRun())
		for what, err := range map[string]error{
			"a signal of a workflow": <-failed, "a signal": e.Signal(ctx, "a", "go", 1, durable.DryRun()), "a nil option": e.Signal(ctx, "a", "go", 1, nil),
			"a nil ControlOption": e.Signal(ctx, "a", "go", 1, durable.ControlOption(nil)), "twice": e.Signal(ctx, "a", "go", 1, durable.Actor("a"), durable.Actor("b")),
			"tags": e.SetTags(ctx, "a", map[string]string{"a.b": "c"}, durable.FreezeTimers()), "a timeout": e.SetTimeout(ctx, "a", time.Hour, durable.DryRun()),
			"a token": e.Complete(ctx, "x", 1, durable.DryRun()), "a trigger": triggered, "a backfill": filled,
		} {
			if !errors.Is(err, durable.ErrInvalidConfig) {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}
