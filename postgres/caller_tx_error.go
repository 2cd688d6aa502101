package postgres

import (
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
)

// callerTxError converts the error of StartTx or SignalTx in the caller's transaction. It differs from storeErrorOfState, which is for
// statements that durable executes in transactions of its own. Such a statement can be repeated after an aborted transaction or a
// deadlock, so storeErrorOfState returns store.ErrUnavailable. In the caller's transaction, the same call would fail again until the
// caller rolls the transaction back.
func callerTxError(tx pgx.Tx, err error) error {
	if errors.Is(err, pgx.ErrTxClosed) {
		return fmt.Errorf("%w: the transaction was committed or rolled back before this call: call before Commit: %w", durable.ErrInvalidConfig, pgx.ErrTxClosed)
	}
	var pg *pgconn.PgError
	if !errors.As(err, &pg) {
		return err
	}
	switch pg.Code {
	case sqlStateAbortedTx:
		return fmt.Errorf("%w: an earlier statement of the transaction failed: roll the transaction back, or back to a savepoint before that statement: %w", durable.ErrInvalidConfig, pg)
	case sqlStateReadOnly:
		if tx.Conn().PgConn().ParameterStatus("in_hot_standby") != "off" {
			return err // the server is a standby: perhaps another host is the primary, or soon becomes the primary
		}
		return fmt.Errorf("%w: the transaction is read-only: begin it with pgx.ReadWrite: %w", durable.ErrInvalidConfig, pg)
	case "40001", "40P01": // serialization failure, deadlock
		return fmt.Errorf("%w: PostgreSQL has aborted the transaction: roll it back and repeat it from its beginning: %w", durable.ErrLocked, pg)
	}
	return err
}
