package durabletest_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// TestTriggersAtOneMomentStartTwoRuns: the IDs of two triggers differ, also if the clock has not moved between them.
func TestTriggersAtOneMomentStartTwoRuns(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		must(t, e.SetSchedule(quickly(t), w.Schedule(1, durable.Schedule{Name: "s", Cron: "@hourly"})))
		ids := make(map[string]bool)
		for range 3 {
			id, err := e.TriggerSchedule(quickly(t), "s")
			must(t, err)
			ids[id] = true
		}
		e.Advance(time.Minute)
		list, err := e.List(quickly(t), durable.Filter{IDPrefix: "s@"}, durable.Page{})
		must(t, err)
		if len(ids) != 3 || len(list.Runs) != 3 {
			t.Errorf("three calls returned %d IDs and started %d runs", len(ids), len(list.Runs))
		}
	})
}

// TestOverlapOfARunThatDoesNotEndByItself: a paused run counts as one that has not ended. One that was terminated does not.
func TestOverlapOfARunThatDoesNotEndByItself(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, c.Sleep("long", 100*24*time.Hour) })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		ctx := quickly(t)
		for _, o := range []durable.Overlap{durable.OverlapSkip, durable.OverlapWait, durable.OverlapCancel} {
			must(t, e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: string(o), Cron: "@hourly", Overlap: o})))
		}
		e.Advance(time.Hour) // 01:10
		for _, o := range []durable.Overlap{durable.OverlapSkip, durable.OverlapWait, durable.OverlapCancel} {
			_, err := e.Pause(ctx, string(o)+"@2026-01-01T01:00:00Z")
			must(t, err)
		}
		e.Advance(2 * time.Hour) // 03:10
		want(t, "skip, paused", fires(t, e, "skip"), []string{
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled skipped", "2026-01-01T03:00:00Z scheduled skipped",
		})
		want(t, "wait, paused", fires(t, e, "wait"), []string{
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled replaced", "2026-01-01T03:00:00Z scheduled waiting",
		})
		want(t, "cancel, paused", fires(t, e, "cancel"), []string{
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled started", "2026-01-01T03:00:00Z scheduled started",
		})
		for _, name := range []string{"skip", "wait"} {
			_, err := e.Terminate(ctx, name+"@2026-01-01T01:00:00Z")
			must(t, err)
		}
		e.Advance(time.Hour) // 04:10
		want(t, "skip, terminated", fires(t, e, "skip")[3:], []string{"2026-01-01T04:00:00Z scheduled started"})
		want(t, "wait, terminated", fires(t, e, "wait")[2:], []string{"2026-01-01T03:00:00Z scheduled started", "2026-01-01T04:00:00Z scheduled waiting"})
	})
}

// TestOnlyRunsOfSchedulesHaveAScheduledTime: a run of a user has none, also if its ID looks as those of a schedule do.
func TestOnlyRunsOfSchedulesHaveAScheduledTime(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (time.Time, error) { return durable.ScheduledAt(c), nil })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		ctx := quickly(t)
		at := func(id string) time.Time {
			t.Helper()
			run, err := w.Handle(ctx, e.Engine, id)
			must(t, err)
			got, err := run.Result(ctx)
			must(t, err)
			return got
		}
		must(t, e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: "s", Cron: "@hourly"})))
		triggered, err := e.TriggerSchedule(ctx, "s")
		must(t, err)
		midnight := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		_, err = e.Backfill(ctx, "s", midnight.Add(-time.Hour), midnight)
		must(t, err)
		for i := range 32 { // half of all UUIDs have any given bit
			id := midnight.Add(time.Duration(i) * time.Second).Format("user@" + time.RFC3339)
			_, err := w.Start(ctx, e.Engine, 1, durable.ID(id))
			must(t, err)
			if got := at(id); !got.IsZero() {
				t.Errorf("the user's run %s has the scheduled time %v", id, got)
			}
		}
		e.Advance(time.Hour)
		for id, want := range map[string]time.Time{
			"s@2026-01-01T01:00:00Z": midnight.Add(time.Hour), "s@2025-12-31T23:00:00Z": midnight.Add(-time.Hour), triggered: midnight.Add(10*time.Minute + time.Microsecond),
		} {
			if got := at(id); !got.Equal(want) {
				t.Errorf("the run %s has the scheduled time %v", id, got)
			}
		}
	})
}

