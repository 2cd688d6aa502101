package durablecli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// errRefused is returned when some runs of a filter were refused, each with its reason in a message.
var errRefused = errors.New("some runs were refused")

func retryCommand(f *globalFlags) []*cobra.Command {
	var b bulkFlags
	var from string
	var fromEnd bool
	cmd := &cobra.Command{
		Use: "retry {ID... | - | FILTER}", GroupID: groupAct, Args: cobra.ArbitraryArgs,
		Short: "Execute runs anew that failed or expired, from the step that failed",
		Long: "Execute runs anew that failed or expired, from the step that failed. Recorded steps are not executed again.\n\n" +
			"The runs are those with the IDs, those whose IDs standard input has, one a line (-), or the root runs that match the\nfilter. For a filter, the command tells how many runs match, and asks.",
		Example: "  durable retry order-42 --dry-run\n  durable retry order-42 --from charge --reason \"bank is back\"\n  durable retry --workflow checkout --created-after yesterday",
	}
	b.addTo(cmd)
	cmd.Flags().StringVar(&from, "from", "", "drop the checkpoint of this call and of all that began after it")
	cmd.Flags().BoolVar(&fromEnd, "from-end", false, "keep all checkpoints but those of steps that compensations have undone: what follows the last call is executed")
	cmd.MarkFlagsMutuallyExclusive("from", "from-end")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		var more []durable.ControlOption
		if from != "" {
			more = append(more, durable.From(from))
		}
		if fromEnd {
			more = append(more, durable.FromEnd())
		}
		v := &bulkOperation[durable.RepairedRuns]{
			name: "retry",
			applyToOne: func(ctx context.Context, id string, dryRun bool) (durable.RepairedRuns, error) {
				repaired, err := s.engine.Retry(ctx, id, b.options(dryRun, more...)...)
				if err != nil {
					return durable.RepairedRuns{}, withRepairFlags(err)
				}
				return durable.RepairedRuns{Matched: 1, Repaired: []*durable.Repaired{repaired}}, nil
			},
			applyToFilter: func(ctx context.Context, filter durable.Filter, dryRun bool) (durable.RepairedRuns, error) {
				return s.engine.RetryAll(ctx, filter, b.options(dryRun, more...)...)
			},
			countReached: func(r durable.RepairedRuns) (changed, refused int) { return len(r.Repaired), len(r.Refused) },
			report:       func(results []durable.RepairedRuns) error { return reportRepairs(s.printer, results) },
		}
		return v.execute(ctx, s, &b, s.args)
	})}
}

// rewordedError is an error with a text for people at a shell.
type rewordedError struct {
	text string
	err  error
}

func (e *rewordedError) Error() string { return e.text }
func (e *rewordedError) Unwrap() error { return e.err }

// repairFlags replaces the options of the Go package that the errors of repairs name by the flags of the command.
var repairFlags = strings.NewReplacer("with the call in From,", "with the call in --from,", " (see Undoes)", "", ": From names the first step to execute again", "")

// withRepairFlags returns the error of a repair that does not know where to begin, with the flags that tell it in place of the
// options.
func withRepairFlags(err error) error {
	if !errors.Is(err, durable.ErrFromRequired) {
		return err
	}
	text := err.Error()
	hint := "; name the first call that is executed again with --from CALL"
	if !strings.Contains(text, "has succeeded, and does not say") { // if it is not known what a compensation has undone, --from-end is refused too
		hint += ", or keep all with --from-end"
	}
	return &rewordedError{repairFlags.Replace(text) + hint, err}
}

// reportRepairs writes the repaired runs, and a message for each that was refused.
func reportRepairs(p *printer, results []durable.RepairedRuns) error {
	repaired := []durable.Repaired{}
	refused := 0
	for _, r := range results {
		for _, run := range r.Repaired {
			repaired = append(repaired, *run)
		}
		for _, run := range r.Refused {
			p.writeMessage("%s was refused: %v", run.ID, withRepairFlags(run.Err))
			refused++
		}
	}
	type row = durable.Repaired
	err := printResults(p, repaired, func(r *row) string { return r.ID }, []column[row]{
		{title: "ID", isShortenedLast: true, text: func(r *row) string { return r.ID }},
		{title: "RUN ID", isWideOnly: true, text: func(r *row) string { return r.RunID }},
		{title: "GENERATION", alignsRight: true, isShortenedLast: true, text: func(r *row) string { return fmt.Sprint(r.Generation) }},
		{title: "KEPT", alignsRight: true, text: func(r *row) string { return fmt.Sprint(r.Kept) }},
		{title: "VALUE SET", isHiddenIfEmpty: true, text: func(r *row) string { return strings.Join(r.Corrected, ", ") }},
		{title: "EXECUTED AGAIN", text: func(r *row) string { return strings.Join(r.Dropped, ", ") }},
		{title: "NEW KEYS", isWideOnly: true, text: func(r *row) string { return strings.Join(r.Renewed, ", ") }},
		{title: "CHILDREN", alignsRight: true, text: func(r *row) string { return fmt.Sprint(len(r.Children)) }},
		{title: "CANCELLED", alignsRight: true, text: func(r *row) string { return fmt.Sprint(len(r.Cancelled)) }},
	})
	if refused > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %s", errRefused, wording.Count(refused, "run", "runs")))
	}
	return err
}
