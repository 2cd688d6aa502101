package durabletest_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
)

// times notes the scheduled times of the runs of a workflow.
type times struct {
	mu   sync.Mutex
	seen []string
}

func (l *times) add(c *durable.Ctx) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.seen = append(l.seen, durable.ScheduledAt(c).Format(time.RFC3339))
}

func (l *times) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	sorted := slices.Clone(l.seen)
	slices.Sort(sorted)
	return sorted
}

// fires returns the fires of a schedule as "time kind outcome", the oldest time first.
func fires(t *testing.T, e *durabletest.Engine, name string) (all []string) {
	t.Helper()
	list, err := e.ScheduleFires(quickly(t), name, durable.Page{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range list {
		all = append(all, fmt.Sprint(f.At.Format(time.RFC3339), " ", f.Kind, " ", f.Outcome))
	}
	slices.Sort(all)
	return all
}

func scheduleOf(t *testing.T, e *durabletest.Engine, name string) durable.ScheduleInfo {
	t.Helper()
	all, err := e.Schedules(quickly(t))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		if s.Name == name {
			return s
		}
	}
	t.Fatalf("there is no schedule %q among %d", name, len(all))
	return durable.ScheduleInfo{}
}

func at(text string) time.Time {
	v, err := time.Parse(time.RFC3339, text)
	if err != nil {
		panic(err)
	}
	return v
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func want(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s:\n%q, want\n%q", what, got, want)
	}
}

func on(opts []durabletest.Option, start string, more ...durabletest.Option) []durabletest.Option {
	return append(append(slices.Clone(opts), durabletest.StartClockAt(at(start))), more...)
}

// TestScheduleFiresEachDay: a month of a daily schedule, with the change of summer time, passes at once. Each time starts one run,
// with the input that was declared, and knows its time.
func TestScheduleFiresEachDay(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		var log times
		w := durable.Define("report", func(c *durable.Ctx, format string) (string, error) {
			log.add(c)
			return format + " of " + durable.ScheduledAt(c).Format(time.DateOnly), nil
		}, durable.Queue("reports"))
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-03-20T12:00:00Z", durabletest.Configure(func(cfg *durable.Config) {
			cfg.Schedules = []durable.Schedule{w.Schedule("pdf", durable.Schedule{Name: "nightly", Cron: "30 2 * * *", Location: "Europe/Berlin", Tags: map[string]string{"shop.kind": "report"}})}
		}))...)
		e.Advance(30 * 24 * time.Hour)
		runs, err := e.List(quickly(t), durable.Filter{Tag: "shop.kind", Queue: "reports"}, durable.Page{})
		must(t, err)
		if seen := log.all(); len(seen) != 30 || seen[0] != "2026-03-21T01:30:00Z" {
			t.Errorf("the runs were scheduled at %q", seen)
		}
		if len(runs.Runs) != 30 {
			t.Errorf("%d runs in 30 days", len(runs.Runs))
		}
		for id, out := range map[string]string{
			"nightly@2026-03-21T01:30:00Z": `"pdf of 2026-03-21"`, "nightly@2026-03-29T01:00:00Z": `"pdf of 2026-03-29"`, "nightly@2026-03-30T00:30:00Z": `"pdf of 2026-03-30"`,
		} {
			if run, err := e.Get(quickly(t), id); err != nil || string(run.Output) != out {
				t.Errorf("%s: %+v, %v, want %s", id, run, err, out)
			}
		}
		s := scheduleOf(t, e, "nightly")
		if len(s.LastFires) != 5 || s.LastFires[0].RunStatus != durable.StatusCompleted || s.LastFires[0].ID != "nightly@2026-04-19T00:30:00Z" || len(s.Next) != 5 || !s.Next[0].Equal(at("2026-04-20T00:30:00Z")) {
			t.Errorf("%+v", s)
		}
	})
}

