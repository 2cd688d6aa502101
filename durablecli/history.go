package durablecli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func historyCommand(f *globalFlags) []*cobra.Command {
	var generation int
	history := &cobra.Command{
		Use: "history ID", GroupID: groupLook, Args: requireOneRun,
		Short: "Show the checkpoints of a run, in the order in which its calls began",
	}
	history.Flags().IntVar(&generation, "generation", 0, "an older generation of the run; the command generations lists them")
	generations := &cobra.Command{
		Use: "generations ID", GroupID: groupLook, Args: requireOneRun,
		Short: "Show the latest generations of a run that was repaired or continued as new, the oldest first",
	}
	var cursor string
	var limit int
	generations.Flags().IntVarP(&limit, "limit", "n", 100, "the most generations; 0: all")
	generations.Flags().StringVar(&cursor, "cursor", "", "continue with the generations before the cursor that the command ended with")
	return []*cobra.Command{
		f.withEngine(history, func(ctx context.Context, s *session) error {
			var opts []durable.HistoryOption
			if s.cmd.Flags().Changed("generation") {
				opts = append(opts, durable.InGeneration(generation))
			}
			checkpoints, err := s.engine.History(ctx, s.args[0], opts...)
			if err != nil {
				return err
			}
			return printRows(s.printer, checkpoints, func(c *durable.Checkpoint) string { return c.Name }, checkpointColumns(s.printer))
		}),
		f.withEngine(generations, func(ctx context.Context, s *session) error {
			if limit < 0 {
				return newUsageError("--limit is %d: use a positive number, or 0 for all", limit)
			}
			all, next, err := latestGenerations(ctx, s.engine, s.args[0], limit, cursor)
			if err != nil {
				return err
			}
			if err := printRows(s.printer, all, func(g *durable.Generation) string { return fmt.Sprint(g.Number) }, generationColumns(s.printer)); err != nil {
				return err
			}
			if next != "" {
				s.writeMessage("there are earlier generations: use --limit, or continue with --cursor %s", next)
			}
			return nil
		}),
	}
}

// latestGenerations returns at most limit generations before the cursor, the oldest first, and the cursor of the earlier ones. A limit
// of zero means all.
func latestGenerations(ctx context.Context, e *durable.Engine, id string, limit int, cursor string) (all []durable.Generation, next string, err error) {
	for {
		size := mostPerPage
		if limit > 0 {
			size = min(size, limit-len(all))
		}
		page, err := e.LatestGenerations(ctx, id, durable.Page{Limit: size, Cursor: cursor})
		if err != nil {
			return nil, "", err
		}
		all, cursor = append(all, page.Generations...), page.Next
		if cursor == "" || limit > 0 && len(all) >= limit {
			slices.Reverse(all)
			return all, cursor, nil
		}
	}
}

func checkpointColumns(p *printer) []column[durable.Checkpoint] {
	type row = durable.Checkpoint
	return []column[row]{
		{title: "SEQ", alignsRight: true, isWideOnly: true, text: func(c *row) string { return fmt.Sprint(c.Seq) }},
		{title: "NAME", isShortenedLast: true, text: func(c *row) string { return c.Name }},
		{title: "KIND", text: func(c *row) string { return string(c.Kind) }},
		{title: "STATUS", isShortenedLast: true, text: func(c *row) string { return string(c.Status) }, color: func(c *row) color { return checkpointColor(c.Status) }},
		{title: "ATTEMPTS", alignsRight: true, text: func(c *row) string { return fmt.Sprint(c.Attempts) }},
		{title: "STARTED", text: func(c *row) string { return p.pastOrExact(c.StartedAt) }},
		{title: "ENDED", isWideOnly: true, text: func(c *row) string { return wording.ExactTime(c.EndedAt) }},
		{title: "TOOK", alignsRight: true, text: func(c *row) string { return wording.DurationBetween(c.StartedAt, c.EndedAt) }},
		{title: "NEXT", text: func(c *row) string { return textIf(c.EndedAt.IsZero() && !c.NextAt.IsZero(), p.ageOrExact(c.NextAt)) }},
		{title: "RESULT", text: checkpointResult},
	}
}

func checkpointResult(c *durable.Checkpoint) string {
	switch {
	case c.Err != nil:
		return c.Err.Message
	case c.LastFailure != nil && c.LastFailure.Interrupted && c.EndedAt.IsZero():
		return fmt.Sprintf("attempt %d was interrupted", c.LastFailure.Attempt)
	}
	return payloadText(c.Output)
}

func checkpointColor(s durable.CheckpointStatus) color {
	switch s {
	case durable.CheckpointCompleted:
		return green
	case durable.CheckpointFailed:
		return red
	case durable.CheckpointBackoff, durable.CheckpointCancelled:
		return yellow
	}
	return cyan
}

func generationColumns(p *printer) []column[durable.Generation] {
	type row = durable.Generation
	return []column[row]{
		{title: "GENERATION", alignsRight: true, text: func(g *row) string { return fmt.Sprint(g.Number) }},
		{title: "STATUS", text: func(g *row) string { return string(g.Status) }, color: func(g *row) color { return statusColor(g.Status) }, isShortenedLast: true},
		{title: "STARTED", text: func(g *row) string { return p.pastOrExact(g.StartedAt) }, isShortenedLast: true},
		{title: "ENDED", text: func(g *row) string { return p.pastOrExact(g.EndedAt) }},
		{title: "BY", text: func(g *row) string { return string(g.Verb) + textIf(g.From != "", " from "+g.From) }},
		{title: "ACTOR", text: func(g *row) string { return g.Actor }},
		{title: "REASON", text: func(g *row) string { return g.Reason }},
		{title: "KEPT", alignsRight: true, isWideOnly: true, text: func(g *row) string { return fmt.Sprint(g.Kept) }},
		{title: "DROPPED", alignsRight: true, isWideOnly: true, text: func(g *row) string { return fmt.Sprint(len(g.Dropped)) }},
		{title: "VERSION", isWideOnly: true, text: func(g *row) string { return g.Version }},
		{title: "ERROR", text: func(g *row) string {
			if g.Err == nil {
				return ""
			}
			return wording.Failure(g.Err.Step, g.Err.Message)
		}},
	}
}
