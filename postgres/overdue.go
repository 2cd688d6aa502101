package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// Overdue implements store.Store.
func (s *database) Overdue(ctx context.Context, at time.Time, after store.Pair, limit int) ([]store.Overdue, error) {
	var all []store.Overdue
	err := s.once(ctx, s.engine, "look for overdue runs", func(batch *pgx.Batch) {
		batch.Queue(s.sql.overdue, instant(at), after.Queue, after.Workflow, int32(limit))
	}, func(res results) error {
		all = nil
		return each(res, func(rows pgx.Rows) error {
			var o store.Overdue
			err := rows.Scan(&o.Pair.Queue, &o.Pair.Workflow, (*uuidValue)(&o.Run), (*timeValue)(&o.Since))
			all = append(all, o)
			return err
		})
	})
	return all, err
}

// Executed implements store.Store.
func (s *database) Executed(ctx context.Context, pairs []store.Pair) ([]bool, error) {
	executed := make([]bool, len(pairs))
	if len(pairs) == 0 {
		return executed, nil
	}
	err := s.once(ctx, s.engine, "look for workers", func(batch *pgx.Batch) {
		batch.Queue(s.sql.executed, pairArgs(pairs)...)
	}, func(res results) error {
		return each(res, func(rows pgx.Rows) error {
			var ordinal int64
			err := rows.Scan(&ordinal)
			if err == nil {
				executed[ordinal-1] = true
			}
			return err
		})
	})
	return executed, err
}

// executesColumns returns the queues and workflows that a worker executes, or NULL if they are not
// recorded.
func executesColumns(pairs []store.Pair) []any {
	if pairs == nil {
		return []any{nil, nil}
	}
	return pairArgs(pairs)
}
