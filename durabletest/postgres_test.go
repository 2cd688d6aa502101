package durabletest_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/durabletest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
)

// emptiedStore returns a function for OnNewStores. It opens one store on PostgreSQL and returns it each time, with empty
// tables: a new database and its sessions take longer than the run that CrashEverywhere executes on it. The store is on
// a database with a table of the test's own, payment.
func emptiedStore(t testing.TB) func(testing.TB) durable.Store {
	t.Helper()
	url := durabletest.PostgresURL(t)
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) }) // nothing is left to do
	if _, err := conn.Exec(t.Context(), "CREATE TABLE payment (cents bigint)"); err != nil {
		t.Fatal(err)
	}
	s, err := postgres.Open(t.Context(), url, postgres.Schema("ledger"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return func(t testing.TB) durable.Store {
		if err := pgtest.EmptySchema(t.Context(), conn, "ledger", "migration", "secret"); err != nil {
			t.Fatal(err)
		}
		if err := pgtest.EmptySchema(t.Context(), conn, "public"); err != nil {
			t.Fatal(err)
		}
		return s
	}
}

// A workflow with a transaction in PostgreSQL, a signal and a child, with a crash at each of its writes there.
func TestCrashEverywhereOnPostgres(t *testing.T) {
	t.Parallel()
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) { return step(c, "double", 2*n) })
	w := durable.Define("w", func(c *durable.Ctx, n int) (string, error) {
		paid, err := postgres.Tx(c, "pay", func(ctx context.Context, tx pgx.Tx) (n int, err error) {
			if _, err := tx.Exec(ctx, "INSERT INTO payment VALUES (1999)"); err != nil {
				return 0, err
			}
			return n, tx.QueryRow(ctx, "SELECT count(*) FROM payment").Scan(&n)
		})
		if err != nil {
			return "", err
		}
		id, err := postgres.Tx(c, "id", func(context.Context, pgx.Tx) (string, error) { return anything(), nil })
		if err != nil {
			return "", err
		}
		signal, err := c.Receive[string]("go", durable.Within(90*day))
		if err != nil {
			return "", err
		}
		doubled, err := c.Child("kid", child, 21)
		return fmt.Sprint(paid, id, signal, doubled), err
	})
	began := time.Now()
	durabletest.CrashEverywhere(t, w, 1, durabletest.OnNewStores(emptiedStore(t)), durabletest.VaryingSteps("id"),
		durabletest.Workflows(child), durabletest.SignalAfter(40*day, "go", "now"))
	t.Logf("it took %v", time.Since(began))
}

// OnNewStores is told what it opens for, and is cleaned up before the next; it is an option of CrashEverywhere only.
func TestOnNewStores(t *testing.T) {
	t.Parallel()
	w := durable.Define("w", func(c *durable.Ctx, n int) (int, error) { return step(c, "one", n) })
	open, most, opened := 0, 0, 0
	durabletest.CrashEverywhere(t, w, 1, durabletest.OnNewStores(func(t testing.TB) durable.Store {
		open, opened = open+1, opened+1
		most = max(most, open)
		t.Cleanup(func() { open-- })
		return durabletest.PostgresStore(t)
	}))
	if opened < 4 || most != 1 || open != 0 {
		t.Errorf("%d databases were opened, %d at once, and %d are left", opened, most, open)
	}
	s := &spy{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		durabletest.NewWithOptions(s, defs(w), durabletest.OnNewStores(durabletest.PostgresStore))
	}()
	<-done
	if len(s.errors) == 0 {
		t.Error("NewWithOptions takes OnNewStores, and does nothing with it")
	}
}
