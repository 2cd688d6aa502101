package durablecli

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
)

// Workers that may need more connections than the server has are found. Dead ones need none, and those of a process share them.
func TestPools(t *testing.T) {
	t.Parallel()
	now := time.Now()
	worker := func(id, name string, left time.Duration) durable.WorkerInfo {
		return durable.WorkerInfo{ID: id, Name: name, DeadAt: now.Add(left)}
	}
	all := []durable.WorkerInfo{
		worker("1", "host:17", time.Second), worker("2", "host:17", time.Second), worker("3", "mail", time.Second), worker("4", "mail", time.Second), worker("5", "host:18", 0),
	}
	for limit, want := range map[int]severity{30: fine, 29: warning} {
		found := (&inspectedPostgres{maxConnections: limit}).checkPools(all, now)
		if len(found) != 1 || found[0].Level != want || !strings.Contains(found[0].Finding, "3 processes open up to 30 connections") || (found[0].Fix == "") != (want == fine) {
			t.Errorf("with %d connections: %+v", limit, found)
		}
	}
}

// On a server with pg_stat_statements, the doctor finds the statements on the schema that are slow on average; without it, those that are executed now.
func TestSlowStatements(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	server, err := pgtest.Start(ctx, pgtest.Options{NoSync: true, Settings: map[string]string{"shared_preload_libraries": "pg_stat_statements"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	connect := func() *pgx.Conn {
		t.Helper()
		cfg, err := pgx.ParseConfig(server.URL())
		if err != nil {
			t.Fatal(err)
		}
		cfg.DefaultQueryExecMode = pgx.QueryExecModeExec // as inspect does
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.WithoutCancel(ctx)) })
		return conn
	}
	conn, other := connect(), connect()
	execute := func(on *pgx.Conn, text string, args ...any) {
		t.Helper()
		if _, err := on.Exec(ctx, text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	p := &inspectedPostgres{conn: conn, frame: &globalFlags{schema: "Odd schema"}}
	check := func(what string, level severity, texts ...string) {
		t.Helper()
		found, err := p.checkStatements(ctx)
		if err != nil || len(found) != 1 || found[0].Level != level || (found[0].Fix == "") != (level == fine) {
			t.Fatalf("%s: %+v, %v", what, found, err)
		}
		for _, text := range texts {
			if !strings.Contains(found[0].Finding+found[0].Fix, text) {
				t.Errorf("%s: %q is not in %+v", what, text, found[0])
			}
		}
	}
	execute(conn, `CREATE SCHEMA "Odd schema"`)
	execute(conn, `CREATE TABLE "Odd schema".run (secret text)`)
	execute(conn, `CREATE TABLE run (id int)`)
	check("without the extension", fine, "more than 5s", "pg_stat_statements")

	execute(other, `BEGIN; LOCK TABLE run`)
	blocked := connect()
	done := make(chan error, 1)
	go func() { _, err := blocked.Exec(ctx, `SELECT 'secret', id FROM run`); done <- err }()
	for waits := false; !waits; {
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_activity WHERE pid = $1 AND wait_event_type = 'Lock')", blocked.PgConn().PID()).Scan(&waits); err != nil {
			t.Fatal(err)
		}
	}
	found, err := p.runningStatements(ctx, 0, "")
	if err != nil || len(found) != 1 || found[0].Level != warning || !strings.Contains(found[0].Finding, "waits for Lock relation") || !strings.Contains(found[0].Fix, "pg_blocking_pids(") || strings.Contains(found[0].Finding+found[0].Fix, "secret") {
		t.Errorf("a running statement: %+v, %v", found, err)
	}
	execute(other, `COMMIT`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	execute(conn, `CREATE SCHEMA elsewhere`)
	execute(conn, `CREATE EXTENSION pg_stat_statements SCHEMA elsewhere`)
	execute(conn, `SELECT elsewhere.pg_stat_statements_reset()`)
	for range 5 {
		execute(conn, "-- Reads something.\nSELECT secret\nFROM \"Odd schema\".run RIGHT JOIN pg_sleep(0.11) ON secret = $1", "mine")
		execute(conn, `SELECT id FROM run RIGHT JOIN pg_sleep(0.11) ON id = 1`) // of another schema
	}
	check("a slow statement", warning, "executed 5 times", `on average: SELECT secret FROM "Odd schema".run RIGHT`, "EXPLAIN")
	execute(conn, `SELECT elsewhere.pg_stat_statements_reset()`)
	check("after a reset", fine, "100ms on average")
	execute(conn, `CREATE ROLE reader LOGIN`)
	execute(conn, `SET ROLE reader`)
	check("of a role without rights", fine, "pg_read_all_stats")
}
