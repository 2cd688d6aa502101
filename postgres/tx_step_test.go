package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

func shop(t *testing.T) *database {
	t.Helper()
	s := open(t, "cache_statement")
	if _, err := s.userPool.Exec(t.Context(), "CREATE TABLE payment (cents bigint)"); err != nil {
		t.Fatal(err)
	}
	return s
}

func payments(t *testing.T, s *database) (n int) {
	t.Helper()
	if err := s.userPool.QueryRow(t.Context(), "SELECT count(*) FROM payment").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func execute[O any](t *testing.T, s durable.Store, fn func(*durable.Ctx, int) (O, error)) (O, error) {
	t.Helper()
	w := durable.Define("test", fn)
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return w.Call(ctx, e, 1999, durable.ID("run"))
}

func pay(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, "INSERT INTO payment VALUES (1999)")
	return err
}

func TestTxCommitsWithItsCheckpoint(t *testing.T) {
	s := shop(t)
	for range 2 { // the second call reads the history
		got, err := execute(t, s, func(c *durable.Ctx, _ int) (string, error) {
			return Tx(c, "pay", func(ctx context.Context, tx pgx.Tx) (string, error) { return "paid", pay(ctx, tx) })
		})
		if got != "paid" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if n := payments(t, s); n != 1 {
			t.Fatalf("%d payments, want 1", n)
		}
	}
}

// A serialization failure repeats the function within one attempt.
func TestTxOfAFunctionThatSetsAndResetsItsRole(t *testing.T) {
	s := shop(t)
	role := "tenant_" + strings.ReplaceAll(uuid.NewString(), "-", "")
	for _, sql := range []string{"CREATE ROLE " + role, "GRANT INSERT ON payment TO " + role, "ALTER TABLE payment ADD payer text DEFAULT current_user"} {
		if _, err := s.userPool.Exec(t.Context(), sql); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		_, _ = s.userPool.Exec(context.WithoutCancel(t.Context()), "DROP OWNED BY "+role)
		_, _ = s.userPool.Exec(context.WithoutCancel(t.Context()), "DROP ROLE "+role)
	}()
	_, err := execute(t, s, func(c *durable.Ctx, _ int) (string, error) {
		return Tx(c, "pay", func(ctx context.Context, tx pgx.Tx) (string, error) {
			_, set := tx.Exec(ctx, "SET LOCAL ROLE "+role)
			paid := pay(ctx, tx)
			_, reset := tx.Exec(ctx, "RESET ROLE")
			return "paid", errors.Join(set, paid, reset)
		})
	})
	var payer string
	if err == nil {
		err = s.userPool.QueryRow(t.Context(), "SELECT payer FROM payment").Scan(&payer)
	}
	if err != nil || payer != role {
		t.Errorf("%q paid, and not %q: %v", payer, role, err)
	}
}

func TestTxIsRetried(t *testing.T) {
	s := shop(t)
	calls := 0
	got, err := execute(t, s, func(c *durable.Ctx, _ int) (int, error) {
		return Tx(c, "pay", func(ctx context.Context, tx pgx.Tx) (int, error) {
			if calls++; calls < 4 {
				return 0, errors.Join(pay(ctx, tx), &pgconn.PgError{Code: "40001"})
			}
			return durable.Attempt(ctx), pay(ctx, tx)
		})
	})
	if got != 1 || err != nil || calls != 4 {
		t.Errorf("got %d, %v after %d calls; want attempt 1 after 4", got, err, calls)
	}
	if n := payments(t, s); n != 1 {
		t.Errorf("%d payments, want 1", n)
	}
}

