package durablecli

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

// controlCommands returns the commands of the operations with a durable.ControlResult.
func controlCommands(f *globalFlags) []*cobra.Command {
	var freezeTimers, onlyItself, onlyUnstarted bool
	pause := controlCommand(f, "pause", "Pause runs and their descendants; running steps finish first", nil,
		func(e *durable.Engine) (controlOneFunc, controlAllFunc) { return e.Pause, e.PauseAll })
	resume := controlCommand(f, "resume", "Resume runs that are paused", func() (opts []durable.ControlOption) {
		if freezeTimers {
			opts = append(opts, durable.FreezeTimers())
		}
		return opts
	}, func(e *durable.Engine) (controlOneFunc, controlAllFunc) { return e.Resume, e.ResumeAll })
	resume.Flags().BoolVar(&freezeTimers, "freeze-timers", false, "sleeps, waits and timeouts end later by the duration of the pause")
	cancel := controlCommand(f, "cancel", "Cancel runs and their descendants; their compensations are executed", func() (opts []durable.ControlOption) {
		if onlyItself {
			opts = append(opts, durable.OnlyItself())
		}
		if onlyUnstarted {
			opts = append(opts, durable.OnlyUnstarted())
		}
		return opts
	}, func(e *durable.Engine) (controlOneFunc, controlAllFunc) { return e.Cancel, e.CancelAll })
	cancel.Flags().BoolVar(&onlyItself, "only-itself", false, "descendants continue")
	cancel.Flags().BoolVar(&onlyUnstarted, "only-unstarted", false, "descendants that have been executed continue")
	cancel.MarkFlagsMutuallyExclusive("only-itself", "only-unstarted")
	terminate := controlCommand(f, "terminate", "End runs and their descendants at once, without compensations", nil,
		func(e *durable.Engine) (controlOneFunc, controlAllFunc) { return e.Terminate, e.TerminateAll })
	return []*cobra.Command{pause, resume, cancel, terminate}
}

type (
	controlOneFunc = func(context.Context, string, ...durable.ControlOption) (durable.ControlResult, error)
	controlAllFunc = func(context.Context, durable.Filter, ...durable.ControlOption) (durable.ControlResult, error)
)

// controlRow is the result of an operation: of one run, or of a filter.
type controlRow struct {
	ID string // the run; empty: a filter
	durable.ControlResult
}

func controlCommand(f *globalFlags, name, short string, options func() []durable.ControlOption, of func(*durable.Engine) (controlOneFunc, controlAllFunc)) *cobra.Command {
	var b bulkFlags
	cmd := &cobra.Command{
		Use: name + " {ID... | - | FILTER}", GroupID: groupAct, Args: cobra.ArbitraryArgs,
		Short:   short,
		Long:    short + ".\n\nThe runs are those with the IDs, those whose IDs standard input has, one a line (-), or those that match the filter.\nFor a filter, the command tells how many runs match, and asks.",
		Example: fmt.Sprintf("  durable %[1]s order-42 --reason \"wrong prices\"\n  durable %[1]s --workflow checkout --created-after 1h --dry-run", name),
	}
	b.addTo(cmd)
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		one, all := of(s.engine)
		var more []durable.ControlOption
		if options != nil {
			more = options()
		}
		v := &bulkOperation[controlRow]{
			name: name,
			applyToOne: func(ctx context.Context, id string, dryRun bool) (controlRow, error) {
				result, err := one(ctx, id, b.options(dryRun, more...)...)
				return controlRow{id, result}, err
			},
			applyToFilter: func(ctx context.Context, filter durable.Filter, dryRun bool) (controlRow, error) {
				result, err := all(ctx, filter, b.options(dryRun, more...)...)
				return controlRow{"", result}, err
			},
			countReached: func(r controlRow) (changed, refused int) { return r.Matched, 0 },
			report: func(results []controlRow) error {
				return printResults(s.printer, results, func(r *controlRow) string { return r.ID }, controlledColumns())
			},
		}
		return v.execute(ctx, s, &b, s.args)
	})
}

func controlledColumns() []column[controlRow] {
	return []column[controlRow]{
		{title: "ID", isShortenedLast: true, text: func(r *controlRow) string { return cmp.Or(r.ID, "(filter)") }},
		{title: "MATCHED", alignsRight: true, text: func(r *controlRow) string { return fmt.Sprint(r.Matched) }},
		{title: "DONE", alignsRight: true, isShortenedLast: true, text: func(r *controlRow) string { return fmt.Sprint(r.Done) }},
		{title: "REQUESTED", alignsRight: true, isShortenedLast: true, text: func(r *controlRow) string { return fmt.Sprint(r.Requested) }},
	}
}
