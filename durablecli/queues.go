package durablecli

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
)

func queuesCommand(f *frame) []*cobra.Command {
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
			s.say("no queue has settings")
		}
		return print(s.printer, queues, queueName, queueColumns(s.printer))
	})}
}

func queueColumns(p *printer) []column[durable.QueueInfo] {
	type row = durable.QueueInfo
	return []column[row]{
		{title: "QUEUE", keep: true, text: func(q *row) string { return q.Name }},
		{title: "WAITING", right: true, keep: true, text: func(q *row) string { return fmt.Sprint(q.Waiting) }},
		{title: "EXECUTING", right: true, text: func(q *row) string { return fmt.Sprint(q.Executing) }},
		{title: "OPEN", right: true, text: func(q *row) string { return fmt.Sprint(q.Open) }},
		{title: "OLDEST DUE", text: func(q *row) string { return p.pastOrExact(q.OldestDue) }},
		{title: "STATE", keep: true, text: func(q *row) string { return queueState(p, q) }, color: func(q *row) color {
			if !q.PausedAt.IsZero() {
				return yellow
			}
			return plain
		}},
		{title: "SETTINGS", text: func(q *row) string { return queueSettingsText(&q.Settings) }},
		{title: "FROM", wide: true, text: func(q *row) string { return settingsOrigin(q.Set != nil, q.SetBy, q.SetReason, q.DeclaredVersion) }},
		{title: "LAST CHANGE", wide: true, text: func(q *row) string { return changeText(q.LastChange) }},
	}
}

// queueState returns the state of a queue in words.
func queueState(p *printer, q *durable.QueueInfo) string {
	switch {
	case !q.PausedAt.IsZero():
		return withReason("paused "+p.past(q.PausedAt), q.PauseReason, q.PausedBy)
	case q.Waiting == 0:
		return "idle"
	case q.WaitsFor == durable.WaitsForExecuting:
		return "full: as many runs execute as may"
	case q.WaitsFor == durable.WaitsForOpen:
		return "full: as many runs are open as may be"
	case q.WaitsFor == durable.WaitsForRate:
		return "waits for the rate"
	}
	return "flows"
}

func queueSettingsText(s *durable.QueueSettings) string {
	var parts []string
	add := func(name string, n int) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", name, n))
		}
	}
	rate := func(name string, r durable.QueueRate) {
		if text := rateText(r); text != "" {
			parts = append(parts, name+" "+text)
		}
	}
	add("executing", s.Executing)
	add("per worker", s.PerWorker)
	add("open", s.Open)
	add("key executing", s.KeyExecuting)
	add("key open", s.KeyOpen)
	rate("rate", s.Rate)
	rate("key rate", s.KeyRate)
	add("depth", s.Depth)
	if s.Closed {
		parts = append(parts, "closed")
	}
	return cmp.Or(strings.Join(parts, ", "), "no bounds")
}

// settingsOrigin tells where settings come from: an operator, or the code.
func settingsOrigin(set bool, by, reason, version string) string {
	if set {
		return withReason("set", reason, by)
	}
	return "declared" + ifTrue(version != "", " by version "+version)
}

func changeText(c *durable.OperatorChange) string {
	if c == nil {
		return ""
	}
	return withReason(fmt.Sprintf("%s %s", c.Verb, exact(c.At)), c.Reason, c.By)
}

// rateText returns a rate as in "10 per 1m, burst 5"; empty if there is none.
func rateText(r durable.QueueRate) string {
	if r.Count == 0 {
		return ""
	}
	return fmt.Sprintf("%d per %s", r.Count, shortDuration(r.Period)) + ifTrue(r.Burst > 1, fmt.Sprintf(" with bursts of %d", r.Burst))
}
