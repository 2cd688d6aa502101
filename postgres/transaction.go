package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
)

// standstillTimeout bounds the time between two round trips of one transaction of the engine. They follow each other at once, unless
// the process is stopped or cut off. Without the bound, the other workers would wait for its locks on the lines of a limit or the row
// of a queue for much longer than its lease.
const standstillTimeout = "5s"

// tryTransaction calls work in one transaction of several round trips, with the settings that every transaction
// of the engine has, in which statements wait for a lock for lockTimeout. The first round trip of work also sets that, and in a
// session that has the engine's settings it begins the transaction.
func (s *database) tryTransaction(ctx context.Context, what, lockTimeout string, work func(roundTripFunc) error) (err error) {
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
	begun, first := false, true
	if connStateOf(conn.Conn()) == nil { // a statement that pgx describes is parsed with the engine's search_path
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
	ask := func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		var batch pgx.Batch
		if !begun {
			begun = true
			batch.Queue(beginSQL)
		}
		if first {
			first = false
			batch.Queue(s.statements.setTransactionTimeouts, lockTimeout, standstillTimeout)
		}
		framing := batch.Len()
		fill(&batch)
		return s.wrapError(ctx, what, readAndClose(conn.SendBatch(ctx, &batch), skipResults(framing, read)))
	}
	if err := work(ask); err != nil || !begun {
		return err
	}
	tag, err := conn.Exec(ctx, commitSQL)
	if err = checkCommitted(tag, err); err == nil && takeUnreplicatedCommit(pg) {
		err = errUnreplicated
	}
	if err == nil && !s.isInCurrentEra(conn.Conn()) {
		err = errRewound
	}
	return s.wrapError(ctx, what, err)
}
