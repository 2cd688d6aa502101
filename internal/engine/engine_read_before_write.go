package engine

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// readBeforeWrite calls read, which reads what a write needs, and retries it for Config.Patience, because the read is a part of the write
// for its caller. Errors of the database become a *WriteError, which says that nothing was written; other errors of read, such as
// ErrNotFound, are returned as they are.
func (e *Engine) readBeforeWrite(ctx context.Context, by writeOptions, read func() error) error {
	var other error
	err := e.retryUntilPatienceEnds(ctx, by, func() error {
		other = read()
		if isDatabaseError(other) {
			return other
		}
		return nil
	})
	if _, is := errors.AsType[*WriteError](err); err == nil || is {
		return cmp.Or(err, other)
	}
	return &WriteError{Err: err}
}

// isDatabaseError reports whether err says that the database is not available or rejects a statement.
func isDatabaseError(err error) bool {
	return errors.Is(err, store.ErrUnavailable) || errors.Is(err, store.ErrRejected) || errors.Is(err, store.ErrLocked) || errors.Is(err, store.ErrSchema)
}

// readClockBeforeWrite reads the database's clock if this engine has not read it yet, and retries the read as readBeforeWrite does.
func (e *Engine) readClockBeforeWrite(ctx context.Context, by writeOptions) error {
	return e.readBeforeWrite(ctx, by, func() error { return e.clock.EnsureReading(ctx, e.store) })
}

// NowBeforeWrite returns the database's time for a write of a user; see ReadBeforeWrite.
func (e *Engine) NowBeforeWrite(ctx context.Context) (time.Time, error) {
	if err := e.readClockBeforeWrite(ctx, userCaller); err != nil {
		return time.Time{}, err
	}
	return e.clock.Now(), nil
}

// ReadBeforeWrite calls read, which reads what a write of a user needs, and retries it for Config.Patience. ReadBeforeWrite returns a
// *WriteError if the database is not available or rejects the query, and other errors of read as they are.
func (e *Engine) ReadBeforeWrite(ctx context.Context, read func() error) error {
	return e.readBeforeWrite(ctx, userCaller, read)
}

// RunToChange returns the run that ref names, without its payloads, for a write of a user; see ReadBeforeWrite.
func (e *Engine) RunToChange(ctx context.Context, ref string) (*store.Run, error) {
	return e.runToChange(ctx, userCaller, ref)
}

func (e *Engine) runToChange(ctx context.Context, by writeOptions, ref string) (row *store.Run, _ error) {
	err := e.readBeforeWrite(ctx, by, func() (err error) {
		row, err = e.GetWithoutPayloads(ctx, ref)
		return err
	})
	return row, err
}
