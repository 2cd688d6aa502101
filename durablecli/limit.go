package durablecli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func limitCommand(f *globalFlags) []*cobra.Command {
	show := func(ctx context.Context, s *session, name string) error {
		limits, err := s.engine.Limits(ctx)
		return showNamed(s.printer, limits, err, name, limitName, limitColumns())
	}
	return []*cobra.Command{nounCommand(f, "limit", "Set, reset or delete a limit of steps",
		limitSetCommand(f, show),
		f.namedCommand("reset", "Return to the bounds that the code declares", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.ResetLimit(ctx, name, opts...)
		}, show),
		f.namedCommand("delete", "Delete what is recorded of the limit", func(ctx context.Context, e *durable.Engine, name string, opts ...durable.ControlOption) error {
			return e.DeleteLimit(ctx, name, opts...)
		}, nil),
	)}
}

func limitName(l *durable.LimitInfo) string { return l.Name }

func limitSetCommand(f *globalFlags, show func(context.Context, *session, string) error) *cobra.Command {
	var act actFlags
	var concurrent int
	cmd := &cobra.Command{
		Use: "set NAME", Args: requireOneName,
		Short:   "Set bounds of a limit; those that no flag names stay",
		Example: "  durable limit set bank --concurrent 4 --rate 20/s --reason \"agreed with the bank\"",
	}
	act.addTo(cmd)
	addBoundFlag(cmd, &concurrent, "concurrent", "how many units are held at once")
	setRate := rateFlag(cmd, "rate", "burst", "how many units are granted in a period")
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		limits, err := s.engine.Limits(ctx)
		if err != nil {
			return err
		}
		var bounds durable.LimitBounds
		if l := findByName(limits, s.args[0], limitName); l != nil {
			bounds = l.LimitBounds
		}
		if s.cmd.Flags().Changed("concurrent") {
			bounds.Concurrent = concurrent
		}
		if err := setRate(&bounds.Rate, &bounds.Period, &bounds.Burst); err != nil {
			return err
		}
		if err := s.engine.SetLimit(ctx, s.args[0], bounds, act.options()...); err != nil {
			return err
		}
		return show(ctx, s, s.args[0])
	})
}
