package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// A takeover waits for the writes of steps that are under way (see land). So that it waits for
// those of workers only, each session that writes as one holds a shared advisory lock, its mark:
// in a session of the store's own for as long as that lasts, else in each transaction.

// markless reports whether the database refused the mark because it has no such locks, or does not
// let us take them. Then takeovers wait for everybody who writes steps.
func markless(err error) bool { return hasState(err, "42883", "0A000", "42501") }

// markSession takes the mark for a session of the store's own.
func (s *database) markSession(ctx context.Context, conn *pgx.Conn) error {
	_, err := conn.Exec(ctx, s.sql.writer, pgx.QueryExecModeExec)
	if markless(err) {
		return nil
	}
	return err
}

// tryMark finds out whether transactions can take the mark: the first one that could not would fail.
func (s *database) tryMark(ctx context.Context) {
	conn, err := s.engine.Acquire(ctx)
	if err != nil {
		return // the next call says what is wrong
	}
	defer conn.Release()
	if sessionOf(conn.Conn()) != nil {
		return
	}
	_, err = conn.Exec(ctx, s.sql.writerLocal, pgx.QueryExecModeExec)
	s.unmarked = markless(err)
}

// queueMark takes the mark in a transaction of a session that is not the store's own. It returns how
// many results that has.
func (s *database) queueMark(batch *pgx.Batch) int {
	if s.unmarked {
		return 0
	}
	batch.Queue(s.sql.writerLocal)
	return 1
}
