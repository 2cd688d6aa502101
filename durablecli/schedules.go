package durablecli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func schedulesCommand(f *globalFlags) []*cobra.Command {
	list := &cobra.Command{
		Use: "schedules", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the schedules, with their last and next times",
	}
	var limit int
	fires := &cobra.Command{
		Use: "fires SCHEDULE", GroupID: groupLook, Args: requireOneName,
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
				s.writeMessage("there is no schedule")
			}
			return printRows(s.printer, schedules, scheduleName, scheduleColumns(s.printer))
		}),
		f.withEngine(fires, func(ctx context.Context, s *session) error {
			all, err := s.engine.ScheduleFires(ctx, s.args[0], durable.Page{Limit: limit})
			if err != nil {
				return err
			}
			return printRows(s.printer, all, func(f *durable.ScheduleFire) string { return f.ID }, fireColumns(s.printer))
		}),
	}
}

func scheduleColumns(p *printer) []column[durable.ScheduleInfo] {
	type row = durable.ScheduleInfo
	return []column[row]{
		{title: "SCHEDULE", isShortenedLast: true, text: func(i *row) string { return i.Name }},
		{title: "WORKFLOW", text: func(i *row) string { return i.Schedule.Workflow }},
		{title: "TIMES", isShortenedLast: true, text: func(i *row) string { return wording.ScheduleTimes(&i.Schedule) }},
		{title: "LAST", text: func(i *row) string { return lastFireText(p, i) }},
		{title: "NEXT", isShortenedLast: true, text: func(i *row) string {
			if len(i.Next) == 0 {
				return "-"
			}
			return p.ageOrExact(i.Next[0])
		}},
		{title: "STATE", text: func(i *row) string { return wording.ScheduleState(p.pastOrExact, i) }, color: func(i *row) color {
			if i.Problem != "" {
				return red
			}
			return colorIf(!i.PausedAt.IsZero(), yellow)
		}},
		{title: "OVERLAP", isWideOnly: true, text: func(i *row) string { return string(i.Schedule.Overlap) }},
		{title: "QUEUE", isWideOnly: true, text: func(i *row) string { return i.Schedule.Queue }},
		{title: "FROM", isWideOnly: true, text: func(i *row) string {
			return wording.SettingsOrigin(i.Set != nil, i.SetBy, i.SetReason, i.DeclaredVersion)
		}},
		{title: "LAST CHANGE", isWideOnly: true, text: func(i *row) string { return wording.LastChange(i.LastChange) }},
	}
}

func lastFireText(p *printer, i *durable.ScheduleInfo) string {
	if len(i.LastFires) == 0 {
		return "-"
	}
	last := i.LastFires[0]
	return p.pastOrExact(last.At) + ": " + cmp.Or(string(last.RunStatus), string(last.Outcome))
}

func colorIf(condition bool, c color) color {
	if condition {
		return c
	}
	return plain
}

func fireColumns(p *printer) []column[durable.ScheduleFire] {
	type row = durable.ScheduleFire
	return []column[row]{
		{title: "TIME", isShortenedLast: true, text: func(f *row) string { return wording.ExactTime(f.At) }},
		{title: "KIND", text: func(f *row) string { return string(f.Kind) }},
		{title: "OUTCOME", isShortenedLast: true, text: func(f *row) string { return string(f.Outcome) }},
		{title: "ID", text: func(f *row) string { return f.ID }},
		{title: "STATUS", text: func(f *row) string { return string(f.RunStatus) }, color: func(f *row) color { return statusColor(f.RunStatus) }},
		{title: "DECIDED", isWideOnly: true, text: func(f *row) string { return p.pastOrExact(f.FiredAt) }},
	}
}