func TestScheduleOverlap(t *testing.T) {
	for overlap, outcomes := range map[durable.Overlap][]string{
		// Each run takes 90 minutes; times come each hour from 01:00 on.
		durable.OverlapSkip: {
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled skipped", "2026-01-01T03:00:00Z scheduled started",
			"2026-01-01T04:00:00Z scheduled skipped", "2026-01-01T05:00:00Z scheduled started",
		},
		durable.OverlapWait: { // begun at 01:00, 02:30, 04:00
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled started", "2026-01-01T03:00:00Z scheduled replaced",
			"2026-01-01T04:00:00Z scheduled started", "2026-01-01T05:00:00Z scheduled waiting",
		},
		durable.OverlapCancel: {
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled started", "2026-01-01T03:00:00Z scheduled started",
			"2026-01-01T04:00:00Z scheduled started", "2026-01-01T05:00:00Z scheduled started",
		},
		durable.OverlapAllow: {
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled started", "2026-01-01T03:00:00Z scheduled started",
			"2026-01-01T04:00:00Z scheduled started", "2026-01-01T05:00:00Z scheduled started",
		},
	} {
		t.Run(string(overlap), func(t *testing.T) {
			onStores(t, func(t *testing.T, opts ...durabletest.Option) {
				w := durable.Define("slow", func(c *durable.Ctx, _ int) (int, error) {
					return 1, c.Sleep("work", 90*time.Minute)
				})
				e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
				must(t, e.SetSchedule(quickly(t), w.Schedule(1, durable.Schedule{Name: "s", Cron: "@hourly", Overlap: overlap})))
				e.Advance(5 * time.Hour) // until 05:10
				got, outcomes := fires(t, e, "s"), slices.Clone(outcomes)
				if overlap == durable.OverlapWait { // 04:00 is when the run of 02:00 ends: whichever comes first
					got = slices.DeleteFunc(got, func(f string) bool { return f > "2026-01-01T03" })
					outcomes = slices.DeleteFunc(outcomes, func(f string) bool { return f > "2026-01-01T03" })
				}
				want(t, "fires", got, outcomes)
				if overlap == durable.OverlapCancel {
					run, err := e.Get(quickly(t), "s@2026-01-01T02:00:00Z")
					must(t, err)
					if run.Cancellation == nil || run.Cancellation.Actor != "durable" || run.Cancellation.Reason != `the next time of schedule "s" has come` {
						t.Errorf("%+v", run)
					}
				}
			})
		})
	}
}

// TestScheduleMakesUpForMissedTimes: times that came while no worker lived are fired if they are not longer ago than CatchUp, and
// the others by Backfill.
func TestScheduleMakesUpForMissedTimes(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, nil })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		must(t, e.SetSchedule(quickly(t), w.Schedule(1, durable.Schedule{Name: "s", Cron: "0 * * * *", Overlap: durable.OverlapAllow, CatchUp: 150 * time.Minute})))
		e.Advance(time.Hour)
		e.Stop()
		e.Advance(6 * time.Hour) // until 07:10
		e = e.StartAnother(w)
		e.Advance(0)
		want(t, "after 6 hours without a worker", fires(t, e, "s"), []string{
			"2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z scheduled missed",
			"2026-01-01T05:00:00Z scheduled started", "2026-01-01T06:00:00Z scheduled started", "2026-01-01T07:00:00Z scheduled started",
		})
		done, err := e.Backfill(quickly(t), "s", at("2025-12-31T23:00:00Z"), at("2026-01-01T09:00:00Z"))
		if err != nil || done != (durable.BackfillResult{Started: 5, AlreadyFired: 4}) {
			t.Errorf("%+v, %v", done, err)
		}
		want(t, "after the backfill", fires(t, e, "s"), []string{
			"2025-12-31T23:00:00Z backfill started", "2026-01-01T00:00:00Z backfill started", "2026-01-01T01:00:00Z scheduled started",
			"2026-01-01T02:00:00Z backfill started", "2026-01-01T03:00:00Z backfill started", "2026-01-01T04:00:00Z backfill started",
			"2026-01-01T05:00:00Z scheduled started", "2026-01-01T06:00:00Z scheduled started", "2026-01-01T07:00:00Z scheduled started",
		})
		e.Advance(time.Hour)
		if got := fires(t, e, "s"); got[len(got)-1] != "2026-01-01T08:00:00Z scheduled started" {
			t.Errorf("after the backfill: %q", got)
		}
	})
}