// The commit took effect, but its reply was lost: the transaction does not take effect twice.
func TestTxWithALostReplyToCommit(t *testing.T) {
	s := shop(t)
	calls := 0
	// twice executes the transaction of a step twice, the second time after an error.
	twice := func(after error) durable.StepOption {
		return bridge.TxStep(func(ctx context.Context, st store.Store, w *store.StepWrite, work func(context.Context) error) error {
			if err := executeTxStep(ctx, st, w, work); err != nil {
				return err
			}
			return st.(*database).executeTxStepOnce(ctx, w, func(ctx context.Context, tx pgx.Tx) error { return work(bridge.WithTransaction(ctx, tx)) }, after)
		}).(durable.StepOption)
	}
	lost := twice(store.ErrUnavailable) // as if the reply had not arrived
	blind := twice(nil)                 // without the check before the second try
	got, err := execute(t, s, func(c *durable.Ctx, _ int) (int, error) {
		fn := func(ctx context.Context) (int, error) {
			calls++
			return 7, pay(ctx, bridge.Transaction(ctx).(pgx.Tx))
		}
		a, err := c.Step("a", fn, lost)
		if err != nil {
			return 0, err
		}
		b, err := c.Step("b", fn, blind)
		return a + b, err
	})
	if got != 14 || err != nil || calls != 3 {
		t.Errorf("got %d, %v after %d calls; want 14 after 3", got, err, calls)
	}
	if n := payments(t, s); n != 2 {
		t.Errorf("%d payments, want one of each step", n)
	}
}

