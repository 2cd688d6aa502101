package durablecli

import (
	"context"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func treeCommand(f *globalFlags) []*cobra.Command {
	cmd := &cobra.Command{
		Use: "tree ID", GroupID: groupLook, Args: requireOneRun,
		Short: "Show a run with its children and their children",
	}
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		root, err := s.engine.Tree(ctx, s.args[0])
		if err != nil {
			return err
		}
		if s.format == formatJSON {
			return s.writeJSON(root, true)
		}
		var lines []treeLine
		addTree(&lines, root, "", "")
		return printRows(s.printer, lines, func(l *treeLine) string { return l.ID }, treeColumns(s.printer))
	})}
}

// treeLine is one run of a tree that is written line by line.
type treeLine struct {
	durable.RunInfo
	branch string // drawn before the run
}

// addTree adds a run and its descendants. first is drawn before the run, and rest before its descendants.
func addTree(lines *[]treeLine, n *durable.RunNode, first, rest string) {
	*lines = append(*lines, treeLine{n.RunInfo, first})
	children := slices.SortedStableFunc(slices.Values(n.Children), func(a, b *durable.RunNode) int { return a.CreatedAt.Compare(b.CreatedAt) })
	for i, child := range children {
		if i < len(children)-1 {
			addTree(lines, child, rest+"├─ ", rest+"│  ")
		} else {
			addTree(lines, child, rest+"└─ ", rest+"   ")
		}
	}
}

func treeColumns(p *printer) []column[treeLine] {
	return []column[treeLine]{
		{title: "RUN", isShortenedLast: true, text: func(l *treeLine) string {
			name := l.Name
			if name == "" {
				name = l.ID
			}
			return l.branch + name + textIf(l.ParentGeneration > 0, fmt.Sprintf(" (generation %d)", l.ParentGeneration))
		}},
		{title: "WORKFLOW", text: func(l *treeLine) string { return l.Workflow }},
		{title: "STATUS", isShortenedLast: true, text: func(l *treeLine) string { return wording.Status(&l.RunInfo) }, color: func(l *treeLine) color { return statusColor(l.Status) }},
		{title: "STARTED", text: func(l *treeLine) string { return p.pastOrExact(l.CreatedAt) }},
		{title: "TOOK", alignsRight: true, text: func(l *treeLine) string { return wording.DurationBetween(l.CreatedAt, l.EndedAt) }},
		{title: "RUN ID", isWideOnly: true, text: func(l *treeLine) string { return l.RunID }},
		{title: "DETAIL", text: func(l *treeLine) string { return wording.RunDetail(&l.RunInfo) }},
	}
}

// statusNumber is how many runs have a status.
type statusNumber struct {
	Status durable.Status
	Runs   int
	More   bool // Runs is a lower bound
}

// mostCounted bounds the runs that are counted of each status: an exact count of millions would burden the database.
const mostCounted = 10_000

func countsCommand(f *globalFlags) []*cobra.Command {
	var flags filterFlags
	cmd := &cobra.Command{
		Use: "counts [ID]", GroupID: groupLook, Args: cobra.MaximumNArgs(1),
		Short: "Count runs by status: all, those of a filter, or those of one tree",
		Long:  fmt.Sprintf("Count runs by status. Of each status at most %d runs are counted, unless an ID is given: then the tree of that run is counted exactly.", mostCounted),
	}
	flags.addTo(cmd)
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		filter, filtered, err := flags.filter(s.now())
		if err != nil {
			return err
		}
		var numbers []statusNumber
		switch {
		case len(s.args) == 1 && filtered:
			return newUsageError("an ID and a filter are given: leave one of them out")
		case len(s.args) == 1:
			counts, err := s.engine.TreeCounts(ctx, s.args[0])
			if err != nil {
				return err
			}
			if s.format == formatJSON {
				return s.writeJSON(counts, true)
			}
			for _, status := range wording.Statuses {
				if n := counts.Statuses[status]; n > 0 {
					numbers = append(numbers, statusNumber{Status: status, Runs: n})
				}
			}
		default:
			if numbers, err = countByStatus(ctx, s.engine, filter, mostCounted); err != nil {
				return err
			}
		}
		return printRows(s.printer, numbers, func(n *statusNumber) string { return string(n.Status) }, []column[statusNumber]{
			{title: "STATUS", text: func(n *statusNumber) string { return string(n.Status) }, color: func(n *statusNumber) color { return statusColor(n.Status) }},
			{title: "RUNS", alignsRight: true, text: (*statusNumber).text},
		})
	})}
}

func (n *statusNumber) text() string { return fmt.Sprint(n.Runs) + textIf(n.More, "+") }

// countByStatus counts the runs that match the filter, up to most of each status.
func countByStatus(ctx context.Context, e *durable.Engine, filter durable.Filter, most int) (numbers []statusNumber, err error) {
	wanted := filter.Status
	for _, status := range wording.Statuses {
		if len(wanted) > 0 && !slices.Contains(wanted, status) {
			continue
		}
		filter.Status = []durable.Status{status}
		runs, next, err := listRuns(ctx, e, filter, most, "")
		if err != nil {
			return nil, err
		}
		numbers = append(numbers, statusNumber{status, len(runs), next != ""})
	}
	return numbers, nil
}
