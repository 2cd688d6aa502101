package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/google/uuid"
)

// ExtendRepairPause implements store.RepairStore.
func (s *database) ExtendRepairPause(ctx context.Context, run uuid.UUID, until time.Time) error {
	return s.withWriteTx(ctx, "extend the pause of a repair", func(x executor) error {
		_, err := x.exec(qRepairPauseExtend, bindUUID(run), bindTime(until))
		return err
	})
}

// ExpiredRepairPauses implements store.RepairStore.
func (s *database) ExpiredRepairPauses(ctx context.Context, now time.Time, limit int) (runs []uuid.UUID, err error) {
	err = s.withReadConn(ctx, "read the pauses of repairs", func(x executor) error {
		runs = nil // discard the rows of a failed try
		return x.query(qRepairPausesExpired, func(v []driver.Value) error {
			c := columnReader{values: v}
			runs = append(runs, c.uuid())
			return c.err
		}, bindTime(now), int64(limit))
	})
	return runs, err
}

// DeleteRepairPause implements store.RepairStore.
func (s *database) DeleteRepairPause(ctx context.Context, run uuid.UUID, now time.Time) error {
	return s.withWriteTx(ctx, "delete the pause of a repair", func(x executor) error {
		_, err := x.exec(qRepairPauseDelete, bindUUID(run), bindTime(now))
		return err
	})
}
