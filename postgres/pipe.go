package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// errPartial is a pipeline whose COMMIT answered that it was rolled back.
var errPartial = errors.New("the server rolled the transaction back")

// once sends the statements that fill queues to the server as one round trip and one
// transaction, and lets read take their results in order. All of it is durable when
// once returns nil. An error of read ends the reading, not the transaction.
func (s *Store) once(ctx context.Context, pool *pgxpool.Pool, what string, fill func(*pgx.Batch), read func(pgx.BatchResults) error) error {
	conn, err := pool.Acquire(ctx)
	if err != nil {
		return s.wrap(ctx, what, err)
	}
	defer conn.Release()
	var batch pgx.Batch
	_, settled := conn.Conn().PgConn().CustomData()[sessionKey]
	if !settled {
		batch.Queue(beginSQL)
		batch.Queue(s.sql.session, true, int32(0))
	}
	fill(&batch)
	if !settled {
		batch.Queue(commitSQL)
	}
	res := conn.SendBatch(ctx, &batch)
	err = take(res, settled, read)
	// The end of the transaction is only known when the pipeline is: the Sync commits.
	if closing := res.Close(); err == nil {
		err = closing
	}
	if pg := conn.Conn().PgConn(); err != nil && !pg.IsClosed() && pg.TxStatus() != 'I' {
		_, _ = conn.Exec(ctx, rollbackSQL) // if it fails, the pool drops the connection
	}
	return s.wrap(ctx, what, err)
}

func take(res pgx.BatchResults, settled bool, read func(pgx.BatchResults) error) error {
	if !settled {
		for range 2 { // begin, session
			if _, err := res.Exec(); err != nil {
				return err
			}
		}
	}
	if err := read(res); err != nil {
		return err
	}
	if !settled {
		tag, err := res.Exec()
		if err != nil {
			return err
		}
		if tag.String() != commitSQL {
			return errPartial
		}
	}
	return nil
}

// each runs fn for every row of the next result.
func each(res pgx.BatchResults, fn func(pgx.Rows) error) error {
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
