package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeEvent(x executor, run uuid.UUID, what store.EventType, at time.Time) error {
	_, err := x.exec(qEventInsert, bindUUID(run), int64(what), bindTime(at))
	return err
}

// writeCancelledEvent writes the event of a run that was cancelled, with the actor and the reason that the run's row has.
func writeCancelledEvent(x executor, run uuid.UUID, at time.Time) error {
	n, err := x.exec(qEventInsertCancelled, int64(store.EventCancelled), bindTime(at), bindShard(run), bindUUID(run))
	return checkOneRow("the event of run", run, n, err)
}

// writeEventWithActor writes an event with the actor and the reason of a change, and with the values before and after the change. Any of them
// may be empty.
func writeEventWithActor(x executor, act *store.ActorAndReason, e *store.Event) error {
	if !act.HasActorOrReason() && e.OldValue == "" && e.NewValue == "" {
		return writeEvent(x, e.Run, e.Type, act.At)
	}
	_, err := x.exec(qEventInsertWithValues, bindUUID(e.Run), int64(e.Type), bindTime(act.At), bindText(act.Actor), bindText(act.Reason), bindText(e.OldValue), bindText(e.NewValue))
	return err
}

// writeDeletionEvent writes the event of the deletion of a queue or a limit, with the actor and the reason. It writes nothing if the
// request has neither.
func writeDeletionEvent(x executor, what store.EventType, c *store.DeleteOrResetRequest) error {
	act := c.ActorAndReason()
	if !act.HasActorOrReason() {
		return nil
	}
	return writeEventWithActor(x, &act, &store.Event{Type: what, Run: store.NoRun, OldValue: c.Name})
}

// Events implements store.Store. SQLite has one writer at a time, so the numbers of the events are in commit order,
// without gaps that are filled later.
func (s *database) Events(ctx context.Context, after string, limit int) ([]store.Event, error) {
	from, at, err := parseEventCursor(after)
	if err != nil {
		return nil, s.wrapError("events", err)
	}
	if limit <= 0 {
		return nil, nil
	}
	return s.readEvents(ctx, func(x executor) error {
		if after == "" {
			return nil
		}
		return checkEventCursor(x, from, at)
	}, qEventsPage, from, limit)
}

// EventsBefore implements store.OverviewStore.
func (s *database) EventsBefore(ctx context.Context, before string, limit int) ([]store.Event, error) {
	to, _, err := parseEventCursor(before)
	if err != nil {
		return nil, s.wrapError("events", err)
	}
	if limit <= 0 {
		return nil, nil
	}
	if before == "" {
		to = math.MaxInt64
	}
	return s.readEvents(ctx, func(executor) error { return nil }, qEventsPageBefore, to, limit)
}

// readEvents returns a page of events, after a check.
func (s *database) readEvents(ctx context.Context, check func(executor) error, page queryID, cursor int64, limit int) (events []store.Event, err error) {
	err = s.withReadConn(ctx, "events", func(x executor) error {
		err := check(x)
		if err == nil {
			err = x.query(page, func(v []driver.Value) error {
				c := columnReader{values: v}
				id := c.int()
				e := store.Event{Run: c.uuid(), Type: store.EventType(c.int()), At: c.time()}
				e.Actor, e.Reason, e.OldValue, e.NewValue = c.text(), c.text(), c.text(), c.text()
				e.Cursor = formatEventCursor(id, e.At.UnixMicro())
				events = append(events, e)
				return c.err
			}, cursor, int64(limit))
		}
		for i := range events {
			if err == nil && i%itemsPerContextCheck == 0 {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			err = addRunNameToEvent(x, &events[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// checkEventCursor returns an error if the database was restored to a state before the cursor. The cursor is valid if its
// event exists, or if no older event exists, since old events are deleted in order.
func checkEventCursor(x executor, id, at int64) error {
	found, older := false, false
	err := x.query(qEventCursorValid, func(v []driver.Value) error {
		c := columnReader{values: v}
		n, when := c.int(), c.int()
		found = found || n == id && when == at
		older = older || when < at
		return c.err
	}, id)
	if err == nil && older && !found {
		err = fmt.Errorf("after %s: %w: %w", formatEventCursor(id, at), store.ErrBadData, store.ErrRestored)
	}
	return err
}

// addRunNameToEvent adds the name and the workflow of the event's run, if the run still exists. It is a statement of its own
// because the shard is part of the run's UUID, which SQL cannot decode.
func addRunNameToEvent(x executor, e *store.Event) error {
	return x.query(qRunNameAndWorkflow, func(v []driver.Value) error {
		c := columnReader{values: v}
		e.Name, e.Workflow, e.IsChild = c.text(), c.text(), c.int() != 0
		return c.err
	}, bindShard(e.Run), bindUUID(e.Run))
}

// formatEventCursor returns the cursor of an event. It holds the event's number and its time, because the same numbers are assigned
// again after the file was restored from a backup.
func formatEventCursor(id, at int64) string { return fmt.Sprintf("%d-%d", id, at) }

// parseEventCursor parses the result of formatEventCursor. An empty text is the position before the first event.
func parseEventCursor(text string) (id, at int64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	number, rest, _ := strings.Cut(text, "-")
	id, _ = strconv.ParseInt(number, 10, 64)
	at, _ = strconv.ParseInt(rest, 10, 64)
	if id < 0 || formatEventCursor(id, at) != text {
		return 0, 0, fmt.Errorf("%w: %.40q is not a cursor that Events returned", store.ErrBadData, text)
	}
	return id, at, nil
}
