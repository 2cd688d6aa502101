package durable_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/exampletest"
)

// A daily report. In a program, Engine.Run fires the schedule; here the clock of a test does.
func ExampleWorkflow_Schedule() {
	t := exampletest.New()
	defer t.End()
	report := durable.Define("report", func(c *durable.Ctx, format string) (string, error) {
		return format + " of " + durable.ScheduledAt(c).Format(time.DateOnly), nil
	})
	engine := durabletest.NewWithOptions(t, []durable.Definition{report},
		durabletest.StartClockAt(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)),
		durabletest.Configure(func(cfg *durable.Config) {
			cfg.Schedules = []durable.Schedule{
				report.Schedule("pdf", durable.Schedule{Name: "nightly", Cron: "30 2 * * *", Location: "Europe/Berlin"}),
			}
		}))
	engine.Advance(72 * time.Hour) // on March 29, there is no 02:30 in Berlin: summer time begins at 02:00
	fires, err := engine.ScheduleFires(context.Background(), "nightly", durable.Page{Limit: 3})
	if err != nil {
		log.Fatal(err)
	}
	for _, fire := range fires {
		run, err := engine.Get(context.Background(), fire.ID)
		fmt.Println(fire.ID, fire.Outcome, string(run.Output), err)
	}
	// Output:
	// nightly@2026-03-30T00:30:00Z started "pdf of 2026-03-30" <nil>
	// nightly@2026-03-29T01:00:00Z started "pdf of 2026-03-29" <nil>
	// nightly@2026-03-28T01:30:00Z started "pdf of 2026-03-28" <nil>
}

// A graph that a schedule starts each day.
func ExampleNodeInput_ScheduledAt() {
	t := exampletest.New()
	defer t.End()
	report := durable.DefineGraph("report", func(g *durable.Graph[string]) *durable.Node[string] {
		return g.Step("write", func(_ context.Context, in *durable.NodeInput) (string, error) {
			return g.Input(in) + " of " + in.ScheduledAt().Format(time.DateOnly), nil
		})
	})
	engine := durabletest.NewWithOptions(t, []durable.Definition{report}, durabletest.StartClockAt(time.Date(2026, 3, 27, 12, 0, 0, 0, time.UTC)))
	ctx := context.Background()
	if err := engine.SetSchedule(ctx, report.Schedule("pdf", durable.Schedule{Name: "nightly", Cron: "@daily"})); err != nil {
		log.Fatal(err)
	}
	engine.Advance(24 * time.Hour)
	run, err := engine.Get(ctx, "nightly@2026-03-28T00:00:00Z")
	fmt.Println(string(run.Output), err)
	// Output: "pdf of 2026-03-28" <nil>
}

// An operator changes what the code declares, and takes it back.
func ExampleEngine_SetSchedule() {
	t := exampletest.New()
	defer t.End()
	report := durable.Define("report", func(*durable.Ctx, string) (string, error) { return "done", nil })
	engine := durabletest.NewWithOptions(t, []durable.Definition{report}, durabletest.Configure(func(cfg *durable.Config) {
		cfg.Schedules = []durable.Schedule{report.Schedule("pdf", durable.Schedule{Name: "nightly", Cron: "@daily"})}
	}))
	engine.Advance(0)
	ctx := context.Background()
	show := func() {
		all, err := engine.Schedules(ctx)
		if err != nil {
			log.Fatal(err)
		}
		for _, s := range all {
			fmt.Printf("%s: %s, declared %s, set by %q\n", s.Name, s.Schedule.Cron, s.Declared.Cron, s.SetBy)
		}
	}
	show()
	err := engine.SetSchedule(ctx, report.Schedule("pdf", durable.Schedule{Name: "nightly", Cron: "@weekly"}), durable.Actor("ann"))
	fmt.Println(err)
	show()
	fmt.Println(engine.ResetSchedule(ctx, "nightly", durable.Actor("ann")))
	show()
	fmt.Println(engine.DeleteSchedule(ctx, "nightly"))
	// Output:
	// nightly: @daily, declared @daily, set by ""
	// <nil>
	// nightly: @weekly, declared @daily, set by "ann"
	// <nil>
	// nightly: @daily, declared @daily, set by "ann"
	// <nil>
}

// Times that came during a pause are passed. Backfill starts their runs.
func ExampleEngine_Backfill() {
	t := exampletest.New()
	defer t.End()
	report := durable.Define("report", func(*durable.Ctx, string) (string, error) { return "done", nil })
	begin := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	engine := durabletest.NewWithOptions(t, []durable.Definition{report}, durabletest.StartClockAt(begin))
	ctx := context.Background()
	if err := engine.SetSchedule(ctx, report.Schedule("pdf", durable.Schedule{Name: "nightly", Cron: "@daily"})); err != nil {
		log.Fatal(err)
	}
	engine.Advance(24 * time.Hour)
	fmt.Println(engine.PauseSchedule(ctx, "nightly", durable.Actor("ann"), durable.Reason("the printer is broken")))
	engine.Advance(48 * time.Hour)
	fmt.Println(engine.TriggerSchedule(ctx, "nightly")) // a test print
	fmt.Println(engine.ResumeSchedule(ctx, "nightly"))
	done, err := engine.Backfill(ctx, "nightly", begin, engine.Now())
	fmt.Printf("%+v %v\n", done, err)
	// Output:
	// <nil>
	// nightly@2026-01-04T12:00:00.000001Z <nil>
	// <nil>
	// {Started:2 AlreadyFired:1 IDTaken:0} <nil>
}
