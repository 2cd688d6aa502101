package postgres

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// eventCursor is the position of an event in the outbox. It contains the event's key, without the shard, which
// is part of the run's UUID. It also contains the event's time, because the database assigns the same transaction IDs again after a
// restore.
type eventCursor struct {
	txid uint64
	run  uuid.UUID
	kind int16
	at   int64 // microseconds since 1970
}

func (c eventCursor) String() string { return fmt.Sprintf("%d-%s-%d-%d", c.txid, c.run, c.kind, c.at) }

// uuidTextLength is the length of a UUID as text.
const uuidTextLength = 36

// parseEventCursor parses the result of String. An empty text is the position before all events.
func parseEventCursor(text string) (c eventCursor, err error) {
	if text == "" {
		return c, nil
	}
	txid, rest, _ := strings.Cut(text, "-")
	end := min(len(rest), uuidTextLength)
	number, at, _ := strings.Cut(strings.TrimPrefix(rest[end:], "-"), "-")
	kind, _ := strconv.ParseInt(number, 10, 16)
	c.txid, _ = strconv.ParseUint(txid, 10, 64)
	c.run, _ = uuid.Parse(rest[:end])
	c.kind = int16(kind)
	c.at, _ = strconv.ParseInt(at, 10, 64)
	if c.String() != text {
		return c, fmt.Errorf("postgres: events after %q: %w: that is no cursor of an event", shortenName(text), store.ErrBadData)
	}
	return c, nil
}

// Events implements store.Store. It orders events by their transaction IDs.
func (s *database) Events(ctx context.Context, after string, limit int) ([]store.Event, error) {
	from, err := parseEventCursor(after)
	if err != nil || limit <= 0 {
		return nil, err
	}
	var events []store.Event
	leads := true
	err = s.runBatch(ctx, s.enginePool, "read events", func(batch *pgx.Batch) {
		if after != "" {
			batch.Queue(s.statements.eventCursorValid, store.ShardOf(from.run), strconv.FormatUint(from.txid, 10), pgUUID(from.run), from.kind, pgTime(time.UnixMicro(from.at)))
		}
		batch.Queue(s.statements.eventsPage, strconv.FormatUint(from.txid, 10), pgUUID(from.run), from.kind, int32(min(limit, 1<<30)))
	}, func(res statementResults) error {
		if after != "" {
			if err := eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&leads) }); err != nil {
				return err
			}
		}
		return readEvents(res, &events)
	})
	if err != nil {
		return nil, err
	}
	if !leads {
		return nil, fmt.Errorf("postgres: events after %q: %w: %w", after, store.ErrBadData, store.ErrRestored)
	}
	return events, nil
}

// EventsBefore implements store.OverviewStore.
func (s *database) EventsBefore(ctx context.Context, before string, limit int) (events []store.Event, err error) {
	to, err := parseEventCursor(before)
	if err != nil || limit <= 0 {
		return nil, err
	}
	if before == "" {
		to = eventCursor{txid: math.MaxUint64, run: uuid.Max, kind: math.MaxInt16}
	}
	err = s.runBatch(ctx, s.enginePool, "read events", func(batch *pgx.Batch) {
		batch.Queue(s.statements.eventsPageBefore, strconv.FormatUint(to.txid, 10), pgUUID(to.run), to.kind, int32(min(limit, 1<<30)))
	}, func(res statementResults) error { return readEvents(res, &events) })
	return events, err
}

// eventInsertArgs returns the parameters of event_insert.sql.
func eventInsertArgs(act store.ActorAndReason, events []store.Event) []any {
	n := len(events)
	return []any{
		pgTime(act.At), textOrNull(&act.Actor), textOrNull(&act.Reason),
		int2Array{n, func(i int) int16 { return store.ShardOf(events[i].Run) }},
		uuidArray{n, func(i int) *uuid.UUID { return &events[i].Run }},
		int2Array{n, func(i int) int16 { return int16(events[i].Type) }},
		textArray{n, func(i int) *string { return textOrNull(&events[i].OldValue) }},
		textArray{n, func(i int) *string { return textOrNull(&events[i].NewValue) }},
	}
}

// actorReasonArgs returns the time, the actor and the reason of a change as parameters. All are NULL if no event records the change.
func actorReasonArgs(a *store.ActorAndReason) []any {
	if !a.HasActorOrReason() {
		return []any{nil, nil, nil}
	}
	return []any{pgTime(a.At), textOrNull(&a.Actor), textOrNull(&a.Reason)}
}

// readEvents appends the events of a page.
func readEvents(res statementResults, events *[]store.Event) error {
	return eachRow(res, func(rows pgx.Rows) error {
		var txid string
		var e store.Event
		err := rows.Scan(&txid, (*uuidValue)(&e.Run), (*int16)(&e.Type), (*timeValue)(&e.At), &e.Name, &e.Workflow, &e.IsChild,
			&e.Actor, &e.Reason, &e.OldValue, &e.NewValue)
		if err != nil {
			return err
		}
		at := eventCursor{run: e.Run, kind: int16(e.Type), at: e.At.UnixMicro()}
		if at.txid, err = strconv.ParseUint(txid, 10, 64); err != nil {
			return err
		}
		e.Cursor = at.String()
		*events = append(*events, e)
		return nil
	})
}
