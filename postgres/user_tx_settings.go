package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// roundTripFuncInUserTx returns a roundTripFunc that uses a transaction of the user. The session's settings stay as they are for the
// user's own statements. The statements of durable qualify all names, so they do not depend on the search_path. If the session
// would send text or values in another form than durable uses, they are executed between user_tx_set_settings.sql and
// user_tx_restore_settings.sql.
func (s *database) roundTripFuncInUserTx(ctx context.Context, tx pgx.Tx) roundTripFunc {
	registerParameterTypes(tx.Conn().TypeMap())
	ask := s.roundTripFuncInTx(ctx, tx)
	if sendsBinaryUTF8(tx.Conn()) {
		return ask
	}
	return func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		return ask(what, func(batch *pgx.Batch) {
			batch.Queue(s.statements.userTxSetSettings)
			fill(batch)
			batch.Queue(s.statements.userTxRestoreSettings)
		}, func(res statementResults) error {
			if err := readRowCount(res, 1, nil); err != nil {
				return err
			}
			if err := read(res); err != nil {
				return err
			}
			return readRowCount(res, 1, nil)
		})
	}
}

// sendsBinaryUTF8 reports whether this session sends text and values in the form that durable needs: the server
// expects UTF-8, and results are binary, so that no setting changes their form.
func sendsBinaryUTF8(conn *pgx.Conn) bool {
	switch conn.Config().DefaultQueryExecMode {
	case pgx.QueryExecModeExec, pgx.QueryExecModeSimpleProtocol:
		return false
	}
	encoding := conn.PgConn().ParameterStatus("client_encoding")
	return encoding == "UTF8" || encoding == "" // some poolers do not report it
}

// roundTripFuncWithSyncCommit returns a roundTripFunc for statements of a user's transaction whose effect is acknowledged when the
// transaction commits. It makes the commit wait for the disk; see [AllowAsyncCommit].
func (s *database) roundTripFuncWithSyncCommit(ask roundTripFunc) roundTripFunc {
	if s.allowAsyncCommit {
		return ask
	}
	return func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		return ask(what, func(batch *pgx.Batch) {
			batch.Queue(s.statements.userTxSyncCommit)
			fill(batch)
		}, func(res statementResults) error {
			if err := readRowCount(res, 1, nil); err != nil {
				return err
			}
			return read(res)
		})
	}
}
