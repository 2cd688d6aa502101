package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// An acknowledged result must be on disk, and on the standbys that synchronous_standby_names requires.
// The commit of a write waits for that. But a result may also be based on rows that were read: if a flush
// is cancelled while it waits for a standby, its rows are visible nevertheless, and the next try finds
// them. The commit of a read-only transaction waits for nothing. Therefore each transaction that
// acknowledges what it has read also executes wait_for_standbys.sql.

// runAndAwaitStandbys calls ask with the statements and wait_for_standbys.sql, so that the commit waits like the commit of a write.
func (s *database) runAndAwaitStandbys(ask roundTripFunc, what string, fill func(*pgx.Batch), read func(statementResults) error) error {
	return ask(what, func(batch *pgx.Batch) {
		fill(batch)
		batch.Queue(s.statements.waitForStandbys)
	}, func(res statementResults) error {
		if err := read(res); err != nil {
			return err
		}
		_, err := res.Exec()
		return err
	})
}

// roundTripFuncAwaitingStandbys returns a roundTripFunc that executes statements as runAndAwaitStandbys does, in a transaction of its own.
func (s *database) roundTripFuncAwaitingStandbys(ctx context.Context) roundTripFunc {
	return func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		return s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), what, fill, read)
	}
}

// awaitStandbys waits until everything that was visible before is on disk and on the synchronous standbys.
func (s *database) awaitStandbys(ctx context.Context) error {
	return s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), "confirm", func(*pgx.Batch) {}, func(statementResults) error { return nil })
}

// unreplicatedCommitKey is the key under which a connection records that its last commit did not wait for the standbys.
const unreplicatedCommitKey = "durable.alone"

// detectCancelledSyncWaits makes a connection remember that a commit's wait for a standby was cancelled, for example
// by an operator. The server reports such a commit as a success with a warning. The warning is recognized
// by its routine, because the text depends on the server's language.
func detectCancelledSyncWaits(cfg *pgconn.Config) {
	users := cfg.OnNotice
	cfg.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.Routine == "SyncRepWaitForLSN" {
			conn.CustomData()[unreplicatedCommitKey] = true
		}
		if users != nil {
			users(conn, n)
		}
	}
}

// wasCommitUnreplicated reports whether the last commit of the connection did not wait for the standbys. It reports each such commit
// only once.
func wasCommitUnreplicated(conn *pgconn.PgConn) bool {
	data := conn.CustomData()
	if data[unreplicatedCommitKey] == nil {
		return false
	}
	delete(data, unreplicatedCommitKey)
	return true
}
