package sqlite

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

func writeEvent(x session, run uuid.UUID, what store.EventType, at time.Time) error {
	_, err := x.exec(qEventInsert, key(run), int64(what), micros(at))
	return err
}

// Events implements store.Store. A file has one writer at a time, so that the events'
// numbers are the order of their commits, and there are no gaps that fill later.
func (s *Store) Events(ctx context.Context, after string, limit int) ([]store.Event, error) {
	from, err := parseCursor(after)
	if err != nil {
		return nil, s.wrap("events", err)
	}
	if limit <= 0 {
		return nil, nil
	}
	var events []store.Event
	err = s.read(ctx, "events", func(x session) error {
		err := x.each(qEvents, func(v []driver.Value) error {
			c := columns{values: v}
			events = append(events, store.Event{
				Cursor: strconv.FormatInt(c.int(), 10), Run: c.id(), Type: store.EventType(c.int()), At: c.time(),
			})
			return c.err
		}, from, int64(limit))
		for i := range events {
			if err == nil && i%checkEvery == 0 {
				err = ctx.Err()
			}
			if err != nil {
				return err
			}
			err = label(x, &events[i])
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}

// label adds what people call the run, if it is still there. The shard is in the run's
// ID, where SQL does not get at it.
func label(x session, e *store.Event) error {
	return x.each(qRunLabel, func(v []driver.Value) error {
		c := columns{values: v}
		e.Name, e.Workflow, e.Child = c.text(), c.text(), c.int() != 0
		return c.err
	}, shardOf(e.Run), key(e.Run))
}

// parseCursor reads the number of an event; an empty text is before the first.
func parseCursor(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || strconv.FormatInt(n, 10) != text {
		return 0, fmt.Errorf("%w: %.40q is no cursor of an event", store.ErrBadData, text)
	}
	return n, nil
}
