package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// inUsers asks in a transaction of the user's. The session is the user's too, and stays as it
// is for the user's own statements: durable's name in full what they use, whatever the
// search_path, and where text or values would be sent in another form than durable reads and
// writes, they come between enter.sql and leave.sql.
func (s *database) inUsers(ctx context.Context, tx pgx.Tx) asker {
	registerColumns(tx.Conn().TypeMap())
	ask := s.inTx(ctx, tx)
	if suits(tx.Conn()) {
		return ask
	}
	return func(what string, fill func(*pgx.Batch), read func(results) error) error {
		return ask(what, func(batch *pgx.Batch) {
			batch.Queue(s.sql.enter)
			fill(batch)
			batch.Queue(s.sql.leave)
		}, func(res results) error {
			if err := tally(res, 1, nil); err != nil {
				return err
			}
			if err := read(res); err != nil {
				return err
			}
			return tally(res, 1, nil)
		})
	}
}

// suits reports whether text and values are sent in this session as durable needs them: the server takes
// text for UTF-8, and the form of results depends on no setting, being binary.
func suits(conn *pgx.Conn) bool {
	switch conn.Config().DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return false
	}
	encoding := conn.PgConn().ParameterStatus("client_encoding")
	return encoding == "UTF8" || encoding == "" // some poolers do not tell
}

// writing is ask for statements of a user's transaction whose effect is acknowledged with its commit: the commit
// waits for the disk, see [AllowAsyncCommit].
func (s *database) writing(ask asker) asker {
	if s.async {
		return ask
	}
	return func(what string, fill func(*pgx.Batch), read func(results) error) error {
		return ask(what, func(batch *pgx.Batch) {
			batch.Queue(s.sql.durably)
			fill(batch)
		}, func(res results) error {
			if err := tally(res, 1, nil); err != nil {
				return err
			}
			return read(res)
		})
	}
}
