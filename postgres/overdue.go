package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// Overdue implements store.Store.
func (s *database) Overdue(ctx context.Context, at time.Time, after store.Lane, limit int) ([]store.Overdue, error) {
	var all []store.Overdue
	err := s.once(ctx, s.engine, "look for overdue runs", func(batch *pgx.Batch) {
		batch.Queue(s.sql.overdue, instant(at), int64(after), int32(limit))
	}, func(res results) error {
		all = nil
		return each(res, func(rows pgx.Rows) error {
			var o store.Overdue
			err := rows.Scan(&o.Pair.Queue, &o.Pair.Workflow, (*int64)(&o.Lane), (*uuidValue)(&o.Run), (*timeValue)(&o.Since))
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

// textsOrNull returns texts as the parameter of a statement, and NULL for nil.
func textsOrNull(list []string) any {
	if list == nil {
		return nil
	}
	return texts{len(list), func(i int) *string { return &list[i] }}
}
