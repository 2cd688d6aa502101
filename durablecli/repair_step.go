package durablecli

import (
	"context"
	"encoding/json/jsontext"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

// stepRepair repairs one step of a run. Only rerun has no value.
type stepRepair func(ctx context.Context, e *durable.Engine, id, step string, value jsontext.Value, opts ...durable.ControlOption) (*durable.Repaired, error)

func repairStepCommands(f *globalFlags) []*cobra.Command {
	override := repairStepCommand(f, "override ID STEP VALUE", 3, 3, "Replace the value of a step that has succeeded; what began after it is executed again",
		func(ctx context.Context, e *durable.Engine, id, step string, value jsontext.Value, opts ...durable.ControlOption) (*durable.Repaired, error) {
			return e.Override(ctx, id, step, value, opts...)
		})
	skip := repairStepCommand(f, "skip ID STEP [VALUE]", 2, 3, "Give a value, or null, to a step that has not succeeded, instead of executing it",
		func(ctx context.Context, e *durable.Engine, id, step string, value jsontext.Value, opts ...durable.ControlOption) (*durable.Repaired, error) {
			return e.Skip(ctx, id, step, value, opts...)
		})
	rerun := repairStepCommand(f, "rerun ID STEP", 2, 2, "Execute one step again; all other calls keep their outcomes",
		func(ctx context.Context, e *durable.Engine, id, step string, _ jsontext.Value, opts ...durable.ControlOption) (*durable.Repaired, error) {
			return e.Rerun(ctx, id, step, opts...)
		})
	return []*cobra.Command{override, skip, rerun}
}

func repairStepCommand(f *globalFlags, use string, fewest, most int, short string, repair stepRepair) *cobra.Command {
	var act actFlags
	var fromEnd, interruptSteps, dryRun bool
	cmd := &cobra.Command{
		Use: use, GroupID: groupAct, Args: cobra.RangeArgs(fewest, most),
		Short: short,
		Long: short + ".\n\nThe step is named as durable history shows it. The run may be live: then the command waits until its running steps have\nfinished, unless --interrupt-steps is given. " +
			"A value is JSON: given as it is, as @FILE, or as - for standard input.",
	}
	act.addTo(cmd)
	cmd.Flags().BoolVar(&dryRun, dryRunFlag, false, "change nothing, and tell what would be done")
	cmd.Flags().BoolVar(&interruptSteps, "interrupt-steps", false, "interrupt the running steps of a live run instead of waiting for them; they are executed again")
	if cmd.Name() == "override" {
		cmd.Flags().BoolVar(&fromEnd, "from-end", false, "keep the calls that began after the step")
	}
	return f.withEngine(cmd, func(ctx context.Context, s *session) error {
		value, err := s.payloadArgument("value", s.args, 2)
		if err != nil {
			return err
		}
		opts := act.options()
		if dryRun {
			opts = append(opts, durable.DryRun())
		}
		if interruptSteps {
			opts = append(opts, durable.InterruptSteps())
		}
		if fromEnd {
			opts = append(opts, durable.FromEnd())
		}
		repaired, err := repair(ctx, s.engine, s.args[0], s.args[1], value, opts...)
		if err != nil {
			return err
		}
		return reportRepairs(s.printer, []durable.RepairedRuns{{Matched: 1, Repaired: []*durable.Repaired{repaired}}})
	})
}
