package postgres

// The store sends the statements of a flush as one pipeline that ends with one Sync. On a direct connection a pipeline is one transaction,
// and the settings that the statements need (set_engine_session_settings.sql) are set at the beginning of the session. Behind a pooler,
// settings do not last for a session. There, and on a Citus cluster (citus.go), the pipeline contains BEGIN, the settings for the
// transaction, and COMMIT, and still takes one round trip. The store detects a pooler when it connects: a pooler announces a process ID
// that is not the server's.
//
// Every statement is in a .sql file of the folder sql, with a comment on what it does and why it has its shape. The head of the file
// tells package lint which kind a statement is, and a test compares that with the executed statements.

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/store"
)

// errUnreplicated is the error of a commit that did not wait for its standbys, because an operator cancelled the
// wait.
var errUnreplicated = errors.New("the commit's wait for a synchronous standby was cancelled")

// errRolledBack is the error of a pipeline whose COMMIT rolled back.
var errRolledBack = errors.New("the server rolled the transaction back")

// runBatch sends the statements that fill queues to the server as one transaction, usually in one round trip,
// and read takes their results in order. If runBatch returns nil, everything is durable. An error of read
// ends the reading, but does not roll back the transaction.
func (s *database) runBatch(ctx context.Context, pool *pgxpool.Pool, what string, fill func(*pgx.Batch), read func(statementResults) error) error {
	conn, err := s.acquireConn(ctx, pool)
	if err != nil {
		return s.wrapError(ctx, what, err)
	}
	defer s.releaseConn(pool, conn)
	return s.runBatchOnConn(ctx, conn, what, fill, read)
}

// runBatchOnConn is runBatch on a connection that the caller has acquired.
func (s *database) runBatchOnConn(ctx context.Context, conn *pgxpool.Conn, what string, fill func(*pgx.Batch), read func(statementResults) error) error {
	outer := ctx
	ctx, landed := s.hosts.trackCall(ctx, s.hosts.addressOf(conn.Conn()), false)
	var batch pgx.Batch
	fill(&batch)
	var err error
	if own := connStateOf(conn.Conn()); own != nil && own.sendsBeginCommit {
		var framing pgx.Batch
		framing.Queue(beginSQL)
		framing.QueuedQueries = append(framing.QueuedQueries, batch.QueuedQueries...)
		framing.Queue(commitSQL)
		err = own.runBatch(ctx, conn.Conn(), &framing, readBetweenBeginAndCommit(1, read))
	} else if own != nil {
		err = own.runBatch(ctx, conn.Conn(), &batch, read)
	} else if note := rememberDescribedStatements(conn.Conn(), &batch); note != nil {
		if err = s.runInSeveralRoundTrips(ctx, conn.Conn(), &batch, read); err == nil {
			note()
		}
	} else {
		var framing pgx.Batch
		framing.Queue(beginSQL)
		s.addEngineSettings(&framing)
		first := 2 + s.addSharedWriterLock(&framing)
		framing.QueuedQueries = append(framing.QueuedQueries, batch.QueuedQueries...)
		framing.Queue(commitSQL)
		err = readAndClose(conn.SendBatch(ctx, &framing), readBetweenBeginAndCommit(first, read))
	}
	if wasCommitUnreplicated(conn.Conn().PgConn()) && err == nil {
		err = errUnreplicated
	}
	if pg := conn.Conn().PgConn(); err != nil && !pg.IsClosed() && pg.TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, rollbackSQL) // if it fails, the pool drops the connection
	}
	if hasSQLState(err, sqlStateReadOnly) {
		_ = conn.Conn().Close(ctx) // this server takes no writes; a pooler may lead elsewhere next time
	}
	if err == nil && !s.wasOpenedSinceRewind(conn.Conn()) {
		err = errRewound
	}
	if landed() && err != nil {
		err = hostChangedError(err)
	}
	return s.wrapError(outer, what, err)
}

