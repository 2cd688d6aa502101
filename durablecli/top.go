package durablecli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func topCommand(f *globalFlags) []*cobra.Command {
	var once bool
	cmd := &cobra.Command{
		Use: "top", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "A live screen: throughput, failures, what waits, queues and workers",
		Long:  "A live screen: throughput, failures, what waits, queues and workers. Large numbers of runs are counted up to a bound, and shown with a plus sign.\nInterrupt the command to end it.",
	}
	interval := 2 * time.Second
	cmd.Flags().Var(durationFlag{&interval}, "interval", "how often the screen is drawn")
	cmd.Flags().BoolVar(&once, "once", false, "write the screen once, without throughput")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		switch s.format {
		case formatID:
			return newUsageError("%s", s.withProgramName("top has no IDs: use -o json, or durable list -o id"))
		case formatJSON, formatJSONL:
			state, err := readTop(ctx, s)
			if err != nil {
				return err
			}
			return s.writeJSON(state, s.format == formatJSON)
		}
		screen := &topScreen{ended: make(map[durable.EventType]int)}
		if once {
			return screen.show(ctx, s)
		}
		var err error
		if screen.cursor, err = s.engine.EventCursor(ctx); err != nil {
			return err
		}
		screen.since = s.now()
		if s.terminal != nil {
			const clearScreen = "\x1b[2J"
			if err := s.write(clearScreen); err != nil {
				return err
			}
		}
		return s.repeat(ctx, interval, func(ctx context.Context) error { return screen.show(ctx, s) })
	})}
}

// topScreen holds what top has seen since it was started.
type topScreen struct {
	cursor string
	since  time.Time                 // zero: events are not read
	ended  map[durable.EventType]int // events of the last interval
}

// topState is what top shows, without the throughput, for scripts.
type topState struct {
	Counts    []durable.StatusCount
	OldestDue time.Time // zero: no run is due
	Workers   []durable.WorkerInfo
	Queues    []durable.QueueInfo
}

func readTop(ctx context.Context, s *session) (t *topState, err error) {
	t = new(topState)
	if t.Counts, err = s.engine.StatusCounts(ctx); err != nil {
		return nil, err
	}
	if t.Queues, err = s.engine.Queues(ctx); err != nil {
		return nil, err
	}
	if t.Workers, err = s.engine.Workers(ctx); err != nil {
		return nil, err
	}
	due, err := s.engine.OldestDue(ctx)
	if len(due) > 0 {
		t.OldestDue = due[0].Since
	}
	for _, q := range t.Queues {
		if !q.OldestDue.IsZero() && (t.OldestDue.IsZero() || q.OldestDue.Before(t.OldestDue)) {
			t.OldestDue = q.OldestDue
		}
	}
	return t, err
}

func (t *topScreen) show(ctx context.Context, s *session) error {
	width, _ := s.size()
	if !t.since.IsZero() {
		rates, err := t.rates(ctx, s)
		if err != nil {
			return err
		}
		if err := s.write(fitLine(rates, width) + "\n"); err != nil {
			return err
		}
	}
	state, err := readTop(ctx, s)
	if err != nil {
		return err
	}
	var parts []string
	for _, status := range wording.StatusGroups["live"] {
		n := statusNumber{Status: status}
		for _, c := range state.Counts {
			if c.Status == n.Status {
				n.Runs, n.More = c.Runs, c.More
			}
		}
		parts = append(parts, s.paint(statusColor(n.Status), string(n.Status))+" "+n.text())
	}
	if err := s.write(fitLine(s.paint(faint, "live runs   ")+strings.Join(parts, "  "), width) + "\n"); err != nil {
		return err
	}
	active, capacity, dead := 0, 0, 0
	for i := range state.Workers {
		w := &state.Workers[i]
		if wording.IsWorkerDead(s.now(), w) {
			dead++
			continue
		}
		active, capacity = active+w.Active, capacity+w.Capacity
	}
	workers := fmt.Sprintf("%d, %d of %d slots used", len(state.Workers)-dead, active, capacity)
	if dead > 0 {
		workers += ", " + s.paint(red, fmt.Sprintf("%d dead", dead))
	}
	text := s.paint(faint, "oldest due  ") + strings.TrimSuffix(s.pastOrExact(state.OldestDue), " ago") + "\n" +
		fitLine(s.paint(faint, "workers     ")+workers, width) + "\n\n" +
		renderTable(s.printer, state.Workers, workerColumns(s.printer))
	if len(state.Queues) > 0 {
		text += "\n" + renderTable(s.printer, state.Queues, queueColumns(s.printer))
	}
	failed, _, err := listRuns(ctx, s.engine, durable.Filter{Status: []durable.Status{durable.StatusFailed, durable.StatusExpired}}, 5, "")
	if err != nil {
		return err
	}
	if len(failed) > 0 {
		text += "\n" + fitLine(s.paint(faint, "started last among those that failed"), width) + "\n" + renderTable(s.printer, failed, runColumns(s.printer))
	}
	return s.write(text)
}

// rates reads the events since the last call, and returns the line of the throughput.
func (t *topScreen) rates(ctx context.Context, s *session) (string, error) {
	clear(t.ended)
	for {
		page, err := s.engine.Events(ctx, durable.Page{Cursor: t.cursor, Limit: mostPerPage})
		if err != nil {
			return "", err
		}
		for _, event := range page {
			t.ended[event.Type]++
			t.cursor = event.Cursor
		}
		if len(page) < mostPerPage {
			break
		}
	}
	elapsed := max(s.now().Sub(t.since), time.Millisecond)
	t.since = s.now()
	perSecond := func(c color, name string, types ...durable.EventType) string {
		n := 0
		for _, eventType := range types {
			n += t.ended[eventType]
		}
		return fmt.Sprintf("%s %.1f/s", s.paint(c, name), float64(n)/elapsed.Seconds())
	}
	return s.paint(faint, "throughput  ") + strings.Join([]string{
		perSecond(green, "completed", durable.EventCompleted),
		perSecond(red, "failed", durable.EventFailed, durable.EventExpired),
		perSecond(yellow, "cancelled", durable.EventCancelled),
		perSecond(yellow, "taken over", durable.EventLeaseLost),
	}, "  "), nil
}