func TestSchedulePause(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, nil })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		ctx := quickly(t)
		must(t, e.SetSchedule(ctx, w.Schedule(1, durable.Schedule{Name: "s", Every: time.Hour}), durable.Actor("ann"), durable.Reason("more often")))
		e.Advance(time.Hour)
		must(t, e.PauseSchedule(ctx, "s", durable.Actor("bob"), durable.Reason("stock is counted")))
		must(t, e.PauseSchedule(ctx, "s", durable.Actor("eve")))
		s := scheduleOf(t, e, "s")
		if s.PausedBy != "bob" || s.PauseReason != "stock is counted" || !s.PausedAt.Equal(at("2026-01-01T01:10:00Z")) || len(s.Next) != 0 || s.SetBy != "ann" || s.SetReason != "more often" {
			t.Errorf("paused: %+v", s)
		}
		e.Advance(2 * time.Hour)
		if id, err := e.TriggerSchedule(ctx, "s"); err != nil || id != "s@2026-01-01T03:10:00.000001Z" {
			t.Errorf("a trigger during the pause: %q, %v", id, err)
		}
		done, err := e.Backfill(ctx, "s", at("2026-01-01T00:00:00Z"), at("2026-01-01T03:00:00Z"))
		if err != nil || done != (durable.BackfillResult{Started: 2, AlreadyFired: 1}) {
			t.Errorf("a backfill during the pause: %+v, %v", done, err)
		}
		must(t, e.ResumeSchedule(ctx, "s"))
		e.Advance(time.Hour)
		want(t, "fires", fires(t, e, "s"), []string{
			"2026-01-01T00:00:00Z backfill started", "2026-01-01T01:00:00Z scheduled started", "2026-01-01T02:00:00Z backfill started",
			"2026-01-01T03:10:00Z triggered started", "2026-01-01T04:00:00Z scheduled started",
		})
		if err := e.ResumeSchedule(ctx, "s"); !errors.Is(err, durable.ErrState) {
			t.Error(err)
		}
		must(t, e.DeleteSchedule(ctx, "s"))
		for verb, err := range map[string]error{
			"pause": e.PauseSchedule(ctx, "s"), "resume": e.ResumeSchedule(ctx, "s"), "delete": e.DeleteSchedule(ctx, "s"), "reset": e.ResetSchedule(ctx, "s"),
		} {
			if !errors.Is(err, durable.ErrNotFound) {
				t.Errorf("%s of a deleted schedule: %v", verb, err)
			}
		}
		if all, err := e.Schedules(ctx); err != nil || len(all) != 0 {
			t.Errorf("%+v, %v", all, err)
		}
	})
}

// TestScheduleTakenID: a time whose ID is taken is recorded as failed, and passed. A workflow that no worker knows is started too.
func TestScheduleTakenID(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, nil })
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z")...)
		if _, err := w.Start(quickly(t), e.Engine, 7, durable.ID("s@2026-01-01T01:00:00Z")); err != nil {
			t.Fatal(err)
		}
		must(t, e.SetSchedule(quickly(t), durable.Schedule{Name: "s", Cron: "@hourly", Workflow: "unknown", Input: map[string]int{"a": 1}}))
		e.Advance(2 * time.Hour)
		want(t, "fires", fires(t, e, "s"), []string{"2026-01-01T01:00:00Z scheduled failed", "2026-01-01T02:00:00Z scheduled started"})
		run, err := e.Get(quickly(t), "s@2026-01-01T02:00:00Z")
		if err != nil || run.Status != durable.StatusPending || string(run.Input) != `{"a":1}` || run.Workflow != "unknown" {
			t.Errorf("%+v, %v", run, err)
		}
	})
}

// TestScheduleDeclarations: the newest version's declaration applies, unless an operator has set the schedule. Removal from code
// deletes nothing.
func TestScheduleDeclarations(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		w := durable.Define("w", func(c *durable.Ctx, _ string) (int, error) { return 1, nil })
		version, cron := "v1", "@daily"
		e := durabletest.NewWithOptions(t, defs(w), on(opts, "2026-01-01T00:10:00Z", durabletest.Configure(func(cfg *durable.Config) {
			cfg.Version = version
			if cron != "" {
				cfg.Schedules = []durable.Schedule{w.Schedule("in", durable.Schedule{Name: "s", Cron: cron})}
			}
		}))...)
		ctx := quickly(t)
		check := func(what, declared, applies string) {
			t.Helper()
			e.Advance(0)
			if s := scheduleOf(t, e, "s"); s.Declared == nil || s.Declared.Cron != declared || s.Schedule.Cron != applies {
				t.Errorf("%s: %+v", what, s)
			}
		}
		check("first", "@daily", "@daily")
		version, cron = "v2", "@hourly"
		second := e.StartAnother(w)
		check("a newer version", "@hourly", "@hourly")
		version, cron = "v1", "@daily"
		third := e.StartAnother(w)
		check("the old version again", "@hourly", "@hourly")
		second.Stop()
		third.Stop()
		e.StartAnother(w)
		check("the old version, when no worker of the new one lives", "@daily", "@daily")
		must(t, e.SetSchedule(ctx, durable.Schedule{Name: "s", Cron: "@weekly", Workflow: "w", Input: "by hand"}))
		version, cron = "v3", "@monthly"
		e.StartAnother(w)
		check("set by an operator", "@monthly", "@weekly")
		must(t, e.ResetSchedule(ctx, "s"))
		check("reset", "@monthly", "@monthly")
		version, cron = "v4", ""
		e.StartAnother(w)
		check("no longer in the code", "@monthly", "@monthly")
		must(t, e.DeleteSchedule(ctx, "s"))
		if s := scheduleOf(t, e, "s"); !s.DeclaredButDeleted || s.Schedule.Cron != "" || len(s.Next) != 0 {
			t.Errorf("deleted: %+v", s)
		}
		must(t, e.ResetSchedule(ctx, "s"))
		check("reset after it was deleted", "@monthly", "@monthly")
	})
}

