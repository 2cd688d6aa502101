package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/seed8ec063be/durable/internal/store"
)

// withConn calls fn with a connection of db. It waits for a connection until ctx ends.
func (s *database) withConn(ctx context.Context, db *sql.DB, what string, fn func(*conn) error) error {
	if err := s.files.movedError(); err != nil {
		return s.wrapError(what, err)
	}
	lent, err := db.Conn(ctx)
	if err != nil {
		if db == s.writerDB && errors.Is(err, context.DeadlineExceeded) && !s.writeLockWait.isRecent() {
			return fmt.Errorf("sqlite: %s: another transaction of this process is open, or a commit waits for the disk: %w: keep the functions of Tx and the transactions on Store.Writer short", what, err)
		}
		return s.wrapError(what, err)
	}
	defer lent.Close()
	var failed error
	err = lent.Raw(func(raw any) error {
		failed = fn(raw.(*conn))
		if errors.Is(failed, driver.ErrBadConn) {
			return driver.ErrBadConn // unwrapped, since database/sql compares with ==; it closes the connection
		}
		return nil
	})
	if failed == nil {
		failed = err
	}
	return s.wrapError(what, failed)
}

// withReadConn calls fn with a connection for reading. Each statement sees the newest commit.
func (s *database) withReadConn(ctx context.Context, what string, fn func(executor) error) error {
	return s.withConn(ctx, s.readerDB, what, func(c *conn) error {
		if err := s.files.checkPathsThrottled(); err != nil {
			return err
		}
		return fn(c)
	})
}

// withWriteTx calls fn in one IMMEDIATE transaction. If it returns nil, everything that fn wrote is durable. If it returns an error,
// nothing was written, except that after ErrUnavailable the transaction may have been committed. The transaction has ended when
// write returns. If fn panics, database/sql closes the connection.
func (s *database) withWriteTx(ctx context.Context, what string, fn func(executor) error) error {
	return s.withConn(ctx, s.writerDB, what, func(c *conn) error {
		if err := c.begin(ctx); err != nil {
			return err
		}
		err := fn(c)
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			if _, err = c.exec(qCommit); err == nil {
				return s.files.checkPaths(mainAndWALFileCount) // if the files are still in place after the commit, they contain it
			}
		}
		return c.rollback(err)
	})
}

// writeWithoutTx calls fn, which executes one statement, outside of a transaction, and reports whether the statement changed
// one row. It does what write does for a transaction. It calls fn again while another process holds the write lock.
func (s *database) writeWithoutTx(ctx context.Context, what string, fn func(executor) (rows int64, err error)) (written bool, err error) {
	err = s.withConn(ctx, s.writerDB, what, func(c *conn) error {
		err := retryBusy(ctx, c.busyTimeout, func() error {
			rows, err := fn(c)
			written = rows == 1
			return c.writeLockWait.note(err)
		})
		if err != nil {
			return err
		}
		return s.files.checkPaths(mainAndWALFileCount) // as in write
	})
	return written && err == nil, err
}

// writer returns the database handle with the only connection that writes. Its transactions are IMMEDIATE, wait for
// other processes as Commit does, and exclude all other writes of this store.
func (s *database) writer() *sql.DB { return s.writerDB }

// writeStepInTx writes one step in the caller's transaction, by the rules of Commit, and sets its outcome. The step may
// have a row that is not terminal. After an error the transaction is open, and the caller must roll it back.
func (s *database) writeStepInTx(ctx context.Context, tx *sql.Tx, w *store.StepWrite) error {
	return s.wrapError("checkpoint", writeStep(s.newUserTx(ctx, tx), w))
}

// startRunsInTx creates runs in the caller's transaction and sets their outcomes. Listen notices the commit as it notices those of
// other processes.
func (s *database) startRunsInTx(ctx context.Context, tx *sql.Tx, starts []*store.StartWrite) error {
	x := s.newUserTx(ctx, tx)
	for _, w := range starts {
		if err := writeStart(x, w); err != nil {
			return s.wrapError("start", err)
		}
	}
	return nil
}

// signalInTx sends a signal, in the caller's transaction, to the run that ref names, and sets its outcome.
func (s *database) signalInTx(ctx context.Context, tx *sql.Tx, ref store.RunRef, w *store.SignalWrite) error {
	x := s.newUserTx(ctx, tx)
	row, ok, err := findRun(x, ref, store.NoPayloads)
	if err != nil {
		return s.wrapError("signal", err)
	}
	if !ok {
		w.Outcome, w.ExistingSignal, w.RunState = store.Fenced, nil, store.RunState{}
		return nil
	}
	if err := w.SetRunAndEncodePayload(row.UUID); err != nil {
		return s.wrapError("signal", err)
	}
	return s.wrapError("signal", writeSignal(x, w))
}

func (s *database) newUserTx(ctx context.Context, tx *sql.Tx) *writeTx {
	return &writeTx{executor: txSession{ctx, tx, s.statementTexts}}
}

// txSession executes durable's statements in a transaction of database/sql.
type txSession struct {
	ctx            context.Context
	tx             *sql.Tx
	statementTexts *statementTexts
}

func (x txSession) exec(q queryID, args ...driver.Value) (int64, error) {
	bound, err := toAnyArgs(args)
	if err != nil {
		return 0, err
	}
	result, err := x.tx.ExecContext(x.ctx, x.statementTexts[q], bound...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (x txSession) query(q queryID, row func([]driver.Value) error, args ...driver.Value) error {
	bound, err := toAnyArgs(args)
	if err != nil {
		return err
	}
	rows, err := x.tx.QueryContext(x.ctx, x.statementTexts[q], bound...)
	if err != nil {
		return err
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		return err
	}
	values := make([]driver.Value, len(columns))
	targets := make([]any, len(columns))
	for i := range values {
		targets[i] = (*any)(&values[i])
	}
	for rows.Next() {
		if err := rows.Scan(targets...); err != nil {
			return err
		}
		if err := row(values); err != nil {
			return err
		}
	}
	return rows.Err()
}

func toAnyArgs(args []driver.Value) ([]any, error) {
	out := make([]any, len(args))
	for i, v := range args {
		if err := checkLength(v); err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}
