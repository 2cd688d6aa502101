package durablecli

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/wording"
)

func eventsCommand(f *globalFlags) []*cobra.Command {
	var follow bool
	var cursor, workflow string
	var types []string
	var limit int
	cmd := &cobra.Command{
		Use: "events", GroupID: groupLook, Args: cobra.NoArgs,
		Short: "List the latest changes of runs, or follow them",
		Long: "List the latest changes of runs, such as ends, pauses and repairs, and what people did to them, in the order in which they came.\nWith --cursor, the changes after that event are listed.\n" +
			"With --follow and without --cursor, only changes from now on are shown. Interrupt the command to end it.",
		Example: "  durable events -f -o jsonl\n  durable events --type failed,expired -n 0",
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "wait for further events")
	cmd.Flags().StringVar(&cursor, "cursor", "", "continue after this event; -o wide and -o json show the cursor of each")
	cmd.Flags().StringVarP(&workflow, "workflow", "w", "", "events of runs of this workflow")
	cmd.Flags().StringSliceVar(&types, "type", nil, "events of these types: "+strings.Join(eventTypes, ", "))
	cmd.Flags().IntVarP(&limit, "limit", "n", 100, "the most events without --follow; 0: all")
	return []*cobra.Command{f.withEngine(cmd, func(ctx context.Context, s *session) error {
		for _, t := range types {
			if !slices.Contains(eventTypes, t) {
				return newUsageError("the event type %q does not exist: use one of %s", t, strings.Join(eventTypes, ", "))
			}
		}
		matches := func(e *durable.Event) bool {
			return (workflow == "" || e.Workflow == workflow) && (len(types) == 0 || slices.Contains(types, string(e.Type)))
		}
		if follow {
			return followEvents(ctx, s, cursor, matches)
		}
		if limit < 0 {
			return newUsageError("--limit is %d: use a positive number, or 0 for all", limit)
		}
		if cursor == "" && limit > 0 {
			return latestEvents(ctx, s, limit, matches)
		}
		return listEvents(ctx, s, cursor, limit, matches)
	})}
}

var eventTypes = []string{
	string(durable.EventPaused), string(durable.EventCompleted), string(durable.EventFailed), string(durable.EventCancelled), string(durable.EventExpired),
	string(durable.EventLeaseLost), string(durable.EventMovedToQueue), string(durable.EventPriorityChanged), string(durable.EventRepaired), string(durable.EventContinued), string(durable.EventVersionChanged), string(durable.EventDeleted),
	string(durable.EventResumed), string(durable.EventSignalled), string(durable.EventTagged), string(durable.EventTimeoutSet), string(durable.EventTriggered), string(durable.EventBackfilled),
	string(durable.EventQueueDeleted), string(durable.EventLimitDeleted), string(durable.EventScheduleDeleted),
}

// latestEvents writes the latest events, in the order in which they came.
func latestEvents(ctx context.Context, s *session, limit int, matches func(*durable.Event) bool) error {
	var shown []durable.Event
	for cursor := ""; ; {
		page, err := s.engine.LatestEvents(ctx, durable.Page{Cursor: cursor, Limit: mostPerPage})
		if err != nil {
			return err
		}
		for i := range page {
			if !matches(&page[i]) {
				continue
			}
			if len(shown) == limit {
				s.writeMessage("there are earlier events: use --limit")
				page = nil
				break
			}
			shown = append(shown, page[i])
		}
		if len(page) < mostPerPage {
			slices.Reverse(shown)
			return printRows(s.printer, shown, func(e *durable.Event) string { return e.ID }, eventColumns(s.printer))
		}
		cursor = page[len(page)-1].Cursor
	}
}

// listEvents writes the events after a cursor.
func listEvents(ctx context.Context, s *session, cursor string, limit int, matches func(*durable.Event) bool) error {
	var shown []durable.Event
	for {
		page, err := s.engine.Events(ctx, durable.Page{Cursor: cursor, Limit: mostPerPage})
		if err != nil {
			return err
		}
		for i := range page {
			if !matches(&page[i]) {
				continue
			}
			if limit > 0 && len(shown) == limit {
				s.writeMessage("there are more events: use --limit, or continue with --cursor %s", shown[limit-1].Cursor)
				page = nil
				break
			}
			shown = append(shown, page[i])
		}
		if len(page) < mostPerPage {
			return printRows(s.printer, shown, func(e *durable.Event) string { return e.ID }, eventColumns(s.printer))
		}
		cursor = page[len(page)-1].Cursor
	}
}

// followEvents writes events as they come, from now on if the cursor is empty, until ctx ends.
func followEvents(ctx context.Context, s *session, cursor string, matches func(*durable.Event) bool) error {
	if s.format == formatJSON {
		return newUsageError("--follow does not end, so its output is no JSON array: use -o jsonl")
	}
	if cursor == "" {
		var err error
		if cursor, err = s.engine.EventCursor(ctx); err != nil {
			return err
		}
	}
	s.writeMessage("following events; interrupt to end")
	for event, err := range s.engine.WatchEvents(ctx, cursor) {
		if err != nil {
			return err
		}
		if !matches(&event) {
			continue
		}
		if s.format == formatTable || s.format == formatWide {
			err = s.write(eventLine(s.printer, &event))
		} else {
			err = printRows(s.printer, []durable.Event{event}, func(e *durable.Event) string { return e.ID }, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// eventLine returns an event as a line of a stream, whose columns cannot be laid out together.
func eventLine(p *printer, e *durable.Event) string {
	line := fmt.Sprintf("%s  %s  %-20s  %s", wording.ExactTime(e.At), p.paint(eventColor(e.Type), fmt.Sprintf("%-10s", e.Type)), wording.Escape(e.Workflow), wording.Escape(e.ID))
	if detail := eventDetail(e); detail != "" {
		line += "  " + wording.Escape(detail)
	}
	if p.format == formatWide {
		line += "  " + wording.Escape(e.Cursor)
	}
	return line + "\n"
}

func eventColor(t durable.EventType) color {
	switch t {
	case durable.EventCompleted:
		return green
	case durable.EventFailed, durable.EventExpired:
		return red
	}
	return yellow
}

func eventDetail(e *durable.Event) string {
	text := wording.ChangeText(e.Old, e.New)
	if e.Reason != "" || e.Actor != "" {
		text = strings.TrimSpace(text + " " + wording.ReasonAndActor(e.Reason, e.Actor))
	}
	return cmp.Or(text, e.Name)
}

func eventColumns(p *printer) []column[durable.Event] {
	type row = durable.Event
	return []column[row]{
		{title: "AT", isShortenedLast: true, text: func(e *row) string { return p.pastOrExact(e.At) }},
		{title: "EVENT", isShortenedLast: true, text: func(e *row) string { return string(e.Type) }, color: func(e *row) color { return eventColor(e.Type) }},
		{title: "WORKFLOW", text: func(e *row) string { return e.Workflow }},
		{title: "ID", isShortenedLast: true, text: func(e *row) string { return e.ID }},
		{title: "RUN ID", isWideOnly: true, text: func(e *row) string { return e.RunID }},
		{title: "DETAIL", text: eventDetail},
		{title: "CURSOR", isWideOnly: true, text: func(e *row) string { return e.Cursor }},
	}
}
