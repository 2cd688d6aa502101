package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// ExtendRepairPause implements store.RepairStore.
func (s *database) ExtendRepairPause(ctx context.Context, run uuid.UUID, until time.Time) error {
	return s.runBatch(ctx, s.enginePool, "extend the pause of a repair", func(batch *pgx.Batch) {
		batch.Queue(s.statements.repairPauseExtend, store.ShardOf(run), pgUUID(run), pgTime(until))
	}, func(res statementResults) error { return readRowCount(res, 1, nil) })
}

// ExpiredRepairPauses implements store.RepairStore.
func (s *database) ExpiredRepairPauses(ctx context.Context, now time.Time, limit int) (runs []uuid.UUID, err error) {
	err = s.roundTripFuncOnEnginePool(ctx)("read the pauses of repairs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.repairPausesExpired, pgTime(now), int32(limit))
	}, func(res statementResults) error {
		runs = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			err := rows.Scan((*uuidValue)(&id))
			runs = append(runs, id)
			return err
		})
	})
	return runs, err
}

// DeleteRepairPause implements store.RepairStore.
func (s *database) DeleteRepairPause(ctx context.Context, run uuid.UUID, now time.Time) error {
	return s.runBatch(ctx, s.enginePool, "delete the pause of a repair", func(batch *pgx.Batch) {
		batch.Queue(s.statements.repairPauseDelete, store.ShardOf(run), pgUUID(run), pgTime(now))
	}, func(res statementResults) error { return readRowCount(res, 1, nil) })
}
