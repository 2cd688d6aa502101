package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// idleInTransactionTimeout bounds the time between two round trips of one transaction of the engine. The round trips follow each other at
// once, unless the process is stopped or loses the network. Without the bound, other workers would wait for its locks on limit keys or on
// the row of a queue for much longer than its lease.
const idleInTransactionTimeout = "5s"

// tryTransaction calls work in one transaction of several round trips, with the settings that every transaction
// of the engine has, in which statements wait for a lock for lockTimeout. The first round trip of work also sets lockTimeout. In a
// session that has the engine's settings, it also begins the transaction.
func (s *database) tryTransaction(ctx context.Context, what, lockTimeout string, work func(roundTripFunc) error) error {
	return s.tryTransactionWithOptions(ctx, what, transactionOptions{lockTimeout: lockTimeout}, func(ask, _ roundTripFunc) error { return work(ask) })
}

// transactionOptions are the settings of one transaction of several round trips, in addition to the settings of every transaction of
// the engine.
type transactionOptions struct {
	lockTimeout string

	// isAsync means that the commit does not wait for the disk. A crash of the server may undo such a transaction, but only together
	// with all later commits.
	isAsync bool
}

// tryTransactionWithOptions does the same as tryTransaction, with options. The function work may send its last round trip with askLast, which
// also commits the transaction. If no statement fails, the results that work reads then are committed.
func (s *database) tryTransactionWithOptions(ctx context.Context, what string, opts transactionOptions, work func(ask, askLast roundTripFunc) error) (err error) {
	conn, err := s.acquireConn(ctx, s.enginePool)
	if err != nil {
		return s.wrapError(ctx, what, err)
	}
	defer s.releaseConn(s.enginePool, conn)
	outer := ctx
	ctx, landed := s.hosts.trackCall(ctx, s.hosts.addressOf(conn.Conn()), false)
	defer func() {
		if landed() && err != nil {
			err = s.wrapError(outer, what, hostChangedError(err))
		}
	}()
	pg := conn.Conn().PgConn()
	defer func() {
		// This also runs when ctx has ended. After a commit there is nothing to do.
		if pg.IsClosed() || pg.TxStatus() == 'I' {
			return
		}
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.Exec(bye, rollbackSQL) // if it fails, the pool drops the connection
	}()
	begun, first, committed := false, true, false
	if connStateOf(conn.Conn()) == nil { // so that a statement that pgx describes is parsed with the engine's search_path
		if _, err := conn.Exec(ctx, beginSQL); err != nil {
			return s.wrapError(ctx, what, err)
		}
		begun = true
		var settings pgx.Batch
		s.addEngineSettings(&settings)
		err := readAndClose(conn.SendBatch(ctx, &settings), func(res statementResults) error { return readRowCount(res, 1, nil) })
		if err != nil {
			return s.wrapError(ctx, what, err)
		}
	}
	send := func(what string, last bool, fill func(*pgx.Batch), read func(statementResults) error) error {
		var batch pgx.Batch
		if !begun {
			begun = true
			batch.Queue(beginSQL)
		}
		if first {
			first = false
			if opts.isAsync {
				batch.Queue(s.statements.setAsyncTransactionTimeouts, opts.lockTimeout, idleInTransactionTimeout)
			} else {
				batch.Queue(s.statements.setTransactionTimeouts, opts.lockTimeout, idleInTransactionTimeout)
			}
		}
		framing := batch.Len()
		fill(&batch)
		if last {
			batch.Queue(commitSQL)
			part := read
			read = func(res statementResults) error {
				if err := part(res); err != nil {
					return err
				}
				err := checkCommitted(res.Exec())
				committed = err == nil
				return err
			}
		}
		return s.wrapError(ctx, what, readAndClose(conn.SendBatch(ctx, &batch), skipResults(framing, read)))
	}
	ask := func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		return send(what, false, fill, read)
	}
	askLast := func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		return send(what, true, fill, read)
	}
	if err := work(ask, askLast); err != nil || !begun {
		return err
	}
	if !committed {
		err = checkCommitted(conn.Exec(ctx, commitSQL))
	}
	if err == nil && wasCommitUnreplicated(pg) {
		err = errUnreplicated
	}
	if err == nil && !s.wasOpenedSinceRewind(conn.Conn()) {
		err = errRewound
	}
	return s.wrapError(ctx, what, err)
}
