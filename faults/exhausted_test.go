package faults

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/postgres"
)

// greedy is a workflow of one transactional step, which keeps its connection until the
// gate opens, and of two steps around it.
func greedy(db database, l ledger, gate <-chan struct{}) *durable.Workflow[int, int] {
	return durable.Define("greedy", func(c *durable.Ctx, in int) (int, error) {
		plain := func(name string) error {
			return c.Do(name, func(ctx context.Context) error { l.did(ctx, c.ID(), name); return nil })
		}
		if err := plain("before"); err != nil {
			return 0, err
		}
		v, err := postgres.Tx(c, "tx", func(ctx context.Context, tx pgx.Tx) (int, error) {
			l.did(ctx, c.ID(), "tx")
			_, err := tx.Exec(ctx, "INSERT INTO "+pgx.Identifier{db.Schema, "charges"}.Sanitize()+" VALUES ($1)", c.ID())
			select {
			case <-gate:
			case <-ctx.Done():
				return 0, ctx.Err()
			}
			return 2 * in, err
		})
		if err != nil {
			return 0, err
		}
		return v, plain("after")
	})
}

func init() {
	// greedy waits for runs that somebody has lost.
	scenarios["greedy"] = func(ctx context.Context, j *job, s durable.Store) error {
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{greedy(j.DB, j.Ledger, nil), calm(j.Ledger)}, Lease: j.Lease})
		if err != nil {
			return err
		}
		say("working")
		return e.Run(ctx)
	}
}

