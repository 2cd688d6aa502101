package durablecli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func graphCommand(f *globalFlags) []*cobra.Command {
	var mermaid bool
	cmd := &cobra.Command{
		Use: "graph ID", GroupID: groupLook, Args: requireOneRun,
		Short: "Show the nodes of a run of a graph, what each needs, and their states",
	}
	cmd.Flags().BoolVar(&mermaid, "mermaid", false, "write the graph as a Mermaid diagram")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		g, err := s.engine.Graph(ctx, s.args[0])
		if err != nil {
			return err
		}
		switch {
		case mermaid:
			return s.write(wording.EscapeLines(g.Mermaid()))
		case s.format == formatJSON:
			return s.writeJSON(g, true)
		}
		needs := make(map[string][]string)
		for _, e := range g.Edges {
			needs[e.To] = append(needs[e.To], e.From)
		}
		return printRows(s.printer, g.Nodes, func(n *durable.NodeInfo) string { return n.Name }, nodeColumns(s.printer, needs))
	})}
}

func nodeColumns(p *printer, needs map[string][]string) []column[durable.NodeInfo] {
	type row = durable.NodeInfo
	return []column[row]{
		{title: "NODE", isShortenedLast: true, text: func(n *row) string { return n.Name }},
		{title: "KIND", text: func(n *row) string { return string(n.Kind) }},
		{title: "STATE", isShortenedLast: true, text: func(n *row) string { return string(n.State) }, color: func(n *row) color { return nodeColor(n.State) }},
		{title: "NEEDS", text: func(n *row) string { return strings.Join(needs[n.Name], ", ") }},
		{title: "ITEMS", alignsRight: true, text: func(n *row) string {
			if n.Items == nil {
				return ""
			}
			return fmt.Sprintf("%d/%d", n.Items.Completed, n.Items.Total)
		}},
		{title: "ATTEMPTS", alignsRight: true, text: func(n *row) string { return fmt.Sprint(n.Attempts) }},
		{title: "STARTED", text: func(n *row) string { return p.pastOrExact(n.StartedAt) }},
		{title: "TOOK", alignsRight: true, text: func(n *row) string { return wording.DurationBetween(n.StartedAt, n.EndedAt) }},
		{title: "DETAIL", text: func(n *row) string {
			if n.Err != nil {
				return n.Err.Error()
			}
			return n.Child
		}},
	}
}

func nodeColor(s durable.NodeState) color {
	switch s {
	case durable.NodeCompleted:
		return green
	case durable.NodeFailed:
		return red
	case durable.NodeSkipped, durable.NodeCancelled:
		return yellow
	case durable.NodeRunning:
		return cyan
	}
	return plain
}
