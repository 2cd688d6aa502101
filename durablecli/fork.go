package durablecli

import (
	"context"
	"encoding/json/jsontext"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func forkCommand(f *globalFlags) []*cobra.Command {
	var act actFlags
	var from, newID string
	var with []string
	var fromEnd, interruptSteps, dryRun bool
	cmd := &cobra.Command{
		Use: "fork ID {--from CALL | --from-end}", GroupID: groupAct, Args: requireOneRun,
		Short: "Execute a copy of a run anew from a call, in its place or with --new-id as another run",
		Long: "Execute a copy of a run anew from a call. Without --new-id, the copy is the next generation of the run. With --new-id, it is\n" +
			"another run, the forked run does not change, and its steps have idempotency keys of their own: they repeat effects.",
		Example: "  durable fork order-42 --from charge --dry-run\n  durable fork order-42 --from ship --new-id order-42-test --with 'charge=\"paid by hand\"'",
	}
	act.addTo(cmd)
	flags := cmd.Flags()
	flags.StringVar(&from, "from", "", "drop the checkpoint of this call and of all that began after it")
	flags.BoolVar(&fromEnd, "from-end", false, "keep all checkpoints; unless --new-id is given, steps that compensations have undone are executed again")
	flags.StringVar(&newID, "new-id", "", "the ID of the new run (default: the run itself, as its next generation)")
	flags.StringArrayVar(&with, "with", nil, "give a call a value instead of executing it, as CALL=JSON; may be repeated")
	flags.BoolVar(&interruptSteps, "interrupt-steps", false, "interrupt the running steps of a live run instead of waiting for them; they are executed again")
	flags.BoolVar(&dryRun, dryRunFlag, false, "change nothing, and tell what would be done")
	cmd.MarkFlagsMutuallyExclusive("from", "from-end")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		opts := act.options()
		switch {
		case from != "":
			opts = append(opts, durable.From(from))
		case fromEnd:
			opts = append(opts, durable.FromEnd())
		}
		if newID != "" {
			opts = append(opts, durable.NewID(newID))
		}
		for _, text := range with {
			call, value, ok := strings.Cut(text, "=")
			json := jsontext.Value(value)
			if !ok || call == "" || json.Compact() != nil {
				return newUsageError("--with %q is not understood: write CALL=JSON; a text needs quotes of its own: 'charge=\"paid\"'", text)
			}
			opts = append(opts, durable.OverrideStep(call, json))
		}
		if interruptSteps {
			opts = append(opts, durable.InterruptSteps())
		}
		if dryRun {
			opts = append(opts, durable.DryRun())
		}
		forked, err := s.engine.Fork(ctx, s.args[0], opts...)
		if err != nil {
			return withRepairFlags(err)
		}
		return reportRepairs(s.printer, []durable.RepairedRuns{{Matched: 1, Repaired: []*durable.Repaired{forked}}})
	})}
}
