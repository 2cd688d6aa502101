package faults

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// deadlocks is how many the database has counted. A session tells of its own when it ends,
// so the store is closed before.
func deadlocks(t *testing.T, conn *pgx.Conn, s durable.Store) int64 {
	t.Helper()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	await(t, "the sessions to end", func() bool {
		return sql(t, conn, "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name <> 'test'")[0][0] == int64(0)
	})
	return sql(t, conn, "SELECT deadlocks FROM pg_stat_database WHERE datname = current_database()")[0][0].(int64)
}

// Row 16: transactional steps of two runs lock the row of their own run, and then the
// other's: one of each pair is undone, and made again. Each takes effect once.
func TestRow16_DeadlockedTransactions(t *testing.T) {
	t.Parallel()
	const pairs = 4
	url := pgtest.URL(t)
	db := database{Kind: "postgres", Where: with(url, "pool_max_conns=8&deadlock_timeout=40ms"), Schema: "durable"}
	admin := session(t, url)
	sql(t, admin, "CREATE TABLE charges (run text)")
	l, seen := newLedger(t), new(codes)
	var met [pairs]atomic.Int32
	w := durable.Define("locker", func(c *durable.Ctx, in int) (int, error) {
		first := true
		return postgres.Tx(c, "tx", func(ctx context.Context, tx pgx.Tx) (int, error) {
			l.did(ctx, c.ID(), "tx")
			lock := func(id string) error {
				_, err := tx.Exec(ctx, "SELECT FROM durable.run WHERE name = $1 FOR UPDATE", id)
				return seen.note(err)
			}
			if _, err := tx.Exec(ctx, "INSERT INTO charges VALUES ($1)", c.ID()); err != nil {
				return 0, err
			}
			if err := lock(c.ID()); err != nil {
				return 0, err
			}
			if first { // both hold their own when they ask for the other's
				met[in/2].Add(1)
				within(patience, func() bool { return met[in/2].Load() >= 2 }) // more if a run has lost its lease, and is executed again
			}
			first = false
			return in, lock(fmt.Sprint("r", in^1))
		})
	})
	s := db.openIn(t)
	e := engineOn(t, s, durable.Config{Lease: 2 * time.Second}, w)
	stop := runEngine(t, e)
	var handles []*durable.Run[int]
	for i := range 2 * pairs {
		handles = append(handles, start(t, e, w, i, durable.ID(fmt.Sprint("r", i))))
	}
	for i, run := range handles {
		if v, err := run.Result(bounded(t)); err != nil || v != i {
			t.Errorf("run %d: %d, %v", i, v, err)
		}
	}
	executed := len(l.of(t, "", "tx"))
	rows := sql(t, admin, "SELECT count(*), count(DISTINCT run) FROM charges")[0]
	if rows[0] != int64(2*pairs) || rows[1] != int64(2*pairs) {
		t.Errorf("%v rows of %v runs, want %d", rows[0], rows[1], 2*pairs)
	}
	stop()
	counted := deadlocks(t, admin, s)
	if seen.count("40P01") < pairs || counted < pairs || executed < 3*pairs {
		t.Errorf("%d executions, with %v, and %d deadlocks", executed, seen.seen, counted)
	}
	t.Logf("transactions=%d executions=%d deadlocks=%d rows=%v", 2*pairs, executed, counted, rows[0])
}

// Row 16: transactions of the user's own lock the rows of runs in the opposite order of the
// engine's flushes. The flush that is undone is written again, and nothing is lost or
// written twice.
func TestRow16_DeadlockedFlushes(t *testing.T) {
	t.Parallel()
	const runs, wanted = 24, 3
	url := pgtest.URL(t)
	// It is the engine's session that looks for a deadlock first, and is undone.
	db := database{Kind: "postgres", Where: with(url, "deadlock_timeout=30ms"), Schema: "durable"}
	admin := session(t, url)
	var undone atomic.Int32
	f := &faulty{Store: db.openIn(t), failedCommit: func(err error) {
		if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "40P01" {
			undone.Add(1)
		}
	}}
	w := durable.Define("adding", func(c *durable.Ctx, _ int) (sum int, err error) {
		for i := 0; ; i++ {
			n, err := c.Receive[int](fmt.Sprint("add ", i), durable.OnSignal("add"))
			if err != nil || n == 0 {
				return sum, err
			}
			sum += n
		}
	})
	e := engineOn(t, f, durable.Config{Lease: 5 * time.Second}, w)
	stop := runEngine(t, e)
	var handles []*durable.Run[int]
	for i := range runs {
		handles = append(handles, start(t, e, w, i, durable.ID(fmt.Sprint("r", i))))
	}
	rows := sql(t, admin, "SELECT id FROM durable.run ORDER BY shard DESC, id DESC") // flushes ascend
	send := func(n int) {
		var all sync.WaitGroup
		for i := range runs {
			all.Go(func() {
				if err := e.Signal(bounded(t), fmt.Sprint("r", i), "add", n); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	}
	watcher := session(t, url)
	rounds := 0
	for ; undone.Load() < wanted && rounds < 30; rounds++ {
		var sent sync.WaitGroup
		err := pgx.BeginFunc(bounded(t), admin, func(tx pgx.Tx) error {
			for i, row := range rows {
				if i == runs/2 { // flushes lock the other half, and come to these
					sent.Go(func() { send(1) })
					await(t, "a flush that waits", func() bool {
						return len(sql(t, watcher, "SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'")) > 0
					})
				}
				if _, err := tx.Exec(bounded(t), "SELECT FROM durable.run WHERE id = $1 FOR UPDATE", row[0]); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal("the user's transaction: ", err)
		}
		sent.Wait()
	}
	send(0)
	for _, run := range handles {
		if v, err := run.Result(bounded(t)); err != nil || v != rounds {
			t.Errorf("%s: %d, %v; want %d", run.ID(), v, err, rounds)
		}
	}
	signals := sql(t, admin, "SELECT count(*) FROM durable.signal")[0][0]
	if signals != int64(runs*(rounds+1)) {
		t.Errorf("%v signals are kept, want %d", signals, runs*(rounds+1))
	}
	stop()
	counted := deadlocks(t, admin, f)
	if undone.Load() < wanted || counted < wanted {
		t.Errorf("%d flushes were undone by %d deadlocks, want %d", undone.Load(), counted, wanted)
	}
	t.Logf("runs=%d signals=%v users_transactions=%d deadlocks=%d flushes_undone=%d lost=0 doubled=0", runs, signals, rounds, counted, undone.Load())
}
