package durablecli

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func schedulesCommand(f *frame) []*cobra.Command {
	list := &cobra.Command{
		Use: "schedules", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the schedules, with their last and next times",
	}
	var limit int
	fires := &cobra.Command{
		Use: "fires SCHEDULE", GroupID: groupLook, Args: oneName,
		Short: "List what happened at the latest times of a schedule, the newest first",
	}
	fires.Flags().IntVarP(&limit, "limit", "n", 20, "the most times, up to 1000")
	return []*cobra.Command{
		f.withEngine(list, func(ctx context.Context, s *session) error {
			schedules, err := s.engine.Schedules(ctx)
			if err != nil {
				return err
			}
			if len(schedules) == 0 && s.format == formatTable {
				s.say("there is no schedule")
			}
			return print(s.printer, schedules, scheduleName, scheduleColumns(s.printer))
		}),
		f.withEngine(fires, func(ctx context.Context, s *session) error {
			all, err := s.engine.Fires(ctx, s.args[0], limit)
			if err != nil {
				return err
			}
			return print(s.printer, all, func(f *durable.Fire) string { return f.ID }, fireColumns(s.printer))
		}),
	}
}

func scheduleColumns(p *printer) []column[durable.ScheduleInfo] {
	type row = durable.ScheduleInfo
	return []column[row]{
		{title: "SCHEDULE", keep: true, text: func(i *row) string { return i.Name }},
		{title: "WORKFLOW", text: func(i *row) string { return i.Schedule.Workflow }},
		{title: "TIMES", keep: true, text: func(i *row) string { return timesText(&i.Schedule) }},
		{title: "LAST", text: func(i *row) string { return lastFireText(p, i) }},
		{title: "NEXT", keep: true, text: func(i *row) string {
			if len(i.Next) == 0 {
				return "-"
			}
			return p.ageOrExact(i.Next[0])
		}},
		{title: "STATE", text: func(i *row) string { return scheduleState(p, i) }, color: func(i *row) color {
			if i.Problem != "" {
				return red
			}
			return ifPainted(!i.PausedAt.IsZero(), yellow)
		}},
		{title: "OVERLAP", wide: true, text: func(i *row) string { return string(i.Schedule.Overlap) }},
		{title: "QUEUE", wide: true, text: func(i *row) string { return i.Schedule.Queue }},
		{title: "FROM", wide: true, text: func(i *row) string { return settingsOrigin(i.Set != nil, i.SetBy, i.SetReason, i.DeclaredVersion) }},
		{title: "LAST CHANGE", wide: true, text: func(i *row) string { return changeText(i.LastChange) }},
	}
}

func timesText(s *durable.Schedule) string {
	if s.Every > 0 {
		return "every " + shortDuration(s.Every)
	}
	return s.Cron + " " + cmp.Or(s.Location, "UTC")
}

func lastFireText(p *printer, i *durable.ScheduleInfo) string {
	if len(i.LastFires) == 0 {
		return "-"
	}
	last := i.LastFires[0]
	return p.pastOrExact(last.At) + ": " + cmp.Or(string(last.RunStatus), last.Outcome)
}

func scheduleState(p *printer, i *durable.ScheduleInfo) string {
	switch {
	case i.DeclaredButDeleted:
		return "deleted, and still declared by the code: durable schedule reset brings it back"
	case i.Problem != "":
		return i.Problem
	case !i.PausedAt.IsZero():
		return withReason("paused "+p.past(i.PausedAt), i.PauseReason, i.PausedBy)
	case !i.WaitingAt.IsZero():
		return "waits for the end of the run before"
	}
	return "active"
}

// shortDuration returns a duration without zero units at its end: "1h", not "1h0m0s".
func shortDuration(d time.Duration) string {
	text := d.String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

func ifPainted(condition bool, c color) color {
	if condition {
		return c
	}
	return plain
}

func fireColumns(p *printer) []column[durable.Fire] {
	type row = durable.Fire
	return []column[row]{
		{title: "TIME", keep: true, text: func(f *row) string { return exact(f.At) }},
		{title: "KIND", text: func(f *row) string { return f.Kind }},
		{title: "OUTCOME", keep: true, text: func(f *row) string { return f.Outcome }},
		{title: "ID", text: func(f *row) string { return f.ID }},
		{title: "STATUS", text: func(f *row) string { return string(f.RunStatus) }, color: func(f *row) color { return statusColor(f.RunStatus) }},
		{title: "DECIDED", wide: true, text: func(f *row) string { return p.pastOrExact(f.FiredAt) }},
	}
}
