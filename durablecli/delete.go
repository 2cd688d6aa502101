package durablecli

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// deletionRow is the result of a deletion: of one run, or of a filter.
type deletionRow struct {
	ID string // the run; empty: a filter
	durable.DeletedRuns
}

func deleteCommand(f *globalFlags) []*cobra.Command {
	var b bulkFlags
	cmd := &cobra.Command{
		Use: "delete {ID... | - | FILTER}", GroupID: groupAct, Args: cobra.ArbitraryArgs,
		Short: "Delete ended runs with everything that is theirs; this cannot be undone",
		Long: "Delete ended runs with their descendants, steps, signals, tags and generations. This cannot be undone.\n\n" +
			"The runs are those with the IDs, those whose IDs standard input has, one a line (-), or the root runs that match the\nfilter and have ended. For a filter, the command tells how many runs match, and asks.",
		Example: "  durable delete order-42\n  durable delete --status completed --older-than 90d --dry-run",
	}
	b.addTo(cmd)
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		v := &bulkOperation[deletionRow]{
			name: "delete",
			applyToOne: func(ctx context.Context, id string, dryRun bool) (deletionRow, error) {
				result, err := s.engine.Delete(ctx, id, b.options(dryRun)...)
				return deletionRow{id, result}, err
			},
			applyToFilter: func(ctx context.Context, filter durable.Filter, dryRun bool) (deletionRow, error) {
				result, err := s.engine.DeleteAll(ctx, filter, b.options(dryRun)...)
				return deletionRow{"", result}, err
			},
			countReached: func(r deletionRow) (changed, refused int) {
				if r.Deleted == 0 {
					return 0, len(r.Refused)
				}
				return r.Matched, len(r.Refused)
			},
			report: func(results []deletionRow) error { return reportDeletions(s.printer, results) },
		}
		return v.execute(ctx, s, &b, s.args)
	})}
}

func reportDeletions(p *printer, results []deletionRow) error {
	refused := 0
	for _, r := range results {
		for _, run := range r.Refused {
			p.writeMessage("%s was refused: %v", run.ID, run.Err)
			refused++
		}
	}
	err := printResults(p, results, func(r *deletionRow) string { return r.ID }, []column[deletionRow]{
		{title: "ID", isShortenedLast: true, text: func(r *deletionRow) string { return cmp.Or(r.ID, "(filter)") }},
		{title: "MATCHED", alignsRight: true, text: func(r *deletionRow) string { return fmt.Sprint(r.Matched) }},
		{title: "DELETED", alignsRight: true, text: func(r *deletionRow) string { return fmt.Sprint(r.Deleted) }},
	})
	if refused > 0 {
		err = errors.Join(err, fmt.Errorf("%w: %s", errRefused, wording.Count(refused, "run", "runs")))
	}
	return err
}
