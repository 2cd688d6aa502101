package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	sqlite "modernc.org/sqlite"
)

// maxArgs is the largest number of parameters of a statement.
const maxArgs = 24

// maxColumns is the largest number of columns that a statement returns.
const maxColumns = 32

// maxValueBytes is SQLite's limit for one value (SQLITE_MAX_LENGTH), in bytes. It is
// checked here because the driver passes lengths on in 32 bits.
const maxValueBytes = 1_000_000_000

// executor runs durable's statements, inside a transaction or alone.
type executor interface {
	// exec executes a statement and returns the number of rows that it changed.
	exec(q queryID, args ...driver.Value) (int64, error)
	// query calls row for every row. The slice belongs to the connection and is reused for the next row. The callback may keep its
	// elements.
	query(q queryID, row func([]driver.Value) error, args ...driver.Value) error
}

// driverConn has the methods of the driver's connection that database/sql uses.
type driverConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type underlyingStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// conn is a connection with durable's statements prepared on it, each at its
// first use and kept for the life of the connection. It stands between
// database/sql, which owns it and lends it to one goroutine at a time, and the
// driver's connection.
//
// Calls through exec and query bypass database/sql, which costs more than SQLite does for a small row. They have no context on
// purpose: with a context, the driver starts a goroutine for each statement, and closes a connection that was interrupted. Callers
// check their context between statements.
type conn struct {
	driverConn
	statementTexts *statementTexts
	files          *movedFileDetector
	busyTimeout    time.Duration // how long to wait for the write lock
	writeLockWait  *lockWait     // of the store; nil for a connection that does not write
	inTx           bool          // a transaction of database/sql is open
	stmts          [queryCount]underlyingStmt
	args           [maxArgs]driver.NamedValue
	row            [maxColumns]driver.Value
}

// connector opens connections of type conn. It implements driver.Connector.
type connector struct {
	driver.Connector
	statementTexts *statementTexts
	files          *movedFileDetector
	busyTimeout    time.Duration
	writeLockWait  *lockWait // nil if the connections do not write
}

func newConnector(dsn string, t *statementTexts, f *movedFileDetector, patience time.Duration) (*connector, error) {
	c, err := sqlite.NewConnector(dsn)
	if err != nil {
		return nil, err
	}
	return &connector{Connector: c, statementTexts: t, files: f, busyTimeout: patience}, nil
}

// Connect implements driver.Connector.
func (k *connector) Connect(ctx context.Context) (driver.Conn, error) {
	var opened driver.Conn
	err := retryBusy(ctx, k.busyTimeout, func() (err error) {
		opened, err = k.Connector.Connect(ctx) // its pragmas read the file, which a closing process may lock
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := k.files.checkPaths(fileCount); err != nil { // the connection may be to another file
		return nil, errors.Join(err, keepWALFile(opened), opened.Close())
	}
	raw, ok := opened.(driverConn)
	if !ok {
		return nil, errors.Join(fmt.Errorf("the driver's connection %T lacks a method that durable needs", opened), opened.Close())
	}
	c := &conn{driverConn: raw, statementTexts: k.statementTexts, files: k.files, busyTimeout: k.busyTimeout, writeLockWait: k.writeLockWait}
	for i := range c.args {
		c.args[i].Ordinal = i + 1
	}
	return c, nil
}

// Close implements driver.Conn. The statements are closed first, because SQLite keeps a connection with open statements, and its
// locks, alive.
func (c *conn) Close() error {
	var errs []error
	for q, s := range c.stmts {
		if s != nil {
			errs = append(errs, s.Close())
			c.stmts[q] = nil
		}
	}
	if c.files.movedError() != nil {
		errs = append(errs, keepWALFile(c.driverConn))
	}
	return errors.Join(append(errs, c.driverConn.Close())...)
}

// keepWALFile makes SQLite keep the log when the connection is closed. SQLite would delete the file with the log's name,
// which other processes may be using.
func keepWALFile(c driver.Conn) error {
	control, ok := c.(interface {
		FileControlPersistWAL(db string, mode int) (int, error)
	})
	if !ok {
		return nil
	}
	_, err := control.FileControlPersistWAL("main", 1)
	return err
}

// begin starts a transaction that holds the write lock.
func (c *conn) begin(ctx context.Context) error {
	return retryBusy(ctx, c.busyTimeout, func() error {
		_, err := c.exec(qBegin)
		return c.writeLockWait.note(err)
	})
}

// retryBusy calls try until another process no longer holds the lock, ctx ends, or the time is over. It replaces
// SQLite's own busy handler, which sleeps in the driver, ignores the context, and waits in steps that are long compared
// to a commit.
func retryBusy(ctx context.Context, patience time.Duration, try func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	err := try()
	if !isBusy(err) {
		return err
	}
	deadline := time.Now().Add(patience)
	for pause := 50 * time.Microsecond; ; pause = min(2*pause, 4*time.Millisecond) {
		timer := time.NewTimer(pause/2 + rand.N(pause))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
		if err = try(); !isBusy(err) || time.Now().After(deadline) {
			return err
		}
	}
}

// rollback rolls back the open transaction and returns cause. If the rollback fails, it also returns driver.ErrBadConn,
// so that the connection is closed.
func (c *conn) rollback(cause error) error {
	if _, err := c.exec(qRollback); err != nil && !isNoTransaction(err) {
		return errors.Join(cause, driver.ErrBadConn)
	}
	return cause
}

func (c *conn) prepare(q queryID) (underlyingStmt, error) {
	if s := c.stmts[q]; s != nil {
		return s, nil
	}
	made, err := c.driverConn.PrepareContext(context.Background(), c.statementTexts[q])
	if err != nil {
		return nil, err
	}
	s, ok := made.(underlyingStmt)
	if !ok {
		return nil, fmt.Errorf("the driver's statement %T lacks a method that durable needs", made)
	}
	c.stmts[q] = s
	return s, nil
}

// bindArgs copies the arguments into the buffer of the connection.
func (c *conn) bindArgs(args []driver.Value) ([]driver.NamedValue, error) {
	for i, v := range args {
		if err := checkLength(v); err != nil {
			return nil, err
		}
		c.args[i].Value = v
	}
	return c.args[:len(args)], nil
}

// clearArgs removes the values, so that large ones can be garbage collected.
func clearArgs(bound []driver.NamedValue) {
	for i := range bound {
		bound[i].Value = nil
	}
}

func (c *conn) exec(q queryID, args ...driver.Value) (int64, error) {
	s, err := c.prepare(q)
	if err != nil {
		return 0, err
	}
	bound, err := c.bindArgs(args)
	if err != nil {
		return 0, err
	}
	result, err := s.ExecContext(context.Background(), bound)
	clearArgs(bound)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

func (c *conn) query(q queryID, row func([]driver.Value) error, args ...driver.Value) error {
	s, err := c.prepare(q)
	if err != nil {
		return err
	}
	bound, err := c.bindArgs(args)
	if err != nil {
		return err
	}
	rows, err := s.QueryContext(context.Background(), bound)
	clearArgs(bound)
	if err != nil {
		return err
	}
	values := c.row[:len(rows.Columns())]
	defer clear(values)
	for {
		if err = rows.Next(values); err == io.EOF {
			return rows.Close()
		}
		if err == nil {
			err = row(values)
		}
		if err != nil {
			return errors.Join(err, rows.Close())
		}
	}
}
