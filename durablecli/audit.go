package durablecli

import (
	"cmp"
	"context"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func auditCommand(f *globalFlags) []*cobra.Command {
	var after string
	var limit int
	cmd := &cobra.Command{
		Use: "audit", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List what was done to runs, queues, limits, schedules and workers, by whom and why",
		Long: "List what was done to runs, queues, limits, schedules and workers, by whom and why, the latest first. It is what the database\n" +
			"records: of queues, limits, schedules and workers the last act and deletions, and of cancels those of runs that have ended.",
		Example: "  durable audit --after 2d\n  durable audit -o jsonl --after 2026-11-01",
	}
	cmd.Flags().StringVar(&after, "after", "7d", "acts after this time, or this long ago")
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "the most acts; 0: all")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		since, err := wording.ParseTime(after, s.now())
		if err != nil {
			return &markedError{errUsage, err}
		}
		if limit < 0 {
			return newUsageError("--limit is %d: use a positive number, or 0 for all", limit)
		}
		acts, err := lastActs(ctx, s.engine)
		if err != nil {
			return err
		}
		onRuns := 0
		for cursor, more := "", true; more; { // the events are the newest first
			page, err := s.engine.LatestEvents(ctx, durable.Page{Cursor: cursor, Limit: mostPerPage})
			if err != nil {
				return err
			}
			var runs durable.RunPage
			if ids := wording.RunIDsForActs(page); len(ids) > 0 {
				if runs, err = s.engine.List(ctx, durable.Filter{RunID: ids}, durable.Page{Limit: mostPerPage}); err != nil {
					return err
				}
			}
			found := wording.ActsOnRuns(page, runs.Runs)
			acts, onRuns = append(acts, found...), onRuns+len(found)
			more = len(page) == mostPerPage && page[len(page)-1].At.After(since) && (limit == 0 || onRuns <= limit)
			if len(page) > 0 {
				cursor = page[len(page)-1].Cursor
			}
		}
		wording.SortActs(acts)
		for i := range acts {
			if !acts[i].At.After(since) {
				acts = acts[:i]
				break
			}
		}
		if limit > 0 && len(acts) > limit {
			s.writeMessage("there are earlier acts: use --limit")
			acts = acts[:limit]
		}
		return printRows(s.printer, acts, func(a *wording.Act) string { return a.Name }, actColumns(s.printer))
	})}
}

// lastActs returns the last act on each queue, limit, schedule and worker.
func lastActs(ctx context.Context, e *durable.Engine) ([]wording.Act, error) {
	queues, err := e.Queues(ctx)
	if err != nil {
		return nil, err
	}
	limits, err := e.Limits(ctx)
	if err != nil {
		return nil, err
	}
	schedules, err := e.Schedules(ctx)
	if err != nil {
		return nil, err
	}
	workers, err := e.Workers(ctx)
	return wording.LastActs(queues, limits, schedules, workers), err
}

func actColumns(p *printer) []column[wording.Act] {
	type row = wording.Act
	return []column[row]{
		{title: "AT", isShortenedLast: true, text: func(a *row) string { return p.pastOrExact(a.At) }},
		{title: "ACT", isShortenedLast: true, text: func(a *row) string { return a.Verb }},
		{title: "TARGET", isShortenedLast: true, text: func(a *row) string { return a.Target }},
		{title: "NAME", isShortenedLast: true, text: func(a *row) string { return a.Name }},
		{title: "WORKFLOW", isWideOnly: true, text: func(a *row) string { return a.Workflow }},
		{title: "ACTOR", text: func(a *row) string { return cmp.Or(a.Actor, "-") }},
		{title: "REASON", text: func(a *row) string { return a.Reason }},
		{title: "CHANGE", text: func(a *row) string { return wording.ChangeText(a.Old, a.New) }},
	}
}