// connGateOf returns the gate of a pool, or nil.
func (s *database) connGateOf(pool *pgxpool.Pool) *connGate {
	if pool == s.enginePool {
		return s.engineGate
	}
	return nil
}

// releaseConn returns a connection of acquireConn to its pool.
func (s *database) releaseConn(pool *pgxpool.Pool, conn *pgxpool.Conn) {
	gate := s.connGateOf(pool)
	if gate.takeSurplusConn() {
		ctx, cancel := context.WithTimeout(context.Background(), closeTimeout)
		_ = conn.Conn().Close(ctx) // sends a last message; the pool drops the connection
		cancel()
	}
	conn.Release()
	gate.releaseSlot()
	s.endCall(pool)
}

// acquireConn takes a connection of the pool. While the server has no connection left for the pool, acquireConn waits for one of the
// pool's open connections, if there are any.
func (s *database) acquireConn(ctx context.Context, pool *pgxpool.Pool) (conn *pgxpool.Conn, err error) {
	if err := s.beginCall(pool); err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			s.endCall(pool)
		}
	}()
	gate := s.connGateOf(pool)
	for {
		if err := gate.acquireSlot(ctx); err != nil {
			return nil, err
		}
		conn, err = s.acquireFromPool(ctx, pool)
		if err == nil {
			return conn, nil
		}
		gate.releaseSlot()
		open := openConnCount(pool)
		if gate == nil || !hasSQLState(err, sqlStateTooManyConns) || open == 0 {
			return nil, err
		}
		gate.capBoundAtOpenConns(open)
		s.tooManyConnsWarning.recordRefusal("for a minute calls share the connections that there are")
	}
}

// checkEngineConnOnFirstUse calls checkConnOnFirstUse for a connection of the engine. After an error the connection is closed.
func (s *database) checkEngineConnOnFirstUse(ctx context.Context, pool *pgxpool.Pool, conn *pgxpool.Conn) error {
	if !s.isFromOpenSchema || pool == s.userPool {
		return nil
	}
	err := s.checkConnOnFirstUse(ctx, conn.Conn())
	if err != nil {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_ = conn.Conn().Close(ended) // returns at once
		conn.Release()
	}
	return err
}

// beginCall lets Close wait for a call that uses the engine's connections, until endCall. It returns an error if the store is closed.
func (s *database) beginCall(pool *pgxpool.Pool) error {
	if pool == s.userPool {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return store.ErrClosed
	}
	s.activeCalls.Add(1)
	return nil
}

func (s *database) endCall(pool *pgxpool.Pool) {
	if pool != s.userPool {
		s.activeCalls.Done()
	}
}

// acquireFromPool takes a connection of the pool. It does not wait for a host that hangs for longer than the
// search for another host takes.
func (s *database) acquireFromPool(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	for retried := false; ; {
		waiting, over := s.hosts.trackCall(ctx, "", false)
		conn, err := pool.Acquire(waiting)
		again := over()
		if err != nil && !again && !retried {
			again, retried = s.hosts.discardSearchResult(err), true
		}
		if err != nil && (!again || ctx.Err() != nil) {
			return nil, err
		}
		if err != nil {
			continue
		}
		if err := s.checkEngineConnOnFirstUse(ctx, pool, conn); err != nil {
			return nil, err
		}
		if s.wasOpenedSinceRewind(conn.Conn()) {
			return conn, nil
		}
		_ = conn.Conn().Close(waiting) // another host takes writes now; Close returns at once, because waiting has ended
		conn.Release()
	}
}

// addEngineSettings adds the engine's settings for one transaction, for connections whose session cannot keep
// them.
func (s *database) addEngineSettings(batch *pgx.Batch) {
	batch.Queue(s.statements.setEngineSessionSettings, true, int32(0), !s.allowAsyncCommit, s.citus.planCacheMode())
}

// describedStatementsKey is the key under which a connection keeps the statements that pgx has described on it.
const describedStatementsKey = "durable.seen"