// TestScheduleRemembersWhatFired: of many fires only the latest are kept in full, and Backfill still knows all of them, also after
// their runs were deleted. Two workers fire each time once.
func TestScheduleRemembersWhatFired(t *testing.T) {
	onStores(t, func(t *testing.T, opts ...durabletest.Option) {
		e := durabletest.NewWithOptions(t, nil, on(opts, "2026-01-01T00:00:00Z")...)
		must(t, e.SetSchedule(quickly(t), durable.Schedule{Name: "s", Every: time.Second, Workflow: "unknown", Overlap: durable.OverlapAllow, CatchUp: time.Hour}))
		e.Advance(30 * time.Minute)
		w := durable.Define("w", func(c *durable.Ctx, _ int) (int, error) { return 1, nil })
		e.StartAnother(w)
		e = e.StartAnother(w)
		e.Advance(0)
		n := len(fires(t, e, "s"))
		if n < 1000 || n > 1100 {
			t.Errorf("%d fires are kept of 1800", n)
		}
		done, err := e.Backfill(quickly(t), "s", at("2025-12-31T23:59:00Z"), at("2026-01-01T02:00:00Z"))
		if err != nil || done != (durable.BackfillResult{Started: 61, AlreadyFired: 1800}) {
			t.Errorf("%+v, %v", done, err)
		}
	})
}

// TestScheduleRefusesBadSettings: a bad schedule is refused when it is set, with the field and the fix.
func TestScheduleRefusesBadSettings(t *testing.T) {
	t.Parallel()
	type input struct{ Format string }
	w := durable.Define("w", func(c *durable.Ctx, _ input) (int, error) { return 1, nil })
	e := durabletest.New(t, w)
	good := w.Schedule(input{"pdf"}, durable.Schedule{Name: "s", Cron: "@daily"})
	must(t, e.SetSchedule(quickly(t), good))
	for field, c := range map[string]struct {
		change func(s *durable.Schedule)
		is     error
	}{
		"Cron":     {func(s *durable.Schedule) { s.Cron = "61 * * * *" }, durable.ErrInvalidConfig},
		"Every":    {func(s *durable.Schedule) { s.Every = time.Hour }, durable.ErrInvalidConfig},
		"Location": {func(s *durable.Schedule) { s.Location = "Europe/Atlantis" }, durable.ErrInvalidConfig},
		"Overlap":  {func(s *durable.Schedule) { s.Overlap = "both" }, durable.ErrInvalidConfig},
		"CatchUp":  {func(s *durable.Schedule) { s.CatchUp = time.Second }, durable.ErrInvalidConfig},
		"Jitter":   {func(s *durable.Schedule) { s.Jitter = -1 }, durable.ErrInvalidConfig},
		"Priority": {func(s *durable.Schedule) { s.Priority = 3 }, durable.ErrInvalidConfig},
		"GroupKey": {func(s *durable.Schedule) { s.GroupKey = "a\x00" }, durable.ErrInvalidName},
		"Weight":   {func(s *durable.Schedule) { s.Weight = 1 }, durable.ErrInvalidConfig},
		"Timeout":  {func(s *durable.Schedule) { s.Timeout = -1 }, durable.ErrInvalidConfig},
		"name":     {func(s *durable.Schedule) { s.Name = "" }, durable.ErrInvalidName},
		"workflow": {func(s *durable.Schedule) { s.Workflow = "" }, durable.ErrInvalidName},
		"tag":      {func(s *durable.Schedule) { s.Tags = map[string]string{"x": "y"} }, durable.ErrInvalidName},
		"input": {func(s *durable.Schedule) {
			*s = durable.Schedule{Name: "s", Cron: "@daily", Workflow: "w", Input: []int{1}}
		}, durable.ErrNotEncodable},
		"the input": {func(s *durable.Schedule) {
			*s = durable.Schedule{Name: "s", Cron: "@daily", Workflow: "w", Input: make(chan int)}
		}, durable.ErrNotEncodable},
	} {
		bad := good
		c.change(&bad)
		if err := e.SetSchedule(quickly(t), bad); !errors.Is(err, c.is) || !strings.Contains(err.Error(), field) {
			t.Errorf("%s: %v, want %v", field, err, c.is)
		}
		if _, err := durable.New(e.Store(), durable.Config{Workflows: defs(w), Schedules: []durable.Schedule{bad}}); !errors.Is(err, c.is) {
			t.Errorf("%s in Config: %v, want %v", field, err, c.is)
		}
	}
	if _, err := durable.New(e.Store(), durable.Config{Workflows: defs(w), Schedules: []durable.Schedule{good, good}}); !errors.Is(err, durable.ErrInvalidConfig) {
		t.Errorf("twice in Config: %v", err)
	}
	again := scheduleOf(t, e, "s").Schedule // what Schedules returns can be set again
	must(t, e.SetSchedule(quickly(t), again))
}
