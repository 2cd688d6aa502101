package durablecli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func queuesCommand(f *globalFlags) []*cobra.Command {
	cmd := &cobra.Command{
		Use: "queues", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the queues that have settings, with what waits in them",
		Long:  "List the queues that have settings, and queues that are paused. A queue without settings has no bounds and no counts;\ndurable list --queue shows its runs.",
	}
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		queues, err := s.engine.Queues(ctx)
		if err != nil {
			return err
		}
		if len(queues) == 0 && s.format == formatTable {
			s.writeMessage("no queue has settings")
		}
		return printRows(s.printer, queues, queueName, queueColumns(s.printer))
	})}
}

func queueColumns(p *printer) []column[durable.QueueInfo] {
	type row = durable.QueueInfo
	return []column[row]{
		{title: "QUEUE", isShortenedLast: true, text: func(q *row) string { return q.Name }},
		{title: "WAITING", alignsRight: true, isShortenedLast: true, text: func(q *row) string { return fmt.Sprint(q.Waiting) }},
		{title: "EXECUTING", alignsRight: true, text: func(q *row) string { return fmt.Sprint(q.Executing) }},
		{title: "IN PROGRESS", alignsRight: true, text: func(q *row) string { return fmt.Sprint(q.InProgress) }},
		{title: "OLDEST DUE", text: func(q *row) string { return p.pastOrExact(q.OldestDue) }},
		{title: "STATE", isShortenedLast: true, text: func(q *row) string { return wording.QueueState(p.pastOrExact, q) }, color: func(q *row) color {
			if !q.PausedAt.IsZero() {
				return yellow
			}
			return plain
		}},
		{title: "SETTINGS", text: func(q *row) string { return wording.QueueSettings(&q.Settings) }},
		{title: "FROM", isWideOnly: true, text: func(q *row) string {
			return wording.SettingsOrigin(q.Set != nil, q.SetBy, q.SetReason, q.DeclaredVersion)
		}},
		{title: "LAST CHANGE", isWideOnly: true, text: func(q *row) string { return wording.LastChange(q.LastChange) }},
	}
}
