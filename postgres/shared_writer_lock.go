package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A takeover waits for writes of steps that are in progress (see awaitStepWriters). So that it waits only for the writes of workers,
// each session that writes steps as a worker holds a shared advisory lock, the writer lock. One of the store's own sessions holds the
// writer lock until the session ends; behind a pooler, each transaction takes it.

// isWriterLockRefused reports whether the database refused the writer lock, because it has no such locks or this role may not take
// them. Takeovers then wait for all transactions that write steps.
func isWriterLockRefused(err error) bool { return hasSQLState(err, "42883", "0A000", "42501") }

// takeSharedWriterLock takes the writer lock for one of the store's own sessions.
func (s *database) takeSharedWriterLock(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, s.statements.sharedWriterLockSession, pgx.QueryExecModeExec)
	if isWriterLockRefused(err) {
		return nil
	}
	return err
}

// probeWriterLockSupport finds out whether transactions can take the writer lock. If they cannot, a transaction that tries would
// fail.
func (s *database) probeWriterLockSupport(ctx context.Context) {
	conn, err := s.enginePool.Acquire(ctx)
	if err != nil {
		return // the next call returns the error
	}
	defer conn.Release()
	if connStateOf(conn.Conn()) != nil {
		return
	}
	_, err = conn.Exec(ctx, s.statements.sharedWriterLockTx, pgx.QueryExecModeExec)
	s.cannotTakeWriterLock = isWriterLockRefused(err)
}

// addSharedWriterLock adds the statement that takes the writer lock for one transaction, for sessions behind a pooler. It returns the
// number of its results.
func (s *database) addSharedWriterLock(batch *pgx.Batch) int {
	if s.cannotTakeWriterLock {
		return 0
	}
	batch.Queue(s.statements.sharedWriterLockTx)
	return 1
}
