package durablecli

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"
)

// failureGroup is the failed and expired runs of one workflow whose failures have the same step and type.
type failureGroup struct {
	Workflow string
	Step     string // empty: the function failed by itself
	Type     string // the Go type of the error
	Runs     int
	More     bool      // the group has more runs than were read
	Oldest   time.Time // when the first of them ended
	Newest   time.Time // when the last of them ended
	NewestID string
	Message  string // the error of the newest run
}

func failuresCommand(f *globalFlags) []*cobra.Command {
	var flags filterFlags
	cmd := &cobra.Command{
		Use: "failures", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "Group failed and expired runs by workflow, step and type of error",
		Long: "Group the failed and expired runs that match the filter by workflow, step and type of error, the largest group first.\n" +
			"Without --created-after, runs that were started in the last seven days are considered. Of each group the newest 10,000 runs are read.",
		Example: "  durable failures --created-after 12h\n  durable retry -w checkout --failed-step charge --failed-type '*stripe.CardError'",
	}
	flags.addTo(cmd)
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		filter, _, err := flags.filter(s.now())
		if err != nil {
			return err
		}
		if flags.after == "" && flags.before == "" && flags.olderThan == 0 {
			filter.CreatedAfter = s.now().AddDate(0, 0, -7)
		}
		groups, err := s.engine.Failures(ctx, filter)
		if err != nil {
			return err
		}
		rows := make([]failureGroup, len(groups))
		for i, g := range groups {
			rows[i] = failureGroup{g.Workflow, g.Step, g.Type, g.Runs, g.More, g.First, g.Last, g.ID, g.Err.Message}
		}
		return printRows(s.printer, rows, func(g *failureGroup) string { return g.NewestID }, failureColumns(s.printer))
	})}
}

func failureColumns(p *printer) []column[failureGroup] {
	type row = failureGroup
	return []column[row]{
		{title: "RUNS", alignsRight: true, text: func(g *row) string { return fmt.Sprint(g.Runs) + textIf(g.More, "+") }},
		{title: "WORKFLOW", isShortenedLast: true, text: func(g *row) string { return g.Workflow }},
		{title: "STEP", isShortenedLast: true, text: func(g *row) string { return cmp.Or(g.Step, "-") }},
		{title: "TYPE", text: func(g *row) string { return cmp.Or(g.Type, "-") }},
		{title: "OLDEST", isWideOnly: true, text: func(g *row) string { return p.pastOrExact(g.Oldest) }},
		{title: "NEWEST", text: func(g *row) string { return p.pastOrExact(g.Newest) }},
		{title: "NEWEST ID", text: func(g *row) string { return g.NewestID }},
		{title: "MESSAGE", text: func(g *row) string { return g.Message }, color: func(*row) color { return red }},
	}
}
