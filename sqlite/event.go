package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeEvent(x session, run uuid.UUID, what store.EventType, at time.Time) error {
	_, err := x.exec(qEventInsert, bindID(run), int64(what), bindTime(at))
	return err
}

// Events implements store.Store. A file has one writer at a time, so that the events'
// numbers are the order of their commits, and there are no gaps that fill later.
func (s *Store) Events(ctx context.Context, after string, limit int) ([]store.Event, error) {
	from, at, err := parseCursor(after)
	if err != nil {
		return nil, s.wrap("events", err)
	}
	if limit <= 0 {
		return nil, nil
	}
	var events []store.Event
	err = s.read(ctx, "events", func(x session) error {
		if after != "" {
			if err := checkCursor(x, from, at); err != nil {
				return err
			}
		}
		err := x.each(qEvents, func(v []driver.Value) error {
			c := columns{values: v}
			id := c.int()
			e := store.Event{Run: c.id(), Type: store.EventType(c.int()), At: c.time()}
			e.Cursor = formatCursor(id, e.At.UnixMicro())
			events = append(events, e)
			return c.err
		}, from, int64(limit))
		for i := range events {
			if err == nil && i%contextCheckInterval == 0 {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			err = addRunNames(x, &events[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// checkCursor checks that a cursor leads on: its event is there, or, like everything that is older, was
// swept. If it is gone and older ones are there, the file is in an earlier state than the cursor is of.
func checkCursor(x session, id, at int64) error {
	found, older := false, false
	err := x.each(qEventFound, func(v []driver.Value) error {
		c := columns{values: v}
		n, when := c.int(), c.int()
		found = found || n == id && when == at
		older = older || when < at
		return c.err
	}, id)
	if err == nil && older && !found {
		err = fmt.Errorf("after %s: %w: %w", formatCursor(id, at), store.ErrBadData, store.ErrRestored)
	}
	return err
}

// addRunNames adds what people call the run, if it is still there. The shard is in the run's
// ID, where SQL does not get at it.
func addRunNames(x session, e *store.Event) error {
	return x.each(qRunNames, func(v []driver.Value) error {
		c := columns{values: v}
		e.Name, e.Workflow, e.Child = c.text(), c.text(), c.int() != 0
		return c.err
	}, bindShard(e.Run), bindID(e.Run))
}

// formatCursor is the place of an event: its number, and its time, since numbers are given anew after a
// file is restored.
func formatCursor(id, at int64) string { return fmt.Sprintf("%d-%d", id, at) }

// parseCursor reads what cursor has written; an empty text is before the first event.
func parseCursor(text string) (id, at int64, err error) {
	if text == "" {
		return 0, 0, nil
	}
	number, rest, _ := strings.Cut(text, "-")
	id, _ = strconv.ParseInt(number, 10, 64)
	at, _ = strconv.ParseInt(rest, 10, 64)
	if id < 0 || formatCursor(id, at) != text {
		return 0, 0, fmt.Errorf("%w: %.40q is no cursor of an event", store.ErrBadData, text)
	}
	return id, at, nil
}
