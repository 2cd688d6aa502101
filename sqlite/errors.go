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

// OpenError says why a file cannot be used as a store, and what to do about it.
// errors.As finds it in what Open answers; for a schema that does not fit, Open
// answers durable.ErrSchema instead.
type OpenError struct {
	Path    string // as it was given
	Problem string
	Fix     string
	Err     error // what the system or SQLite said, if anything
}

// Error implements error.
func (e *OpenError) Error() string {
	text := fmt.Sprintf("sqlite: cannot open %q: %s", e.Path, e.Problem)
	if e.Err != nil {
		text += " (" + e.Err.Error() + ")"
	}
	return text + ": " + e.Fix
}

// Unwrap implements the convention of package errors.
func (e *OpenError) Unwrap() error { return e.Err }

// resultCode is SQLite's extended result code in err, 0 if it has none.
func resultCode(err error) int {
	var e *sqlite.Error
	if errors.As(err, &e) {
		return e.Code()
	}
	return 0
}

func primaryCode(code int) int { return code & 0xff }

func isBusy(err error) bool {
	c := primaryCode(resultCode(err))
	return c == sqlite3.SQLITE_BUSY || c == sqlite3.SQLITE_LOCKED
}

// isNoTransaction recognises the answer to a ROLLBACK after SQLite has rolled back
// by itself, as it does when the disk is full. It has no code of its own.
func isNoTransaction(err error) bool {
	return primaryCode(resultCode(err)) == sqlite3.SQLITE_ERROR && strings.Contains(err.Error(), "no transaction is active")
}

// wrap turns what went wrong in an operation into the kinds of error that package
// store names. The context's own errors pass as they are.
func (s *Store) wrap(what string, err error) error {
	var refused *OpenError
	var moved *MovedError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &moved):
		return err
	case errors.As(err, &refused):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, store.ErrUnavailable):
		return err
	case s.closed.Load():
		return fmt.Errorf("sqlite: %s: %w", what, store.ErrClosed)
	case errors.Is(err, store.ErrBadData), errors.Is(err, store.ErrRejected):
		return fmt.Errorf("sqlite: %s: %w", what, err)
	}
	if moved := s.files.check(allFiles); moved != nil { // which explains whatever went wrong
		return fmt.Errorf("%w (%s: %w)", moved, what, err)
	}
	return classifyError(s.path, what, err)
}

// checkOneRow says that a statement about a run did not change the one row it was for, or
// passes what kept it from that.
func checkOneRow(what string, run uuid.UUID, rows int64, err error) error {
	if err != nil || rows == 1 {
		return err
	}
	return fmt.Errorf("%s %s changed %d rows instead of 1", what, run, rows)
}

func classifyError(path, what string, err error) error {
	switch c := resultCode(err); primaryCode(c) {
	case sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_FULL,
		sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_NOMEM, sqlite3.SQLITE_PROTOCOL,
		sqlite3.SQLITE_SCHEMA, sqlite3.SQLITE_ABORT:
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrUnavailable, err)
	case sqlite3.SQLITE_TOOBIG: // constraints say nothing of a value: no value that gets here can break one of ours
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrBadData, err)
	case sqlite3.SQLITE_READONLY:
		if c == sqlite3.SQLITE_READONLY_DBMOVED {
			return fmt.Errorf("sqlite: %s: the file %q was moved or deleted while it was open: put it back and restart this process: %w: %w", what, path, store.ErrRejected, err)
		}
		return fmt.Errorf("sqlite: %s: the file %q cannot be written: %s: %w: %w", what, path, givePermission, store.ErrPermission, err)
	case sqlite3.SQLITE_NOTADB:
		return fmt.Errorf("sqlite: %s: the file %q is not an SQLite database: name another file: %w: %w", what, path, store.ErrRejected, err)
	case sqlite3.SQLITE_CORRUPT:
		return fmt.Errorf("sqlite: %s: the file %q is damaged: stop every process that uses it and restore a backup, or try the .recover command of the sqlite3 shell: %w: %w", what, path, store.ErrRejected, err)
	}
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrUnavailable, err)
	}
	if text := err.Error(); resultCode(err) != 0 && (strings.Contains(text, "no such table") || strings.Contains(text, "no such column")) {
		return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrSchema, err)
	}
	return fmt.Errorf("sqlite: %s: %w: %w", what, store.ErrRejected, err)
}
