package sqlite

import (
	"context"
	"database/sql/driver"
	"strconv"
	"time"
)

// database/sql calls the methods of this file for users of Writer. durable's own statements use
// exec and each.

// BeginTx implements driver.ConnBeginTx for the user's transactions on the writer. Like begin, it
// waits for the write lock.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	var tx driver.Tx
	err := retryBusy(ctx, c.busyTimeout, func() (err error) {
		tx, err = c.driverConn.BeginTx(context.Background(), opts) // returns at once, because busy_timeout is 0
		return c.writeLockWait.note(err)
	})
	if err != nil {
		return nil, err
	}
	c.inTx = true
	return &userTx{tx, c}, nil
}

// userTx is a transaction of database/sql. Its Commit returns an error if the file's path has
// led to another file than the open one.
type userTx struct {
	driver.Tx
	c *conn
}

// Commit implements driver.Tx.
func (t *userTx) Commit() error {
	t.c.inTx = false
	if err := t.Tx.Commit(); err != nil {
		return err
	}
	return t.c.files.checkPaths(mainAndWALFileCount)
}

// Rollback implements driver.Tx.
func (t *userTx) Rollback() error {
	t.c.inTx = false
	return t.Tx.Rollback()
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (result driver.Result, err error) {
	err = c.callWithBusyWait(func() error {
		result, err = c.driverConn.ExecContext(ctx, query, args)
		return err
	})
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = c.callWithBusyWait(func() error {
		rows, err = c.driverConn.QueryContext(ctx, query, args)
		return err
	})
	return rows, err
}

// PrepareContext implements driver.ConnPrepareContext.
func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	made, err := c.driverConn.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	stmt, ok := made.(underlyingStmt)
	if !ok {
		return made, nil
	}
	return &userStmt{stmt, c}, nil
}

// userStmt is a prepared statement of a user.
type userStmt struct {
	underlyingStmt
	c *conn
}

// ExecContext implements driver.StmtExecContext.
func (s *userStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (result driver.Result, err error) {
	err = s.c.callWithBusyWait(func() error {
		result, err = s.underlyingStmt.ExecContext(ctx, args)
		return err
	})
	return result, err
}

// QueryContext implements driver.StmtQueryContext.
func (s *userStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (rows driver.Rows, err error) {
	err = s.c.callWithBusyWait(func() error {
		rows, err = s.underlyingStmt.QueryContext(ctx, args)
		return err
	})
	return rows, err
}

// callWithBusyWait executes a user's call, and has SQLite wait for other processes that write. In a
// transaction the connection already has the write lock. Outside of a transaction SQLite itself
// must wait: if the call were repeated after SQLITE_BUSY, those of its statements that were
// committed would be executed twice.
func (c *conn) callWithBusyWait(call func() error) error {
	if c.inTx || c.busyTimeout <= 0 {
		return call()
	}
	if err := c.setBusyTimeout(c.busyTimeout); err != nil {
		return err
	}
	err := call()
	if reset := c.setBusyTimeout(0); err == nil {
		err = reset
	}
	return err
}

// setBusyTimeout sets how long SQLite waits for a lock of another connection. A pragma cannot have
// parameters, so the statement contains the number.
func (c *conn) setBusyTimeout(d time.Duration) error {
	_, err := c.driverConn.ExecContext(context.Background(), "PRAGMA busy_timeout = "+strconv.FormatInt(d.Milliseconds(), 10), nil)
	return err
}
