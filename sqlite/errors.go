package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/google/uuid"
	sqlite "modernc.org/sqlite"
	sqlite3 "modernc.org/sqlite/lib"

	"github.com/seed8ec063be/durable/internal/store"
)

// OpenError is returned by [Open] when a file cannot be used as a store. An OpenError says why the file cannot be used, and what to do. If
// the schema of the file does not fit this version of the code, Open returns an error that wraps durable.ErrSchema instead.
type OpenError struct {
	Path    string // as passed to Open
	Problem string
	Fix     string
	Err     error // the error of the operating system or of SQLite; may be nil
}

// Error returns a message with the path, the problem and the fix.
func (e *OpenError) Error() string {
	text := fmt.Sprintf("sqlite: cannot open %q: %s", e.Path, e.Problem)
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text + ": " + e.Fix
}

// Unwrap returns the error in the field Err.
func (e *OpenError) Unwrap() error { return e.Err }

// resultCode returns the extended result code of the SQLite error in err, or 0.
func resultCode(err error) int {
	if e, ok := errors.AsType[*sqlite.Error](err); ok {
		return e.Code()
	}
	return 0
}

// primaryResultCode returns the primary result code of an extended one.
func primaryResultCode(code int) int { return code & 0xff }

func isBusy(err error) bool {
	c := primaryResultCode(resultCode(err))
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isNoTransaction reports whether err is SQLite's reply to a ROLLBACK without a transaction. SQLite rolls back by
// itself, for example when the disk is full. The error has no code of its own.
func isNoTransaction(err error) bool {
	return primaryResultCode(resultCode(err)) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no transaction is active")
}

// wrapError converts the error of an operation into the kinds of errors that package store defines. It returns the context's
// own errors unchanged.
func (s *database) wrapError(what string, err error) error {
	if err == nil {
		return nil
	}
	_, moved := errors.AsType[*MovedError](err)
	_, refused := errors.AsType[*OpenError](err)
	switch {
	case moved, refused:
		return err
	case errors.Is(err, context.DeadlineExceeded) && s.writeLockWait.isRecent():
		return fmt.Errorf("sqlite: %s: another connection has locked the file %q: %w: %s", what, s.path, err, lockedFix)
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrUnavailable):
		return err
	case s.closed.Load():
		return fmt.Errorf("sqlite: %s: %w", what, store.ErrClosed)
	case errors.Is(err, store.ErrBadData), errors.Is(err, store.ErrRejected):
		return fmt.Errorf("sqlite: %s: %w", what, err)
	}
	if moved := s.files.checkPaths(fileCount); moved != nil { // the probable cause of the error
		return fmt.Errorf("%w (%s: %w)", moved, what, err)
	}
	return classifyError(s.path, what, err)
}

// checkOneRow returns err if it is not nil, or else an error if a statement about a run did not change exactly one row.
func checkOneRow(what string, run uuid.UUID, rows int64, err error) error {
	if err != nil || rows == 1 {
		return err
	}
	return fmt.Errorf("%s %s changed %d rows instead of 1", what, run, rows)
}

// checkOneQueueRow does the same as checkOneRow for a statement about a queue.
func checkOneQueueRow(what, queue string, rows int64, err error) error {
	if err != nil || rows == 1 {
		return err
	}
	return fmt.Errorf("%s of queue %q changed %d rows instead of 1", what, queue, rows)
}

// classifyError wraps an SQLite error with the sentinel of package store for its result code.
func classifyError(path, what string, err error) error {
	switch c := resultCode(err); primaryResultCode(c) {
	case sqlite3.SQLITE_BUSY:
		return fmt.Errorf("sqlite: %s: another connection has locked the file %q: %w: %w: %s", what, path, store.ErrUnavailable, err, lockedFix)
	case sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ABORT:
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrUnavailable, err)
	case sqlite3.SQLITE_TOOBIG: // constraint errors are not ErrBadData, because no value can violate a constraint of the schema
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrBadData, err)
	case sqlite3.SQLITE_READONLY:
		if c == sqlite3.SQLITE_READONLY_DBMOVED {
			return fmt.Errorf("sqlite: %s: the file %q was moved or deleted while it was open: put it back and restart this process: %w: %w", what, path, store.ErrRejected, err)
		}
		return fmt.Errorf("sqlite: %s: the file %q cannot be written: %s: %w: %w", what, path, writePermissionFix, store.ErrPermission, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("sqlite: %s: the file %q is not an SQLite database: name another file: %w: %w", what, path, store.ErrRejected, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("sqlite: %s: the file %q is damaged: stop every process that uses it, and restore a backup or try the .recover command of the sqlite3 shell: %w: %w", what, path, store.ErrRejected, err)
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrUnavailable, err)
	}
	if text := err.Error(); resultCode(err) != 0 && (strings.Contains(text, "no such table") || strings.Contains(text, "no such column")) {
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrSchema, err)
	}
	return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrRejected, err)
}
