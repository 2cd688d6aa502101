package model_test

import (
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// session is one beside those of the stores, in a database that has locks of rows. What it
// holds is where calls meet: each comes as far as it gets.
type session struct {
	conn   *pgx.Conn
	schema string
	tx     pgx.Tx // while it holds something
}

// hold locks a run, as what asks that of it does, until release.
func (s *session) hold(ctx context.Context, run uuid.UUID, asked store.ControlBits) (err error) {
	return s.make(ctx, "UPDATE durable.run SET control = control | $2 WHERE id = $1", run.String(), int16(asked))
}

// make makes a change that is not committed until release.
func (s *session) make(ctx context.Context, change string, args ...any) (err error) {
	if s.tx, err = s.conn.Begin(ctx); err != nil {
		return err
	}
	if _, err = s.tx.Exec(ctx, strings.ReplaceAll(change, "durable.", s.schema+"."), args...); err != nil {
		_ = s.tx.Rollback(ctx)
	}
	return err
}

// release keeps what was asked, or takes it back.
func (s *session) release(ctx context.Context, keep bool) error {
	if keep {
		return s.tx.Commit(ctx)
	}
	return s.tx.Rollback(ctx)
}

// waiters are the statements of the stores that wait for some lock. One that waits again
// is another one.
func (s *session) waiters(ctx context.Context) ([]string, error) {
	// A transaction goes on to see the activity that it saw first.
	if _, err := s.tx.Exec(ctx, "SELECT pg_stat_clear_snapshot()"); err != nil {
		return nil, err
	}
	rows, err := s.tx.Query(ctx, `
		SELECT pid || ' since ' || query_start FROM pg_stat_activity
		WHERE wait_event_type = 'Lock' AND query LIKE '%' || $1 || '%' ORDER BY 1`, s.schema)
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// locked are the runs that others have locked.
func (s *session) locked(ctx context.Context) ([]string, error) {
	tx, err := s.tx.Begin(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // what was free stays so
	rows, err := tx.Query(ctx, strings.ReplaceAll(`
		WITH free AS MATERIALIZED (SELECT id FROM durable.run FOR UPDATE SKIP LOCKED)
		SELECT id::text FROM durable.run WHERE id NOT IN (SELECT id FROM free) ORDER BY shard, id`, "durable.", s.schema+"."))
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// barrier is a run that is held while two calls are made, so that they meet there; or none.
type barrier struct {
	check *check
	third *session // nil if nothing is held
	gone  chan struct{}
}

// barrier holds a run, or not.
func (c *check) barrier() *barrier {
	b := &barrier{check: c, gone: make(chan struct{})}
	run, held := c.run().UUID, c.dice("held", 2) == 0
	if held && c.bed.third != nil {
		c.Logf("  held: %s", shorten(run))
		b.third = c.bed.third
		if err := b.third.hold(c.ctx, run, 0); err != nil {
			c.Fatalf("hold: %v", err)
		}
	}
	return b
}

// when gives way as soon as both calls wait, for this or for each other, or are stuck, or
// when they have had the time to.
func (b *barrier) when(stuck *atomic.Int32) {
	defer close(b.gone)
	if b.third == nil {
		return
	}
	for until := time.Now().Add(time.Second); stuck.Load() < 2 && time.Now().Before(until); {
		done := int(stuck.Load())
		waiters, err := b.third.waiters(b.check.ctx)
		if err != nil {
			b.check.Fatalf("look who waits: %v", err)
		}
		if done+len(waiters) >= 2 {
			break
		}
	}
	if err := b.third.release(b.check.ctx, false); err != nil {
		b.check.Fatalf("release: %v", err)
	}
}

// heldUp reports whether a call gave up because another transaction held something for
// long. All of it was undone, and it may be made again.
func heldUp(err error) bool {
	return err != nil && strings.Contains(err.Error(), "another transaction holds")
}
