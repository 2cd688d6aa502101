package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
)

// If the caller's own transaction is at fault, StartTx and SignalTx say what is wrong with it. They do not report that the database is
// unavailable, because the same call would fail again.
func TestErrorsInTheCallersTransaction(t *testing.T) {
	s := shop(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("word") })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(t.Context(), e, 0, durable.ID("waits")); err != nil {
		t.Fatal(err)
	}
	calls := map[string]func(tx pgx.Tx) error{
		"StartTx": func(tx pgx.Tx) error {
			_, err := StartTx(t.Context(), tx, e, w, 0, durable.ID("order"))
			return err
		},
		"SignalTx": func(tx pgx.Tx) error { return SignalTx(t.Context(), tx, e, "waits", "word", "hello") },
	}
	aborted := func(tx pgx.Tx) {
		if _, err := tx.Exec(t.Context(), "SELECT 1/0"); err == nil {
			t.Error("the statement that was to abort the transaction succeeded")
		}
	}
	// The run is created, or changed, after the transaction has its snapshot.
	outdated := func(tx pgx.Tx) {
		if _, err := tx.Exec(t.Context(), "SELECT count(*) FROM payment"); err != nil {
			t.Error(err)
		}
		if _, err := w.Start(t.Context(), e, 0, durable.ID("order")); err != nil {
			t.Error(err)
		}
		if err := e.SetPriority(t.Context(), "waits", 1); err != nil {
			t.Error(err)
		}
		if err := e.SetPriority(t.Context(), "waits", 0); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		name  string
		begin pgx.TxOptions
		spoil func(tx pgx.Tx)
		want  error
		code  string
		text  string
	}{
		{"aborted", pgx.TxOptions{}, aborted, durable.ErrInvalidConfig, "25P02", "roll the transaction back"},
		{"read-only", pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(pgx.Tx) {}, durable.ErrInvalidConfig, "25006", "begin it with pgx.ReadWrite"},
		{"serializable", pgx.TxOptions{IsoLevel: pgx.Serializable}, outdated, durable.ErrLocked, "40001", "repeat it from its beginning"},
	} {
		for name, call := range calls {
			tx, err := s.userPool.BeginTx(t.Context(), c.begin)
			if err != nil {
				t.Fatal(err)
			}
			c.spoil(tx)
			err = call(tx)
			pg, _ := errors.AsType[*pgconn.PgError](err)
			if !errors.Is(err, c.want) || errors.Is(err, durable.ErrUnavailable) || pg == nil || pg.Code != c.code || !strings.Contains(err.Error(), c.text) {
				t.Errorf("%s in a transaction that is %s: %v, want %v with %s and %q", name, c.name, err, c.want, c.code, c.text)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Error(err)
			}
			if _, err := e.Terminate(t.Context(), "order"); err == nil { // so that the next transaction is the first to start it
				if _, err := e.Delete(t.Context(), "order"); err != nil {
					t.Error(err)
				}
			}
		}
	}
}
