package durablecli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func scheduleCommand(f *globalFlags) []*cobra.Command {
	show := func(ctx context.Context, s *session, name string) error {
		schedules, err := s.engine.Schedules(ctx)
		return showNamed(s.printer, schedules, err, name, scheduleName, scheduleColumns(s.printer))
	}
	return []*cobra.Command{nounCommand(f, "schedule", "Set, pause, resume, trigger, backfill, reset or delete a schedule",
		scheduleSetCommand(f, show),
		f.namedCommand("pause", "Let the schedule start no runs", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.PauseSchedule(ctx, name, opts...)
		}, show),
		f.namedCommand("resume", "Let the schedule start runs again", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.ResumeSchedule(ctx, name, opts...)
		}, show),
		f.namedCommand("reset", "Return to the schedule that the code declares", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.ResetSchedule(ctx, name, opts...)
		}, show),
		f.namedCommand("delete", "Delete the schedule; its runs continue", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.DeleteSchedule(ctx, name, opts...)
		}, nil),
		triggerCommand(f), backfillCommand(f),
	)}
}

func scheduleName(i *durable.ScheduleInfo) string { return i.Name }

func triggerCommand(f *globalFlags) *cobra.Command {
	cmd := &cobra.Command{Use: "trigger NAME", Args: requireOneName, Short: "Start a run of the schedule now, also if it is paused, and write its ID"}
	var act actFlags
	act.addTo(cmd)
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		id, err := s.engine.TriggerSchedule(ctx, s.args[0], act.options()...)
		if err != nil {
			return err
		}
		if s.format == formatTable || s.format == formatWide {
			return s.writeID(id)
		}
		return s.writeDescription(struct{ ID string }{id}, id, nil)
	})
}

func backfillCommand(f *globalFlags) *cobra.Command {
	var from, to string
	cmd := &cobra.Command{
		Use: "backfill NAME", Args: requireOneName,
		Short:   "Start the runs of the times between --from and --to that have started none",
		Example: "  durable schedule backfill nightly --from 2026-11-20 --to today",
	}
	cmd.Flags().StringVar(&from, "from", "", "the first time: a time, a date, yesterday, or how long ago")
	cmd.Flags().StringVar(&to, "to", "now", "the time before which the last one lies")
	var act actFlags
	act.addTo(cmd)
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		if from == "" {
			return newUsageError("--from is missing: name the first time")
		}
		first, err := wording.ParseTime(from, s.now())
		if err != nil {
			return &markedError{errUsage, err}
		}
		end, err := wording.ParseTime(to, s.now())
		if err != nil {
			return &markedError{errUsage, err}
		}
		result, err := s.engine.Backfill(ctx, s.args[0], first, end, act.options()...)
		s.writeMessage("%s of %s started, %d had started before, %d IDs were taken", wording.Count(result.Started, "run", "runs"), s.args[0], result.AlreadyFired, result.IDTaken)
		return err
	})
}

func scheduleSetCommand(f *globalFlags, show func(context.Context, *session, string) error) *cobra.Command {
	var act actFlags
	var given durable.Schedule
	var input, overlap string
	var tags []string
	cmd := &cobra.Command{
		Use: "set NAME", Args: requireOneName,
		Short:   "Create or change a schedule; what no flag names stays",
		Example: "  durable schedule set nightly --cron \"30 2 * * *\" --location Europe/Berlin --workflow report --input '{\"format\": \"pdf\"}'",
	}
	act.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&given.Cron, "cron", "", "the times, as a cron expression of five fields")
	flags.Var(durationFlag{&given.Every}, "every", "the times, as an interval of whole seconds")
	flags.StringVar(&given.Location, "location", "", "the time zone of --cron, such as Europe/Berlin (default UTC)")
	flags.StringVarP(&given.Workflow, "workflow", "w", "", "the workflow")
	flags.StringVarP(&given.Queue, "queue", "q", "", "the queue of the runs")
	flags.IntVar(&given.Priority, "priority", 0, "the priority of the runs, from -2 to 2")
	flags.StringVar(&given.GroupKey, "key", "", "the group key of the runs")
	flags.StringVar(&input, "input", "", "the input of the runs: JSON, @FILE, or - for standard input")
	flags.Var(durationFlag{&given.Timeout}, "timeout", "how long each run may take; 0: no bound")
	flags.StringArrayVarP(&tags, "tag", "t", nil, "a tag of each run, as key=value; may be repeated, and replaces all tags")
	flags.StringVar(&overlap, "overlap", "", "what happens while the run before has not ended: skip, wait, cancel or allow")
	flags.Var(durationFlag{&given.CatchUp}, "catch-up", "how late a time is still decided after an outage")
	flags.Var(durationFlag{&given.Jitter}, "jitter", "by how much each start is delayed at most")
	cmd.MarkFlagsMutuallyExclusive("cron", "every")
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		schedules, err := s.engine.Schedules(ctx)
		if err != nil {
			return err
		}
		changed := durable.Schedule{Name: s.args[0]}
		if i := findByName(schedules, s.args[0], scheduleName); i != nil {
			changed = i.Schedule
		}
		if known := s.workflows(); flags.Changed("workflow") && len(known) > 0 {
			if _, err := findWorkflow(known, given.Workflow); err != nil {
				return fmt.Errorf("schedule %w", err)
			}
		}
		given.Overlap = durable.Overlap(overlap)
		if flags.Changed("input") {
			if changed.Input, err = s.payload("input", input); err != nil {
				return err
			}
		}
		if flags.Changed("tag") {
			if changed.Tags, err = parseTags(tags); err != nil {
				return err
			}
		}
		changeSchedule(&changed, &given, flags.Changed)
		if err := s.engine.SetSchedule(ctx, changed, act.options()...); err != nil {
			return err
		}
		return show(ctx, s, s.args[0])
	})
}

// changeSchedule takes those fields from given whose flags were given.
func changeSchedule(s, given *durable.Schedule, changed func(flag string) bool) {
	if changed("cron") {
		s.Cron, s.Every = given.Cron, 0
	}
	if changed("every") {
		s.Every, s.Cron, s.Location = given.Every, "", ""
	}
	for flag, text := range map[string][2]*string{
		"location": {&s.Location, &given.Location}, "workflow": {&s.Workflow, &given.Workflow}, "queue": {&s.Queue, &given.Queue},
		"key": {&s.GroupKey, &given.GroupKey}, "overlap": {(*string)(&s.Overlap), (*string)(&given.Overlap)},
	} {
		if changed(flag) {
			*text[0] = *text[1]
		}
	}
	for flag, d := range map[string][2]*time.Duration{
		"timeout": {&s.Timeout, &given.Timeout}, "catch-up": {&s.CatchUp, &given.CatchUp}, "jitter": {&s.Jitter, &given.Jitter},
	} {
		if changed(flag) {
			*d[0] = *d[1]
		}
	}
	if changed("priority") {
		s.Priority = given.Priority
	}
}
