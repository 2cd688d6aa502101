package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// Whatever is acknowledged must have been waited for: by the disk, and by the standbys that
// synchronous_standby_names asks for. A write's own commit does that. But an answer may also
// come from what was found: a flush is cancelled while it waits for a standby, its rows are
// visible all the same, and the next try finds them. A transaction that only reads waits for
// nobody; so each that acknowledges what it has found runs confirm.sql too.

// readBack asks as ask does, in a transaction whose commit waits as that of a write does.
func (s *database) readBack(ask asker, what string, fill func(*pgx.Batch), read func(results) error) error {
	return ask(what, func(batch *pgx.Batch) {
		fill(batch)
		batch.Queue(s.sql.confirm)
	}, func(res results) error {
		if err := read(res); err != nil {
			return err
		}
		_, err := res.Exec()
		return err
	})
}

// confirmed asks in a transaction of its own, as readBack does.
func (s *database) confirmed(ctx context.Context) asker {
	return func(what string, fill func(*pgx.Batch), read func(results) error) error {
		return s.readBack(s.onEngine(ctx), what, fill, read)
	}
}

// confirm waits until all that was visible before is where acknowledged writes are.
func (s *database) confirm(ctx context.Context) error {
	return s.readBack(s.onEngine(ctx), "confirm", func(*pgx.Batch) {}, func(results) error { return nil })
}

// alone is the key, in a connection's own data, that says that its last commit was not waited for.
const alone = "durable.alone"

// heedNotices has a connection remember that a commit's wait for a standby was cancelled, by an
// operator, say. The server reports such a commit as a success, with a warning. The text of that is in the
// server's language, the name of the routine is not.
func heedNotices(cfg *pgconn.Config) {
	users := cfg.OnNotice
	cfg.OnNotice = func(conn *pgconn.PgConn, n *pgconn.Notice) {
		if n.Routine == "SyncRepWaitForLSN" {
			conn.CustomData()[alone] = true
		}
		if users != nil {
			users(conn, n)
		}
	}
}

// unreplicated reports, once, whether the last commit of the connection was not waited for.
func unreplicated(conn *pgconn.PgConn) bool {
	data := conn.CustomData()
	if data[alone] == nil {
		return false
	}
	delete(data, alone)
	return true
}