// TestNodesReadTheScheduledTime: the nodes of a graph that a schedule starts know its time, also in a replay.
func TestNodesReadTheScheduledTime(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.DefineGraph("w", func(g *durable.Graph[int]) *durable.Node[time.Time] {
			first := g.Step("first", func(_ context.Context, in *durable.NodeInput) (time.Time, error) { return in.ScheduledAt(), nil }, durable.Delay(time.Minute))
			return g.Step("second", func(_ context.Context, in *durable.NodeInput) (time.Time, error) {
				if at := first.Of(in); !at.Equal(in.ScheduledAt()) {
					return at, fmt.Errorf("the first node read %v, and the second reads %v", at, in.ScheduledAt())
				}
				return in.ScheduledAt(), nil
			}, durable.Needs(first), durable.Delay(time.Minute))
		})
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		ctx := quickly(t)
		must(t, e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: "s", Cron: "@hourly"})))
		e.Advance(time.Hour)
		run, err := w.Handle(ctx, e.Engine, "s@2026-01-01T01:00:00Z")
		must(t, err)
		if got, err := run.Result(ctx); err != nil || !got.Equal(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)) {
			t.Errorf("the last node has read %v, %v", got, err)
		}
	})
}

// TestPagesOfFires: the pages of a schedule's fires are those of one list, and bad pages are refused.
func TestPagesOfFires(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(*durable.Ctx, int) (int, error) { return 1, nil })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		ctx := quickly(t)
		must(t, e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: "s", Cron: "@hourly"})))
		if none, err := e.ScheduleFires(ctx, "s", durable.Page{}); err != nil || len(none) != 0 {
			t.Errorf("a new schedule: %+v, %v", none, err)
		}
		e.Advance(2 * time.Hour)
		_, err := e.TriggerSchedule(ctx, "s") // at a fraction of a second
		must(t, err)
		e.Advance(3 * time.Hour)
		all, err := e.ScheduleFires(ctx, "s", durable.Page{})
		must(t, err)
		var paged []durable.ScheduleFire
		for page := (durable.Page{Limit: 2}); ; {
			part, err := e.ScheduleFires(ctx, "s", page)
			must(t, err)
			if len(part) == 0 {
				break
			}
			paged = append(paged, part...)
			page.Cursor = part[len(part)-1].Cursor
		}
		if len(all) != 6 || !slices.Equal(paged, all) {
			t.Errorf("the pages have %+v, want %+v", paged, all)
		}
		if f := all[3]; f.Kind != durable.FireTriggered || f.Outcome != durable.FireStarted {
			t.Errorf("the trigger: %+v", f)
		}
		for page, want := range map[durable.Page]error{
			{Limit: -1}: durable.ErrInvalidConfig, {Limit: 1001}: durable.ErrInvalidConfig, {Cursor: "x"}: durable.ErrInvalidCursor, {Cursor: "2026-01-01T01:00:00+01:00"}: durable.ErrInvalidCursor,
		} {
			if _, err := e.ScheduleFires(ctx, "s", page); !errors.Is(err, want) {
				t.Errorf("%+v: %v", page, err)
			}
		}
		for name, want := range map[string]error{"": durable.ErrInvalidName, "other": durable.ErrNotFound} {
			if _, err := e.ScheduleFires(ctx, name, durable.Page{}); !errors.Is(err, want) {
				t.Errorf("schedule %q: %v", name, err)
			}
		}
	})
}

// A time whose ID is taken starts no run, so the times after it are decided as if it had not been there.
func TestTimesAfterATakenIDAreStarted(t *testing.T) {
	for overlap, after := range map[durable.Overlap][]string{
		durable.OverlapSkip:   {"01:00:00Z scheduled failed", "02:00:00Z scheduled failed", "03:00:00Z scheduled started", "04:00:00Z scheduled skipped"},
		durable.OverlapWait:   {"01:00:00Z scheduled failed", "02:00:00Z scheduled failed", "03:00:00Z scheduled started", "04:00:00Z scheduled waiting"},
		durable.OverlapAllow:  {"01:00:00Z scheduled failed", "02:00:00Z scheduled failed", "03:00:00Z scheduled started", "04:00:00Z scheduled started"},
		durable.OverlapCancel: {"01:00:00Z scheduled replaced", "02:00:00Z scheduled replaced", "03:00:00Z scheduled replaced", "04:00:00Z scheduled started"},
	} {
		t.Run(string(overlap), func(t *testing.T) {
			onStores(t, func(t *testing.T, opts ...durabletest.Option) {
				w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, c.Sleep("long", 24*time.Hour) })
				e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
				for _, hour := range []string{"01", "02"} {
					_, err := w.Start(quickly(t), e.Engine, 7, durable.ID("s@2026-01-01T"+hour+":00:00Z"))
					must(t, err)
				}
				must(t, e.SetSchedule(quickly(t), w.Schedule(1, durable.Schedule{Name: "s", Cron: "@hourly", Overlap: overlap, CatchUp: 24 * time.Hour})))
				e.Stop()
				e.Advance(4 * time.Hour)
				e = e.StartAnother(w)
				e.Advance(0)
				got := fires(t, e, "s")
				for i := range got {
					got[i] = strings.TrimPrefix(got[i], "2026-01-01T")
				}
				want(t, "fires", got, after)
			})
		})
	}
}
