package durablecli

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

// mostPerPage is the largest durable.Page.
const mostPerPage = 1000

func listCommand(f *globalFlags) []*cobra.Command {
	var flags filterFlags
	var limit int
	var cursor string
	var watch bool
	cmd := &cobra.Command{
		Use: "list", Aliases: []string{"ls"}, GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List runs, the newest first",
		Example: "  durable list --status failed --created-after yesterday --created-before today\n" +
			"  durable list -w checkout --status live --older-than 1d -o wide\n" +
			"  durable list --tag team.owner=payments -o id | durable cancel --reason \"wrong prices\" -",
	}
	flags.addTo(cmd)
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "the most runs; 0: all")
	cmd.Flags().StringVar(&cursor, "cursor", "", "continue after the cursor that the list before ended with")
	cmd.Flags().BoolVar(&watch, "watch", false, "repeat the list on the terminal until interrupted")
	interval := 2 * time.Second
	cmd.Flags().Var(durationFlag{&interval}, "interval", "how often --watch repeats the list")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		if limit < 0 {
			return newUsageError("--limit is %d: use a positive number, or 0 for all", limit)
		}
		show := func(ctx context.Context) error {
			filter, _, err := flags.filter(s.now())
			if err != nil {
				return err
			}
			runs, next, err := listRuns(ctx, s.engine, filter, limit, cursor)
			if err != nil {
				return err
			}
			if err := printRows(s.printer, runs, runID, runColumns(s.printer)); err != nil {
				return err
			}
			switch {
			case next != "" && !watch:
				s.writeMessage("more runs match: use --limit, or continue with --cursor %s", next)
			case len(runs) == 0 && s.format == formatTable:
				s.writeMessage("no run matches")
			}
			return nil
		}
		if !watch {
			return show(ctx)
		}
		return s.repeat(ctx, interval, show)
	})}
}

// listRuns returns at most limit runs, and the cursor of the runs that follow. A limit of zero means all.
func listRuns(ctx context.Context, e *durable.Engine, filter durable.Filter, limit int, cursor string) (runs []durable.RunInfo, next string, err error) {
	for {
		size := mostPerPage
		if limit > 0 {
			size = min(size, limit-len(runs))
		}
		page, err := e.List(ctx, filter, durable.Page{Limit: size, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		runs, cursor = append(runs, page.Runs...), page.Next
		if cursor == "" || limit > 0 && len(runs) >= limit {
			return runs, cursor, nil
		}
	}
}

func runID(r *durable.RunInfo) string { return r.ID }

func runColumns(p *printer) []column[durable.RunInfo] {
	return []column[durable.RunInfo]{
		{title: "ID", text: runID, isShortenedLast: true},
		{title: "RUN ID", isWideOnly: true, text: func(r *durable.RunInfo) string { return r.RunID }},
		{title: "WORKFLOW", text: func(r *durable.RunInfo) string { return r.Workflow }},
		{title: "STATUS", text: func(r *durable.RunInfo) string { return wording.Status(r) }, color: func(r *durable.RunInfo) color { return statusColor(r.Status) }, isShortenedLast: true},
		{title: "QUEUE", isWideOnly: true, text: func(r *durable.RunInfo) string { return r.Queue }},
		{title: "PRIORITY", isWideOnly: true, alignsRight: true, text: func(r *durable.RunInfo) string { return fmt.Sprint(r.Priority) }},
		{title: "VERSION", isWideOnly: true, text: func(r *durable.RunInfo) string { return r.Version }},
		{title: "PARENT", isWideOnly: true, text: func(r *durable.RunInfo) string { return r.Parent }},
		{title: "OWNER", isWideOnly: true, text: func(r *durable.RunInfo) string { return r.Owner }},
		{title: "STARTED", isShortenedLast: true, text: func(r *durable.RunInfo) string { return p.pastOrExact(r.CreatedAt) }},
		{title: "ENDED", text: func(r *durable.RunInfo) string { return p.pastOrExact(r.EndedAt) }},
		{title: "DETAIL", text: wording.RunDetail},
	}
}

// pastOrExact returns how long ago a time was, or the time itself with -o wide.
func (p *printer) pastOrExact(t time.Time) string {
	if p.format == formatWide {
		return wording.ExactTime(t)
	}
	return p.past(t)
}

// ageOrExact does what pastOrExact does, for a time that may be in the future.
func (p *printer) ageOrExact(t time.Time) string {
	if p.format == formatWide {
		return wording.ExactTime(t)
	}
	return p.age(t)
}

func statusColor(s durable.Status) color {
	switch s {
	case durable.StatusCompleted:
		return green
	case durable.StatusFailed, durable.StatusExpired:
		return red
	case durable.StatusPaused, durable.StatusCancelled:
		return yellow
	case durable.StatusRunning:
		return cyan
	}
	return plain
}
