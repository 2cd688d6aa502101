package postgres

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errPartial is a pipeline whose COMMIT answered that it was rolled back.
var errPartial = errors.New("the server rolled the transaction back")

// once sends the statements that fill queues to the server as one round trip and one
// transaction, and lets read take their results in order. All of it is durable when
// once returns nil. An error of read ends the reading, not the transaction.
func (s *Store) once(ctx context.Context, pool *pgxpool.Pool, what string, fill func(*pgx.Batch), read func(results) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return s.wrap(ctx, what, err)
	}
	defer conn.Release()
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
		framing.QueuedQueries = append(framing.QueuedQueries, batch.QueuedQueries...)
		framing.Queue(commitSQL)
		err = take(conn.SendBatch(ctx, &framing), framed(read))
	}
	if pg := conn.Conn().PgConn(); err != nil && !pg.IsClosed() && pg.TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, rollbackSQL) // if it fails, the pool drops the connection
	}
	return s.wrap(ctx, what, err)
}

// queueSettings makes the engine's settings for the transaction under way, where a session keeps none.
func (s *Store) queueSettings(batch *pgx.Batch) {
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
func (s *Store) inSteps(ctx context.Context, conn *pgx.Conn, batch *pgx.Batch, read func(results) error) error {
	if _, err := conn.Exec(ctx, beginSQL); err != nil {
		return err
	}
	var settings pgx.Batch
	s.queueSettings(&settings)
	if err := take(conn.SendBatch(ctx, &settings), func(res results) error { return tally(res, 1, nil) }); err != nil {
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

// framed reads what is between the beginning and the commit of a transaction.
func framed(read func(results) error) func(results) error {
	return func(res results) error {
		for range 2 { // begin, session
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