// rememberDescribedStatements returns a function that records the statements of a batch as seen, if pgx would describe or
// prepare some of them before it sends the pipeline. It returns nil if pgx has seen all of them, or
// if pgx describes no statements in this mode.
func rememberDescribedStatements(conn *pgx.Conn, batch *pgx.Batch) (note func()) {
	switch conn.Config().DefaultQueryExecMode {
	case pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeCacheStatement:
	default:
		return nil
	}
	data := conn.PgConn().CustomData()
	seen, _ := data[describedStatementsKey].(map[string]bool)
	if seen == nil {
		seen = make(map[string]bool)
		data[describedStatementsKey] = seen
	}
	if !slices.ContainsFunc(batch.QueuedQueries, func(q *pgx.QueuedQuery) bool { return !seen[q.SQL] }) {
		return nil
	}
	return func() {
		for _, q := range batch.QueuedQueries {
			seen[q.SQL] = true
		}
	}
}

// runInSeveralRoundTrips executes one transaction with a round trip for each of its parts. So if pgx describes a statement, the
// server parses it after the settings, with the engine's search_path.
func (s *database) runInSeveralRoundTrips(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, read func(statementResults) error) error {
	if _, err := conn.Exec(ctx, beginSQL); err != nil {
		return err
	}
	var settings pgx.Batch
	s.addEngineSettings(&settings)
	marks := s.addSharedWriterLock(&settings)
	err := readAndClose(conn.SendBatch(ctx, &settings), func(res statementResults) error {
		if err := readRowCount(res, 1, nil); err != nil {
			return err
		}
		return readRowCount(res, marks, nil)
	})
	if err != nil {
		return err
	}
	if err := readAndClose(conn.SendBatch(ctx, batch), read); err != nil {
		return err
	}
	return checkCommitted(conn.Exec(ctx, commitSQL))
}

// checkCommitted returns the error of COMMIT, or errRolledBack if the transaction was rolled back instead.
func checkCommitted(tag pgconn.CommandTag, err error) error {
	if err == nil && tag.String() != commitSQL {
		return errRolledBack
	}
	return err
}

// statementResults are the results of a pipeline's statements, in order.
type statementResults interface {
	Exec() (pgconn.CommandTag, error)
	Query() (pgx.Rows, error)
}

// closableResults is a pipeline whose results can be read until it is closed.
type closableResults interface {
	statementResults
	Close() error
}

// runBatch sends a batch in this session, whose pipelines are transactions without BEGIN and COMMIT.
func (own *connState) runBatch(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, read func(statementResults) error) error {
	if own.traced {
		return readAndClose(conn.SendBatch(ctx, batch), read)
	}
	f, err := own.sendBatch(ctx, conn, batch)
	if err != nil {
		return err
	}
	if err = readAndClose(f, read); isStaleStatement(err) {
		_ = conn.Close(ctx) // its prepared statements are invalid
	}
	return err
}

// readAndClose reads the results of a pipeline and closes it. Only Close returns the outcome of the transaction,
// because the Sync commits it.
func readAndClose(res closableResults, read func(statementResults) error) error {
	err := read(res)
	if closing := res.Close(); err == nil {
		err = closing
	}
	return err
}

// readBetweenBeginAndCommit returns a function that reads the results of a whole transaction: the results of BEGIN and the settings,
// of which there are first, then the results for read, then the result of COMMIT.
func readBetweenBeginAndCommit(first int, read func(statementResults) error) func(statementResults) error {
	return skipResults(first, func(res statementResults) error {
		if err := read(res); err != nil {
			return err
		}
		return checkCommitted(res.Exec())
	})
}

// skipResults returns a function that reads the results of the first statements, and then calls read.
func skipResults(first int, read func(statementResults) error) func(statementResults) error {
	return func(res statementResults) error {
		for range first {
			if _, err := res.Exec(); err != nil {
				return err
			}
		}
		return read(res)
	}
}

// eachRow calls fn for every row of the next result.
func eachRow(res statementResults, fn func(pgx.Rows) error) error {
	rows, err := res.Query()
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := fn(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}
