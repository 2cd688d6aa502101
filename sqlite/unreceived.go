package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Unreceived implements store.Store.
func (s *Store) Unreceived(ctx context.Context, runs []uuid.UUID) ([]store.SignalCount, error) {
	var counts []store.SignalCount
	err := s.read(ctx, "count signals", func(x session) error {
		for i, run := range runs {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			err := x.each(qUnreceived, func(v []driver.Value) error {
				c := columns{values: v}
				counts = append(counts, store.SignalCount{Run: run, Name: c.text(), N: int(c.int())})
				return c.err
			}, shardOf(run), key(run))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}