func TestStartTx(t *testing.T) {
	s := shop(t)
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	begin := func() pgx.Tx {
		t.Helper()
		tx, err := s.userPool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return tx
	}
	tx := begin()
	if _, err := StartTx(t.Context(), tx, e, w, 21, durable.ID("order")); err != nil {
		t.Fatal(err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := e.Get(t.Context(), "order"); !errors.Is(err, durable.ErrNotFound) {
		t.Errorf("after the rollback: %v, want ErrNotFound", err)
	}
	tx = begin()
	run, err := StartTx(t.Context(), tx, e, w, 21, durable.ID("order"))
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got, err := w.Call(t.Context(), e, 21, durable.ID("order")); got != 42 || err != nil {
		t.Errorf("got %d, %v", got, err)
	}
	if got, err := run.Result(t.Context()); got != 42 || err != nil {
		t.Errorf("by the first handle: %d, %v", got, err)
	}
	tx = begin()
	if _, err := StartTx(t.Context(), tx, e, w, 22, durable.ID("order")); !errors.Is(err, durable.ErrIDConflict) {
		t.Errorf("another input: %v, want ErrIDConflict", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// SignalTx sends a signal with the caller's transaction; the run that waits for it then continues.
func TestSignalTx(t *testing.T) {
	s := shop(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("word") })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	run, err := w.Start(t.Context(), e, 0, durable.ID("order"))
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	for _, word := range []string{"undone", "kept"} {
		err := pgx.BeginFunc(t.Context(), s.userPool, func(tx pgx.Tx) error {
			if err := SignalTx(t.Context(), tx, e, "nobody", "word", word); !errors.Is(err, durable.ErrNotFound) {
				t.Errorf("to nobody: %v, want ErrNotFound", err)
			}
			if err := SignalTx(t.Context(), tx, e, "order", "word", word, durable.SignalKey("once")); err != nil {
				return err
			}
			if word == "undone" {
				return pgx.ErrTxCommitRollback
			}
			return nil
		})
		if (err == nil) != (word == "kept") {
			t.Fatal(word, err)
		}
	}
	if got, err := run.Result(t.Context()); got != "kept" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var state *durable.StateError
	if err := SignalTx(t.Context(), tx, e, "order", "word", "late"); !errors.As(err, &state) {
		t.Errorf("to a run that has ended: %v, want a StateError", err)
	}
	if err := tx.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// StartTx and SignalTx report that a transaction has ended or is nil; they do not report an outage.
func TestStartTxAfterTheTransaction(t *testing.T) {
	s := shop(t)
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(t.Context(), e, 1, durable.ID("live")); err != nil {
		t.Fatal(err)
	}
	over, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := over.Rollback(t.Context()); err != nil {
		t.Fatal(err)
	}
	for name, tx := range map[string]pgx.Tx{"ended": over, "nil": nil} {
		if _, err := StartTx(t.Context(), tx, e, w, 1, durable.ID("x")); !errors.Is(err, durable.ErrInvalidConfig) || errors.Is(err, durable.ErrUnavailable) {
			t.Errorf("StartTx, %s: %v", name, err)
		}
		if err := SignalTx(t.Context(), tx, e, "live", "word", 1); !errors.Is(err, durable.ErrInvalidConfig) || errors.Is(err, durable.ErrUnavailable) {
			t.Errorf("SignalTx, %s: %v", name, err)
		}
	}
}

// An error of a user's statement is the step's failure, unless the database rolled the transaction back.
func TestTxOwnFailures(t *testing.T) {
	for name, sql := range map[string]string{
		"unique violation":        "INSERT INTO customer VALUES (1)",
		"feature not supported":   "SELECT count(*) FROM customer FOR UPDATE",
		"object not in its state": "SELECT currval('unused')",
		"deferred violation":      "INSERT INTO late VALUES (1)",
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			if _, err := s.userPool.Exec(t.Context(), "CREATE TABLE customer (id bigint PRIMARY KEY); INSERT INTO customer VALUES (1); CREATE SEQUENCE unused;"+
				"CREATE TABLE late (id bigint UNIQUE DEFERRABLE INITIALLY DEFERRED); INSERT INTO late VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			var calls atomic.Int32
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			w := durable.Define("test", func(c *durable.Ctx, _ int) (int, error) {
				return Tx(c, "register", func(ctx context.Context, tx pgx.Tx) (int, error) {
					if calls.Add(1) == 5 {
						cancel() // it would be repeated for ever
					}
					_, err := tx.Exec(ctx, sql)
					return 0, err
				})
			})
			e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
			if err != nil {
				t.Fatal(err)
			}
			_, err = w.Call(ctx, e, 1, durable.ID("run"))
			var failed *durable.RunError
			if !errors.As(err, &failed) || calls.Load() != 1 {
				t.Errorf("got %v after %d calls of one attempt, want a RunError after 1", err, calls.Load())
			}
		})
	}
}

// At REPEATABLE READ a renewal of the lease fails the transaction of a slow function, but only once.
func TestTxOutlastsHeartbeats(t *testing.T) {
	s := openAt(t, with(pgtest.URL(t), "default_transaction_isolation=repeatable%20read"))
	var calls atomic.Int32
	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	beat := func() (at time.Time) {
		if err := s.enginePool.QueryRow(t.Context(), "SELECT heartbeat_at FROM durable.worker").Scan(&at); err != nil {
			t.Error(err)
		}
		return at
	}
	w := durable.Define("test", func(c *durable.Ctx, _ int) (int, error) {
		return Tx(c, "long", func(ctx context.Context, tx pgx.Tx) (int, error) {
			if calls.Add(1) == 4 {
				cancel() // it would be repeated for ever
			}
			if _, err := tx.Exec(ctx, "SELECT count(*) FROM durable.worker"); err != nil {
				return 0, err
			}
			for range 2 { // lasts two heartbeats, at least one of which renews the lease
				for last := beat(); ctx.Err() == nil && beat().Equal(last); {
				}
			}
			return 7, nil
		})
	})
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}, Lease: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	got, err := w.Call(ctx, e, 1, durable.ID("run"))
	if got != 7 || err != nil {
		t.Errorf("got %d, %v after %d calls of one attempt; want 7", got, err, calls.Load())
	}
}

// If a user's timeout ends the transaction each time, it becomes the step's failure.
func TestTxThatAlwaysTimesOut(t *testing.T) {
	calls := 0
	_, err := execute(t, shop(t), func(c *durable.Ctx, _ int) (int, error) {
		return Tx(c, "slow", func(ctx context.Context, tx pgx.Tx) (int, error) {
			calls++
			_, err := tx.Exec(ctx, "SET LOCAL statement_timeout = '1ms'; SELECT pg_sleep(60)")
			return 0, err
		})
	})
	var failed *durable.RunError
	if !errors.As(err, &failed) || failed.Step != "slow" || calls != maxAmbiguousTries {
		t.Errorf("got %v after %d transactions, want a failure of the step after %d", err, calls, maxAmbiguousTries)
	}
}

// An error of the function itself is the step's failure, whatever it wraps.
func TestTxOwnUnavailable(t *testing.T) {
	calls := 0
	_, err := execute(t, shop(t), func(c *durable.Ctx, _ int) (int, error) {
		return Tx(c, "pay", func(context.Context, pgx.Tx) (int, error) {
			if calls++; calls > 3 {
				return 7, nil // it would be repeated for ever
			}
			return 0, fmt.Errorf("the other shop: %w", durable.ErrUnavailable)
		})
	})
	if !errors.Is(err, durable.ErrUnavailable) || calls != 1 {
		t.Errorf("got %v after %d calls, want the function's own error after one", err, calls)
	}
}
