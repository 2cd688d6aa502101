package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// CountUnreceivedSignals implements store.Store.
func (s *database) CountUnreceivedSignals(ctx context.Context, runs []uuid.UUID) ([]store.SignalCount, error) {
	var counts []store.SignalCount
	n := len(runs)
	err := s.runBatch(ctx, s.enginePool, "count signals", func(batch *pgx.Batch) {
		batch.Queue(s.statements.signalsUnreceivedCount,
			int2Array{n, func(i int) int16 { return store.ShardOf(runs[i]) }},
			uuidArray{n, func(i int) *uuid.UUID { return &runs[i] }})
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var c store.SignalCount
			var n int64
			err := rows.Scan((*uuidValue)(&c.Run), &c.Name, &n)
			c.Count = int(n)
			counts = append(counts, c)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return counts, nil
}
