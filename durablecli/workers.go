package durablecli

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func workersCommand(f *globalFlags) []*cobra.Command {
	cmd := &cobra.Command{
		Use: "workers", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the processes that execute runs, the oldest first",
		Long:  "List the processes that execute runs, the oldest first. A process that died is listed for a while, with its last heartbeat.",
	}
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		workers, err := s.engine.Workers(ctx)
		if err != nil {
			return err
		}
		living := slices.ContainsFunc(workers, func(w durable.WorkerInfo) bool { return !wording.IsWorkerDead(s.now(), &w) })
		if !living && s.format == formatTable {
			s.writeMessage("no worker lives: runs wait until a process calls Engine.Run")
		}
		return printRows(s.printer, workers, func(w *durable.WorkerInfo) string { return w.ID }, workerColumns(s.printer))
	})}
}

func workerColumns(p *printer) []column[durable.WorkerInfo] {
	type row = durable.WorkerInfo
	return []column[row]{
		{title: "WORKER", isShortenedLast: true, text: func(w *row) string { return w.Name }},
		{title: "ID", isWideOnly: true, text: func(w *row) string { return w.ID }},
		{title: "VERSION", text: func(w *row) string { return w.Version }},
		{title: "STATE", text: func(w *row) string { return workerState(p.now(), w) }},
		{title: "ACTIVE", alignsRight: true, isShortenedLast: true, text: func(w *row) string { return fmt.Sprintf("%d/%d", w.Active, w.Capacity) }},
		{title: "HEARTBEAT", isShortenedLast: true, text: func(w *row) string { return p.pastOrExact(w.HeartbeatAt) }, color: func(w *row) color {
			return colorIf(wording.IsWorkerDead(p.now(), w), red)
		}},
		{title: "CLOCK AHEAD", isWideOnly: true, alignsRight: true, text: func(w *row) string { return w.ClockAhead.Round(time.Millisecond).String() }},
		{title: "STARTED", text: func(w *row) string { return p.pastOrExact(w.StartedAt) }},
		{title: "WORKFLOWS", text: func(w *row) string { return namesOrAll(w.Workflows, "more than 500") }},
		{title: "QUEUES", text: func(w *row) string { return namesOrAll(w.Queues, "all") }},
	}
}

// workerState returns the state of a worker, and who made it quiet and why.
func workerState(now time.Time, w *durable.WorkerInfo) string {
	text := wording.WorkerState(now, w)
	if c := w.LastChange; w.Quiet && c != nil && (c.By != "" || c.Reason != "") {
		text += ": " + wording.ReasonAndActor(c.Reason, c.By)
	}
	return text
}

func namesOrAll(names []string, all string) string {
	if names == nil {
		return all
	}
	return strings.Join(names, ", ")
}
