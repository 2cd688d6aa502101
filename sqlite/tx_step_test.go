package sqlite_test

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

func shop(t *testing.T) *sqlite.Store {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "shop.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	if _, err := s.Writer().ExecContext(t.Context(), "CREATE TABLE payment (cents INTEGER)"); err != nil {
		t.Fatal(err)
	}
	return s
}

func payments(t *testing.T, s *sqlite.Store) (n int) {
	t.Helper()
	if err := s.Writer().QueryRowContext(t.Context(), "SELECT count(*) FROM payment").Scan(&n); err != nil {
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

func pay(ctx context.Context, tx *sql.Tx, cents int) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO payment VALUES (?)", cents)
	return err
}

func TestTxCommitsWithItsCheckpoint(t *testing.T) {
	s := shop(t)
	for range 2 { // the second time from history
		got, err := execute(t, s, func(c *durable.Ctx, cents int) (string, error) {
			return sqlite.Tx(c, "pay", func(ctx context.Context, tx *sql.Tx) (string, error) {
				return "paid", pay(ctx, tx, cents)
			})
		})
		if got != "paid" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if n := payments(t, s); n != 1 {
			t.Fatalf("%d payments, want 1", n)
		}
	}
}

func TestTxRollsBackWithAFailure(t *testing.T) {
	for name, fn := range map[string]func(context.Context, *sql.Tx) (any, error){
		"error": func(ctx context.Context, tx *sql.Tx) (any, error) {
			return nil, errors.Join(errors.New("no"), pay(ctx, tx, 1))
		},
		"panic":       func(ctx context.Context, tx *sql.Tx) (any, error) { panic(pay(ctx, tx, 1)) },
		"unencodable": func(ctx context.Context, tx *sql.Tx) (any, error) { return make(chan int), pay(ctx, tx, 1) },
		"timeout": func(ctx context.Context, tx *sql.Tx) (any, error) {
			err := pay(ctx, tx, 1)
			<-ctx.Done()
			return nil, errors.Join(err, ctx.Err())
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			_, err := execute(t, s, func(c *durable.Ctx, _ int) (any, error) {
				return sqlite.Tx(c, "pay", fn, durable.AttemptTimeout(time.Second))
			})
			var failed *durable.RunError
			if !errors.As(err, &failed) {
				t.Errorf("got %v, want a RunError", err)
			}
			if n := payments(t, s); n != 0 {
				t.Errorf("%d payments, want none", n)
			}
		})
	}
}

func TestTxRetries(t *testing.T) {
	s := shop(t)
	got, err := execute(t, s, func(c *durable.Ctx, cents int) (int, error) {
		return sqlite.Tx(c, "pay", func(ctx context.Context, tx *sql.Tx) (int, error) {
			if err := pay(ctx, tx, cents); err != nil {
				return 0, err
			}
			if durable.Attempt(ctx) < 3 {
				return 0, errors.New("not yet")
			}
			return durable.Attempt(ctx), nil
		}, durable.Retry(durable.Fixed(time.Millisecond, 5)))
	})
	if got != 3 || err != nil {
		t.Errorf("got %d, %v; want the third attempt", got, err)
	}
	if n := payments(t, s); n != 1 {
		t.Errorf("%d payments, want 1", n)
	}
}

func TestStartTx(t *testing.T) {
	s := shop(t)
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) { return 2 * n, nil })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	for _, commit := range []bool{false, true} {
		tx, err := s.Writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := pay(t.Context(), tx, 1); err != nil {
			t.Fatal(err)
		}
		run, err := sqlite.StartTx(t.Context(), tx, e, w, 21, durable.ID("order"))
		if err != nil || run.ID() != "order" {
			t.Fatal(run, err)
		}
		if !commit {
			if err := tx.Rollback(); err != nil {
				t.Fatal(err)
			}
			if _, err := e.Get(t.Context(), "order"); !errors.Is(err, durable.ErrNotFound) {
				t.Errorf("after the rollback: %v, want ErrNotFound", err)
			}
			continue
		}
		if err := tx.Commit(); err != nil {
			t.Fatal(err)
		}
		if got, err := w.Call(t.Context(), e, 21, durable.ID("order")); got != 42 || err != nil {
			t.Errorf("got %d, %v", got, err)
		}
		tx, err = s.Writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sqlite.StartTx(t.Context(), tx, e, w, 22, durable.ID("order")); !errors.Is(err, durable.ErrIDConflict) {
			t.Errorf("another input: %v, want ErrIDConflict", err)
		}
		if err := tx.Rollback(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSignalTx(t *testing.T) {
	s := shop(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("paid") })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	signal := func(commit bool, id, payload string) error {
		t.Helper()
		tx, err := s.Writer().BeginTx(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		err = errors.Join(pay(t.Context(), tx, 1), sqlite.SignalTx(t.Context(), tx, e, id, "paid", payload, durable.SignalKey("k")))
		end := tx.Rollback
		if commit {
			end = tx.Commit
		}
		if err := end(); err != nil {
			t.Fatal(err)
		}
		return err
	}
	if err := signal(false, "order", "no"); !errors.Is(err, durable.ErrNotFound) {
		t.Fatal("no run:", err)
	}
	if _, err := w.Start(t.Context(), e, 1, durable.ID("order")); err != nil {
		t.Fatal(err)
	}
	if err := signal(false, "order", "rolled back"); err != nil {
		t.Fatal(err)
	}
	if err := signal(true, "order", "yes"); err != nil {
		t.Fatal(err)
	}
	if err := signal(true, "order", "another"); !errors.Is(err, durable.ErrIDConflict) {
		t.Error("the key was used:", err)
	}
	if got, err := w.Call(t.Context(), e, 1, durable.ID("order")); got != "yes" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}
