package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/sqlite"
)

// SQLite undoes the whole transaction when a write in it is interrupted, or by OR ROLLBACK. A step must not be recorded
// as done without its writes.
func TestTxUndoneBySQLite(t *testing.T) {
	for name, undo := range map[string]func(ctx context.Context, tx *sql.Tx){
		"or rollback": func(ctx context.Context, tx *sql.Tx) {
			_, _ = tx.ExecContext(ctx, "INSERT OR ROLLBACK INTO seen VALUES (1)") // there already: never mind
		},
		"own context": func(ctx context.Context, tx *sql.Tx) {
			own, cancel := context.WithCancel(ctx)
			defer cancel()
			sqlite.OnStatementBegun.Store(&cancel)
			_, _ = tx.ExecContext(own, `INSERT INTO seen WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n)
				SELECT CASE i WHEN 1000 THEN i - 1 + durable_test_begun() ELSE i END FROM n`) // best effort
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := shop(t)
			if _, err := s.Writer().ExecContext(t.Context(), "CREATE TABLE seen (id INTEGER UNIQUE); INSERT INTO seen VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			got, err := execute(t, s, func(c *durable.Ctx, cents int) (string, error) {
				return sqlite.Tx(c, "pay", func(ctx context.Context, tx *sql.Tx) (string, error) {
					if err := pay(ctx, tx, cents); err != nil {
						return "", err
					}
					undo(ctx, tx)
					return "paid", nil
				})
			})
			var recorded int
			if err := s.Writer().QueryRowContext(t.Context(), "SELECT count(*) FROM durable_step WHERE name = 'pay' AND status = 3").Scan(&recorded); err != nil {
				t.Fatal(err)
			}
			if n := payments(t, s); n != recorded {
				t.Errorf("got %q, %v: the step is recorded as completed %d times, and there are %d payments", got, err, recorded, n)
			}
		})
	}
}

// An error of the step's own function is the step's failure, whatever it wraps.
func TestTxOwnUnavailable(t *testing.T) {
	s := shop(t)
	var calls atomic.Int64
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	w := durable.Define("test", func(c *durable.Ctx, cents int) (int, error) {
		return sqlite.Tx(c, "pay", func(context.Context, *sql.Tx) (int, error) {
			calls.Add(1)
			return 0, fmt.Errorf("the other shop: %w", durable.ErrUnavailable)
		})
	})
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	_, err = w.Call(ctx, e, 1, durable.ID("run"))
	if n := calls.Load(); n != 1 {
		t.Errorf("the function of a step without retries was called %d times (%v)", n, err)
	}
}
