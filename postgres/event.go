package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// cursor is the place of an event in the outbox: what its key is made of, but for the
// shard, which is in the run's ID.
type cursor struct {
	txid uint64
	run  uuid.UUID
	kind int16
}

func (c cursor) String() string { return fmt.Sprintf("%d-%s-%d", c.txid, c.run, c.kind) }

// parseCursor reads what String has written; an empty text is before all events.
func parseCursor(text string) (c cursor, err error) {
	if text == "" {
		return c, nil
	}
	txid, rest, _ := strings.Cut(text, "-")
	end := max(strings.LastIndexByte(rest, '-'), 0)
	kind, _ := strconv.ParseInt(strings.TrimPrefix(rest[end:], "-"), 10, 16)
	c.txid, _ = strconv.ParseUint(txid, 10, 64)
	c.run, _ = uuid.Parse(rest[:end])
	c.kind = int16(kind)
	if c.String() != text {
		return c, fmt.Errorf("postgres: events after %q: %w: that is no cursor of an event", shown(text), store.ErrBadData)
	}
	return c, nil
}

// Events implements store.Store. The order is that of the transactions' numbers.
func (s *Store) Events(ctx context.Context, after string, limit int) ([]store.Event, error) {
	from, err := parseCursor(after)
	if err != nil || limit <= 0 {
		return nil, err
	}
	var events []store.Event
	err = s.once(ctx, s.engine, "read events", func(batch *pgx.Batch) {
		batch.Queue(s.sql.events, strconv.FormatUint(from.txid, 10), one(from.run), from.kind, int32(min(limit, 1<<30)))
	}, func(res results) error {
		return each(res, func(rows pgx.Rows) error {
			var txid string
			var e store.Event
			err := rows.Scan(&txid, (*uuidValue)(&e.Run), (*int16)(&e.Type), (*timeValue)(&e.At), &e.Name, &e.Workflow, &e.Child)
			if err != nil {
				return err
			}
			at := cursor{run: e.Run, kind: int16(e.Type)}
			if at.txid, err = strconv.ParseUint(txid, 10, 64); err != nil {
				return err
			}
			e.Cursor = at.String()
			events = append(events, e)
			return nil
		})
	})
	if err != nil {
		return nil, err
	}
	return events, nil
}
