package durablecli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

// failureGroup is the failed and expired runs of one workflow whose failures have the same step and type.
type failureGroup struct {
	Workflow string
	Step     string // empty: the function failed by itself
	Type     string // the Go type of the error
	Runs     int
	Newest   time.Time // when the newest of them ended
	NewestID string
	Message  string // of the newest
}

func failuresCommand(f *frame) []*cobra.Command {
	var flags filterFlags
	var scan int
	cmd := &cobra.Command{
		Use: "failures", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "Group failed and expired runs by workflow, step and type of error",
		Long:  "Group the failed and expired runs that match the filter by workflow, step and type of error, the largest group first.\nWithout --created-after, runs that were started in the last seven days are considered.",
	}
	flags.add(cmd)
	cmd.Flags().IntVar(&scan, "scan", mostCounted, "read at most this many runs, the newest first; 0: all")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		filter, _, err := flags.filter(s.now())
		if err != nil {
			return err
		}
		if scan < 0 {
			return usage("--scan is %d: use a positive number, or 0 for all", scan)
		}
		if len(filter.Status) == 0 {
			filter.Status = []durable.Status{durable.StatusFailed, durable.StatusExpired}
		}
		if flags.after == "" && flags.before == "" && flags.olderThan == 0 {
			filter.CreatedAfter = s.now().AddDate(0, 0, -7)
		}
		runs, next, err := listRuns(ctx, s.engine, filter, scan, "")
		if err != nil {
			return err
		}
		if err := print(s.printer, groupFailures(runs), func(g *failureGroup) string { return g.NewestID }, failureColumns(s.printer)); err != nil {
			return err
		}
		if next != "" {
			s.say("only the newest %d runs were read: use --scan", len(runs))
		}
		return nil
	})}
}

// groupFailures groups runs, the largest group first.
func groupFailures(runs []durable.RunInfo) []failureGroup {
	type key struct{ workflow, step, errorType string }
	groups := make(map[key]*failureGroup)
	for i := range runs {
		r := &runs[i]
		if r.Err == nil {
			continue
		}
		k := key{r.Workflow, r.Err.Step, r.Err.Type}
		g := groups[k]
		if g == nil {
			g = &failureGroup{Workflow: k.workflow, Step: k.step, Type: k.errorType}
			groups[k] = g
		}
		g.Runs++
		if g.Newest.Before(r.EndedAt) {
			g.Newest, g.NewestID, g.Message = r.EndedAt, r.ID, r.Err.Message
		}
	}
	var sorted []failureGroup
	for _, g := range groups {
		sorted = append(sorted, *g)
	}
	slices.SortFunc(sorted, func(a, b failureGroup) int {
		return cmp.Or(cmp.Compare(b.Runs, a.Runs), b.Newest.Compare(a.Newest), cmp.Compare(a.NewestID, b.NewestID))
	})
	return sorted
}

func failureColumns(p *printer) []column[failureGroup] {
	type row = failureGroup
	return []column[row]{
		{title: "RUNS", right: true, text: func(g *row) string { return fmt.Sprint(g.Runs) }},
		{title: "WORKFLOW", keep: true, text: func(g *row) string { return g.Workflow }},
		{title: "STEP", keep: true, text: func(g *row) string { return cmp.Or(g.Step, "-") }},
		{title: "TYPE", text: func(g *row) string { return cmp.Or(g.Type, "-") }},
		{title: "NEWEST", text: func(g *row) string { return p.pastOrExact(g.Newest) }},
		{title: "NEWEST ID", text: func(g *row) string { return g.NewestID }},
		{title: "MESSAGE", text: func(g *row) string { return g.Message }, color: func(*row) color { return red }},
	}
}
