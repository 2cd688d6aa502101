package ui_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/ui"
)

// When the time of a request is over, the server ends its statement: however slow the database is, no statement of the dashboard goes on behind the
// back of those who have left.
func TestTheServerEndsStatementsOfRequestsThatAreOver(t *testing.T) {
	t.Parallel()
	schema := pgtest.LendSchema(t, "migration", "secret")
	cfg, err := pgxpool.ParseConfig(pgtest.ServerURL(t))
	if err != nil {
		t.Fatal(err)
	}
	const name = "durable-ui-timeout"
	cfg.ConnConfig.RuntimeParams["application_name"] = name
	pool, err := pgxpool.NewWithConfig(context.Background(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer pool.Close()
	store, err := postgres.New(pool, postgres.Schema(schema))
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	e, err := durable.New(store, durable.Config{})
	if err != nil {
		t.Fatal(err)
	}
	h := ui.Handler(e)
	if got := send(h, "/runs", nil); got.Code != http.StatusOK {
		t.Fatalf("the list gives %d: %s", got.Code, got.Body)
	}
	other, err := pgx.Connect(within(t), pgtest.ServerURL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close(context.Background())
	if _, err := other.Exec(within(t), "BEGIN; LOCK TABLE "+pgx.Identifier{schema, "run"}.Sanitize()+" IN ACCESS EXCLUSIVE MODE"); err != nil {
		t.Fatal(err)
	}
	waiting := func() (n int) {
		t.Helper()
		if _, err := other.Exec(within(t), "SELECT pg_stat_clear_snapshot()"); err != nil { // else a transaction sees what it saw first
			t.Fatal(err)
		}
		row := other.QueryRow(within(t), "SELECT count(*) FROM pg_stat_activity WHERE application_name = $1 AND state = 'active' AND wait_event_type = 'Lock'", name)
		if err := row.Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	ctx, end := context.WithTimeout(within(t), time.Minute)
	done := make(chan *httptest.ResponseRecorder)
	go func() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/runs", nil))
		done <- w
	}()
	until(t, func() bool { return waiting() == 1 })
	end()
	<-done
	until(t, func() bool { return waiting() == 0 })
}
