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

// pruneResult is the result of a prune.
type pruneResult struct {
	Matched int // root runs that ended longer ago
	Deleted int // runs, with descendants
	Refused int // root runs that were not deleted
}

func pruneCommand(f *globalFlags) []*cobra.Command {
	var act actFlags
	var filter filterFlags
	var olderThan time.Duration
	var dryRun, yes bool
	cmd := &cobra.Command{
		Use: "prune --older-than DURATION", GroupID: groupMaintain, Args: cobra.NoArgs,
		Short: "Delete root runs that ended longer ago than a duration, with everything that is theirs",
		Long: "Delete root runs that ended longer ago than a duration, with their descendants, steps, signals, tags and generations. This\n" +
			"cannot be undone. The command tells how many runs match, and asks. For a program that deletes by itself, see Config.Retention.",
		Example: "  durable prune --older-than 90d --dry-run\n  durable prune --older-than 30d --status completed --workflow report --yes",
	}
	act.addTo(cmd)
	flags := cmd.Flags()
	filter.cmd = cmd
	flags.Var(durationFlag{&olderThan}, "older-than", "how long ago the runs ended at least, such as 12h or 90d")
	flags.StringVarP(&filter.workflow, "workflow", "w", "", "runs of this workflow")
	flags.StringSliceVarP(&filter.statuses, "status", "s", []string{"ended"}, "runs with one of these statuses: completed, failed, cancelled, expired; ended stands for all")
	flags.StringVarP(&filter.tag, "tag", "t", "", "runs with this tag, as key or key=value")
	flags.BoolVar(&dryRun, dryRunFlag, false, "delete nothing, and tell how many runs match")
	flags.BoolVarP(&yes, "yes", "y", false, "do not ask")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		if olderThan <= 0 {
			return newUsageError("--older-than is missing: name how long ago the runs ended at least, as --older-than 90d")
		}
		filter.roots, filter.olderThan = true, olderThan // a run that ended longer ago was also started longer ago
		chosen, _, err := filter.filter(s.now())
		if err != nil {
			return err
		}
		now, err := s.engine.Now(ctx) // the ends of runs are compared with this time
		if err != nil {
			return err
		}
		p := pruning{s, chosen, now.Add(-olderThan), act.options()}
		var result pruneResult
		if dryRun || !yes {
			err := p.eachPage(ctx, func(ids []string) error { result.Matched += len(ids); return nil })
			if err != nil || dryRun || result.Matched == 0 {
				return errors.Join(err, s.reportPrune(&result))
			}
			if err := s.confirm(ctx, "delete "+wording.Count(result.Matched, "run", "runs")); err != nil {
				return err
			}
			result = pruneResult{}
		}
		err = p.eachPage(ctx, func(ids []string) error { return p.delete(ctx, ids, &result) })
		if err == nil && result.Refused > 0 {
			err = fmt.Errorf("%w: %s", errRefused, wording.Count(result.Refused, "run", "runs"))
		}
		return errors.Join(err, s.reportPrune(&result)) // an error comes with what was done before
	})}
}

// pruning is a prune under way.
type pruning struct {
	*session
	filter  durable.Filter
	before  time.Time // the runs ended before this time, by the database's clock
	options []durable.ControlOption
}

// eachPage calls the function for the UUIDs of the runs that are to be deleted, page by page.
func (p *pruning) eachPage(ctx context.Context, f func(ids []string) error) error {
	for at := (durable.Page{Limit: mostPerPage}); ; {
		page, err := p.engine.List(ctx, p.filter, at)
		if err != nil {
			return err
		}
		var ids []string
		for i := range page.Runs {
			if ended := page.Runs[i].EndedAt; !ended.IsZero() && ended.Before(p.before) {
				ids = append(ids, page.Runs[i].RunID)
			}
		}
		if len(ids) > 0 {
			if err := f(ids); err != nil {
				return err
			}
		}
		if page.Next == "" {
			return nil
		}
		at.Cursor = page.Next
	}
}

// delete deletes the runs of a page, several trees per transaction. If some runs are refused, the prune continues.
func (p *pruning) delete(ctx context.Context, ids []string, result *pruneResult) error {
	chosen := p.filter // a run that was retried meanwhile is live, and does not match
	chosen.RunID = ids
	deleted, err := p.engine.DeleteAll(ctx, chosen, p.options...)
	result.Matched, result.Deleted, result.Refused = result.Matched+deleted.Matched, result.Deleted+deleted.Deleted, result.Refused+len(deleted.Refused)
	for _, r := range deleted.Refused {
		p.writeMessage("%s was refused: %v", r.ID, r.Err)
	}
	return err
}

func (s *session) reportPrune(result *pruneResult) error {
	return printRows(s.printer, []pruneResult{*result}, func(r *pruneResult) string { return fmt.Sprint(r.Deleted) }, []column[pruneResult]{
		{title: "MATCHED", alignsRight: true, text: func(r *pruneResult) string { return fmt.Sprint(r.Matched) }},
		{title: "DELETED", alignsRight: true, text: func(r *pruneResult) string { return fmt.Sprint(r.Deleted) }},
		{title: "REFUSED", alignsRight: true, text: func(r *pruneResult) string { return fmt.Sprint(r.Refused) }},
	})
}