// Row 15: transactional steps, and transactions of the user's own, hold every connection
// of the pool that was given to postgres.New, for longer than two leases. No lease is lost
// to the worker that waits for it, steps without a transaction go on, and all runs end.
func TestRow15_ExhaustedPool(t *testing.T) {
	t.Parallel()
	const runs, conns, lease = 8, 4, 4 * time.Second // longer than a loaded machine stands still
	db := fresh(t, "postgres")
	cfg, err := pgxpool.ParseConfig(db.Where)
	if err != nil {
		t.Fatal(err)
	}
	cfg.MaxConns = conns
	pool, err := pgxpool.NewWithConfig(bounded(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	s, err := postgres.New(pool, postgres.Schema(db.Schema))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	outside(t, db, "", "CREATE TABLE charges (run text PRIMARY KEY)")
	l, gate := newLedger(t), make(chan struct{})
	w, neighbour := greedy(db, l, gate), calm(l)
	e := engineOn(t, s, durable.Config{Lease: lease, Name: "first"}, w, neighbour)
	runEngine(t, e)
	await(t, "the worker", func() bool { ws, err := e.Workers(bounded(t)); return err == nil && len(ws) == 1 })

	own, err := pool.Begin(bounded(t)) // the user's own
	if err != nil {
		t.Fatal(err)
	}
	var handles []*durable.Run[int]
	for i := range runs {
		handles = append(handles, start(t, e, w, i, durable.ID(fmt.Sprint("r", i))))
	}
	await(t, "the pool to be empty, and all to wait for it", func() bool {
		return pool.Stat().AcquiredConns() == conns && len(l.of(t, "", "before")) == runs
	})
	began := time.Now()
	other := spawn(t, job{Scenario: "greedy", DB: db, Ledger: l, Lease: lease})
	other.expect("working")
	waits, free := make(chan error, 1), 0
	go func() { // another transaction of the user's, which has to wait
		waits <- pgx.BeginFunc(context.Background(), pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(context.Background(), "SELECT 1")
			return err
		})
	}()
	calls := 0
	within(5*lease/2, func() bool { // the pool is looked at all the time, and others work
		if pool.Stat().AcquiredConns() < conns {
			free++
		}
		if time.Since(began) > time.Duration(calls)*lease/2 {
			if v, err := neighbour.Call(bounded(t), e, calls); err != nil || v != 4*calls {
				t.Errorf("a run without transactions: %d, %v", v, err)
			}
			calls++
		}
		return false
	})
	held := time.Since(began)
	workers, err := e.Workers(bounded(t))
	if err != nil || len(workers) != 2 {
		t.Errorf("the other worker is not there: %+v, %v", workers, err)
	}
	if n := len(l.of(t, "", "tx")); n != conns-1 {
		t.Errorf("%d transactional steps have begun on %d connections", n, conns-1)
	}
	if held < 2*lease || free > 0 {
		t.Errorf("the pool was exhausted for %v, with %d looks that found it otherwise", held, free)
	}
	close(gate)
	if err := own.Commit(bounded(t)); err != nil {
		t.Error(err)
	}
	if err := <-waits; err != nil {
		t.Error(err)
	}
	for i, run := range handles {
		if v, err := run.Result(bounded(t)); err != nil || v != 2*i {
			t.Errorf("run %d: %d, %v", i, v, err)
		}
		if at := info(t, e, run.ID()); at.Epoch != 1 {
			t.Errorf("%s was taken over: epoch %d", run.ID(), at.Epoch)
		}
	}
	other.signal(syscall.SIGTERM)
	other.mustEndWell()
	for _, entry := range l.read(t) {
		if entry.Pid != os.Getpid() {
			t.Errorf("%s of %s ran in the other process", entry.Step, entry.Run)
		}
	}
	rows := count(t, db, "charges")
	if n := len(l.of(t, "", "tx")); rows != runs || n != runs {
		t.Errorf("%d rows and %d executions of %d transactions", rows, n, runs)
	}
	t.Logf("connections=%d exhausted_for=%v lease=%v transactions=%d waited_for_a_connection=%d runs_without_meanwhile=%d takeovers=0",
		conns, held.Round(time.Millisecond), lease, runs, pool.Stat().EmptyAcquireCount(), calls)
}

// Row 15: a transaction of the user's that sends a signal, and so holds the row of a run that
// executes, stays open for longer than two leases. The lease cannot be written meanwhile,
// and nobody can claim the run. When the transaction ends, whoever comes first has the run: its own
// worker, or the other one. A step that ends before the other worker has claimed the run is recorded, and
// replayed there; one that ends later is refused, and executed again.
func TestRow15_TransactionHoldsARun(t *testing.T) {
	t.Parallel()
	const lease = 4 * time.Second // longer than a loaded machine stands still
	h := newHoled(t, 0, lease, 0)
	held := hold(h.l, h.file)
	run := start(t, h.client, held, 1, durable.ID("held"))
	h.first.expect("holding")
	h.second = h.worker(t, h.db, 0, 2)
	began := time.Now()
	var expired time.Duration
	err := pgx.BeginFunc(bounded(t), session(t, h.db.Where), func(tx pgx.Tx) error {
		if err := postgres.SignalTx(bounded(t), tx, h.client, "held", "hello", 1); err != nil {
			return err
		}
		realtime.Pass(7*lease/4, "the lease must pass while the transaction holds the row")
		at := info(t, h.client, "held")
		expired = time.Since(at.WakeAt)
		if at.Epoch != 1 || len(h.l.of(t, "held", "hold")) != 1 {
			t.Errorf("it was taken over in spite of the lock: %+v", at)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	took := time.Since(began)
	if expired < lease/2 {
		t.Errorf("the lease was over for %v only", expired)
	}
	realtime.Pass(lease, "the other worker may take it over in this time, or not")
	if err := os.WriteFile(h.file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run.Result(bounded(t))
	epoch, executions := info(t, h.client, "held").Epoch, len(h.l.of(t, "held", "hold"))
	if err != nil || out != fmt.Sprint("attempt ", executions) || executions > epoch || epoch > 2 {
		t.Errorf("%q, %v, by epoch %d in %d executions", out, err, epoch, executions)
	}
	if epoch == 2 {
		h.first.expect("leaving")
	}
	h.finish(t)
	t.Logf("row_held=%v lease=%v lease_over_by=%v takeovers=%d", took.Round(time.Millisecond), lease, expired.Round(time.Millisecond), epoch-1)
}
