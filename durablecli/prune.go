package durablecli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// pruned is the result of a prune.
type pruned struct {
	Matched int // root runs that ended longer ago
	Deleted int // runs, with descendants
	Refused int // root runs that were not deleted
}

func pruneCommand(f *frame) []*cobra.Command {
	var act actFlags
	var filter filterFlags
	var olderThan time.Duration
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use: "prune --older-than DURATION", GroupID: groupCare, Args: cobra.NoArgs,
		Short: "Delete root runs that ended longer ago than a duration, with everything that is theirs",
		Long: "Delete root runs that ended longer ago than a duration, with their descendants, steps, signals, tags and generations. This\n" +
			"cannot be undone. The command tells how many runs match, and asks. For a program that deletes by itself, see Config.Retention.",
		Example: "  durable prune --older-than 90d --dry-run\n  durable prune --older-than 30d --status completed --workflow report --yes",
	}
	act.add(cmd)
	flags := cmd.Flags()
	flags.Var(durationFlag{&olderThan}, "older-than", "how long ago the runs ended at least, such as 12h or 90d")
	flags.StringVarP(&filter.workflow, "workflow", "w", "", "runs of this workflow")
	flags.StringSliceVarP(&filter.statuses, "status", "s", []string{"ended"}, "runs with one of these statuses: completed, failed, cancelled, expired; ended stands for all")
	flags.StringVarP(&filter.tag, "tag", "t", "", "runs with this tag, as key or key=value")
	flags.BoolVar(&dryRun, "dry-run", false, "delete nothing, and tell how many runs match")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		if olderThan <= 0 {
			return usage("--older-than is missing: name how long ago the runs ended at least, as --older-than 90d")
		}
		filter.roots, filter.olderThan = true, olderThan // what ended longer ago was also started longer ago
		chosen, _, err := filter.filter(s.now())
		if err != nil {
			return err
		}
		ids, err := endedBefore(ctx, s.engine, chosen, s.now().Add(-olderThan))
		if err != nil {
			return err
		}
		result := pruned{Matched: len(ids)}
		if len(ids) > 0 && !dryRun && !yes {
			if err := s.confirm(ctx, "delete "+wording.Count(len(ids), "run", "runs")); err != nil {
				return err
			}
		}
		if !dryRun {
			err = s.prune(ctx, ids, act.options(), &result)
		}
		return errors.Join(err, s.reportPrune(&result)) // an error comes with what was done before
	})}
}

// endedBefore returns the UUIDs of the runs that match the filter and ended before a time. The times of the runs are the database's.
func endedBefore(ctx context.Context, e *durable.Engine, f durable.Filter, t time.Time) (ids []string, err error) {
	p := durable.Page{Limit: mostPerPage}
	for {
		page, err := e.List(ctx, f, p)
		if err != nil {
			return nil, err
		}
		for i := range page.Runs {
			if ended := page.Runs[i].EndedAt; !ended.IsZero() && ended.Before(t) {
				ids = append(ids, page.Runs[i].RunID)
			}
		}
		if page.Next == "" {
			return ids, nil
		}
		p.Cursor = page.Next
	}
}

// prune deletes runs, one after the other. After a refusal it goes on; after an error of the database it ends.
func (s *session) prune(ctx context.Context, ids []string, opts []durable.ControlOption, result *pruned) error {
	for _, id := range ids {
		deleted, err := s.engine.Delete(ctx, id, opts...)
		result.Deleted += deleted.Deleted
		switch {
		case err == nil, errors.Is(err, durable.ErrNotFound): // the second one was deleted meanwhile
		case errors.Is(err, durable.ErrState):
			result.Refused++
			s.say("%s was refused: %v", id, err)
		default:
			return err
		}
	}
	if result.Refused > 0 {
		return fmt.Errorf("%w: %s", errRefused, wording.Count(result.Refused, "run", "runs"))
	}
	return nil
}

func (s *session) reportPrune(result *pruned) error {
	return print(s.printer, []pruned{*result}, func(r *pruned) string { return fmt.Sprint(r.Deleted) }, []column[pruned]{
		{title: "MATCHED", right: true, text: func(r *pruned) string { return fmt.Sprint(r.Matched) }},
		{title: "DELETED", right: true, text: func(r *pruned) string { return fmt.Sprint(r.Deleted) }},
		{title: "REFUSED", right: true, text: func(r *pruned) string { return fmt.Sprint(r.Refused) }},
	})
}
