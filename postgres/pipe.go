package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errAlone is a commit that an operator kept from waiting for its standbys.
var errAlone = errors.New("the commit's wait for a synchronous standby was cancelled")

// errPartial is a pipeline whose COMMIT answered that it was rolled back.
var errPartial = errors.New("the server rolled the transaction back")

// once sends the statements that fill queues to the server as one round trip and one
// transaction, and lets read take their results in order. All of it is durable when
// once returns nil. An error of read ends the reading, not the transaction.
func (s *database) once(ctx context.Context, pool *pgxpool.Pool, what string, fill func(*pgx.Batch), read func(results) error) error {
	conn, err := s.acquire(ctx, pool)
	if err != nil {
		return s.wrap(ctx, what, err)
	}
	defer conn.Release()
	outer := ctx
	ctx, landed := s.hosts.track(ctx, s.hosts.whereIs(conn.Conn()), false)
	var batch pgx.Batch
	fill(&batch)
	if own := sessionOf(conn.Conn()); own != nil {
		err = own.once(ctx, conn.Conn(), &batch, read)
	} else if note := newlySeen(conn.Conn(), &batch); note != nil {
		if err = s.inSteps(ctx, conn.Conn(), &batch, read); err == nil {
			note()
		}
	} else {
		var framing pgx.Batch
		framing.Queue(beginSQL)
		s.queueSettings(&framing)
		first := 2 + s.queueMark(&framing)
		framing.QueuedQueries = append(framing.QueuedQueries, batch.QueuedQueries...)
		framing.Queue(commitSQL)
		err = take(conn.SendBatch(ctx, &framing), framed(first, read))
	}
	if unreplicated(conn.Conn().PgConn()) && err == nil {
		err = errAlone
	}
	if pg := conn.Conn().PgConn(); err != nil && !pg.IsClosed() && pg.TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, rollbackSQL) // if it fails, the pool drops the connection
	}
	if hasState(err, readOnly) {
		_ = conn.Conn().Close(ctx) // of no use any more, also where a pooler stands between
	}
	if err == nil && !s.present(conn.Conn()) {
		err = errRewound
	}
	if landed() && err != nil {
		err = moved(err)
	}
	return s.wrap(outer, what, err)
}

// acquire takes a connection of the pool. One that stands idle on a host that says nothing any more is
// not waited for longer than another host needs to be found.
func (s *database) acquire(ctx context.Context, pool *pgxpool.Pool) (*pgxpool.Conn, error) {
	for {
		waiting, over := s.hosts.track(ctx, "", false)
		conn, err := pool.Acquire(waiting)
		again := over()
		if err != nil && (!again || ctx.Err() != nil) {
			return nil, err
		}
		if err != nil {
			continue
		}
		if s.present(conn.Conn()) {
			return conn, nil
		}
		_ = conn.Conn().Close(waiting) // of a server that was superseded; waiting has ended, so at once
		conn.Release()
	}
}

// queueSettings makes the engine's settings for the transaction under way, where a session keeps none.
func (s *database) queueSettings(batch *pgx.Batch) {
	batch.Queue(s.sql.session, true, int32(0), !s.async)
}

// seenKey is where a connection has the statements that pgx has had described on it.
const seenKey = "durable.seen"

// newlySeen returns a function that notes the statements, if pgx would have some described or
// prepared before it sends the pipeline with them; nil: it knows them, or never does.
func newlySeen(conn *pgx.Conn, batch *pgx.Batch) (note func()) {
	switch conn.Config().DefaultQueryExecMode {
	case pgx.QueryExecModeCacheDescribe, pgx.QueryExecModeCacheStatement:
	default:
		return nil
	}
	data := conn.PgConn().CustomData()
	seen, _ := data[seenKey].(map[string]bool)
	if seen == nil {
		seen = make(map[string]bool)
		data[seenKey] = seen
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

// inSteps makes one transaction of a round trip for each of its parts. So a statement that pgx has described is
// parsed after the settings were made, when names mean what they mean to the engine.
func (s *database) inSteps(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, read func(results) error) error {
	if _, err := conn.Exec(ctx, beginSQL); err != nil {
		return err
	}
	var settings pgx.Batch
	s.queueSettings(&settings)
	marks := s.queueMark(&settings)
	err := take(conn.SendBatch(ctx, &settings), func(res results) error {
		if err := tally(res, 1, nil); err != nil {
			return err
		}
		return tally(res, marks, nil)
	})
	if err != nil {
		return err
	}
	if err := take(conn.SendBatch(ctx, batch), read); err != nil {
		return err
	}
	tag, err := conn.Exec(ctx, commitSQL)
	if err == nil && tag.String() != commitSQL {
		err = errPartial
	}
	return err
}

// results are what the statements of a pipeline answered, in order.
type results interface {
	Exec() (pgconn.CommandTag, error)
	Query() (pgx.Rows, error)
}

// ending is a pipeline whose results can be taken, until it is closed.
type ending interface {
	results
	Close() error
}

// once sends the batch in this session, whose pipelines are transactions by themselves.
func (own *session) once(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, read func(results) error) error {
	if own.traced {
		return take(conn.SendBatch(ctx, batch), read)
	}
	f, err := own.send(ctx, conn, batch)
	if err != nil {
		return err
	}
	if err = take(f, read); stale(err) {
		_ = conn.Close(ctx) // what it has prepared is of no use any more
	}
	return err
}

// take reads the results of a pipeline, and ends it. The end of the transaction is only known
// when the pipeline is: the Sync commits.
func take(res ending, read func(results) error) error {
	err := read(res)
	if closing := res.Close(); err == nil {
		err = closing
	}
	return err
}

// framed reads what is between the beginning of a transaction, which has so many results, and
// its commit.
func framed(first int, read func(results) error) func(results) error {
	return func(res results) error {
		for range first {
			if _, err := res.Exec(); err != nil {
				return err
			}
		}
		if err := read(res); err != nil {
			return err
		}
		tag, err := res.Exec()
		if err == nil && tag.String() != commitSQL {
			err = errPartial
		}
		return err
	}
}

// each runs fn for every row of the next result.
func each(res results, fn func(pgx.Rows) error) error {
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
