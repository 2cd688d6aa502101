package postgres

import (
	"context"
	"encoding/json/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// buffersOf executes a statement in a transaction that it rolls back, and returns how many buffers the statement touched.
func buffersOf(t *testing.T, conn *pgx.Conn, sql string, args ...any) int {
	t.Helper()
	execute := executionOf(t, conn, sql, func(i int) string { return "$" + strconv.Itoa(i) })
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.Background()) }()
	var text string
	all := append([]any{pgx.QueryExecModeSimpleProtocol}, args...)
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute, all...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var result []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal([]byte(text), &result); err != nil {
		t.Fatal(err)
	}
	return result[0].Plan.Hit + result[0].Plan.Read
}

// admissionBuffers returns how many buffers the statements touch with which an admission reads the queue. They have the generic
// plans that the store's sessions use.
func admissionBuffers(t *testing.T, conn *pgx.Conn, queue, key string) map[string]int {
	t.Helper()
	buffers := make(map[string]int)
	count := func(name, file string, args ...any) {
		t.Helper()
		buffers[name] = buffersOf(t, conn, statementText(file, DefaultSchema), args...)
	}
	at := pgTime(time.Now())
	keys := textArray{1, func(int) *string { return &key }}
	none := newLaneArray(nil)
	count("found", "admission_has_work.sql", queue, at, none, at)
	count("runs", "admission_runs_lock.sql", queue, at, none, int32(store.MaxRunsReadPerAdmission), false, at, true, int64(store.UnreleasedLane))
	count("unclaimed", "admission_unclaimed_runs_count.sql", queue, at, int32(store.MaxAdmittedNotClaimed))
	count("unclaimed by key", "admission_unclaimed_runs_by_group_key.sql", queue, at, int32(store.MaxAdmittedNotClaimed))
	count("line", "admission_runs_in_line_lock.sql", queue, rangesBegun, rangesRoot, int32(10))
	count("look", "admission_group_keys_due_for_check.sql", queue, at, int32(store.MaxGroupKeysRead))
	count("keys", "admission_group_keys_read.sql", queue, keys)
	count("behind", "admission_runs_behind_group_key_lock.sql", queue, keys, rangesBegun, rangesRoot, int32(store.MaxRunsReadBehindKey))
	return buffers
}

// TestAnAdmissionReadsABoundedNumberOfRows: however many runs are in line and behind their keys.
// DURABLE_PLAN_ROWS sets how many that are.
func TestAnAdmissionReadsABoundedNumberOfRows(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	rows := 20_000
	if n, err := strconv.Atoi(os.Getenv("DURABLE_PLAN_ROWS")); err == nil {
		rows = n
	}
	exec := func(sql string, args ...any) {
		t.Helper()
		if _, err := conn.Exec(t.Context(), sql, args...); err != nil {
			t.Fatal(err)
		}
	}
	exec("SET statement_timeout = 0")
	fill := func(queue string, n int) { // half of the runs are in line, and half behind one of ten keys
		t.Helper()
		exec("INSERT INTO durable.queue (name, now_at, waiting) VALUES ($1, now(), $2)", queue, n)
		exec(`WITH made AS (
			INSERT INTO durable.run (created_at, epoch, shard, status, id, name, workflow, queue, priority, lane)
			SELECT now(), 0, n % 64, 1, gen_random_uuid(), gen_random_uuid()::text, 'flow', $2, 0, $3
			FROM generate_series(1, $1::integer) AS n
			RETURNING shard, id
		), counted AS (SELECT shard, id, row_number() OVER () AS n FROM made)
		INSERT INTO durable.place (shard, run_id, queue, key, state, priority, root, turn, arrived_at)
		SELECT shard, id, $2, 'key-' || n % 10, 2 + n % 2, 0, true, n, now() FROM counted`,
			n, queue, int64(store.ClaimLaneOf(queue, "flow", "", 0).WithAdmission(store.AdmissionInLine)))
		exec(`INSERT INTO durable.queue_key (queue, key, in_line, behind)
			SELECT $1, 'key-' || n, $2::integer / 20, $2::integer / 20 FROM generate_series(0, 9) AS n`, queue, n)
	}
	many := func(queue string, n int) { // keys with nothing to do
		t.Helper()
		exec("INSERT INTO durable.queue_key (queue, key, executing) SELECT $1, 'busy-' || n, 1 FROM generate_series(1, $2::integer) AS n", queue, n)
	}
	fill("short", 1000)
	many("short", 100)
	many("long", rows/4)
	fill("long", rows)
	exec("ANALYZE durable.run, durable.place, durable.queue_key, durable.queue")
	short, long := admissionBuffers(t, conn, "short", "key-3"), admissionBuffers(t, conn, "long", "key-3")
	t.Logf("buffers with 1,000 runs in line: %v; with %d: %v", short, rows, long)
	exec("INSERT INTO durable.queue (name, now_at) VALUES ('idle', now())")
	exec("DELETE FROM durable.place WHERE queue = 'short'")
	exec("DELETE FROM durable.queue_key WHERE queue = 'short'")
	exec("ANALYZE durable.place, durable.queue_key") // now most rows satisfy the conditions for another queue
	for name, n := range admissionBuffers(t, conn, "idle", "key-3") {
		if n > 60 {
			t.Errorf("%s touches %d buffers in a queue without runs beside one with %d in line", name, n, rows)
		}
	}
	for name, n := range long {
		if n > 3*short[name]+40 {
			t.Errorf("%s touches %d buffers with %d runs in line, and %d with 1,000", name, n, rows, short[name])
		}
	}
}

// Admissions read runs that are admitted and not claimed only if they may take them back. A search for idle runs, whose position is recorded
// with the applied settings, is no change of the settings.
func TestASearchForIdleRunsReadsNoUnclaimedRuns(t *testing.T) {
	s := open(t, "exec")
	conn := ours(t, s)
	const settings = `{"open":1}`
	for _, test := range []struct {
		applied string
		want    int
	}{{settings, 0}, {settings + "\n3 01900000-0000-7000-8000-000001000000 0", 0}, {"{}\n3 01900000-0000-7000-8000-000001000000 0", 1}, {"{}", 1}} {
		tx, err := conn.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		exec := func(sql string, args ...any) {
			t.Helper()
			if _, err := tx.Exec(t.Context(), sql, args...); err != nil {
				t.Fatal(err)
			}
		}
		exec("INSERT INTO durable.queue (name, now_at, declared, applied) VALUES ('q', now(), $1, $2)", settings, test.applied)
		exec(`INSERT INTO durable.run (created_at, epoch, shard, status, id, name, workflow, queue, priority, lane, wake_at)
			SELECT now(), 0, 1, 1, u, u::text, 'flow', 'q', 0, $1, now() FROM gen_random_uuid() AS u`,
			int64(store.ClaimLaneOf("q", "flow", "", 0).WithAdmission(store.AdmissionGranted)))
		now := pgTime(time.Now().Add(time.Hour))
		rows, err := tx.Query(t.Context(), statementText("admission_runs_lock.sql", DefaultSchema), "q", now, newLaneArray(nil), int32(store.MaxRunsReadPerAdmission), false,
			pgTime(time.Now().Add(-time.Hour)), false, int64(store.UnreleasedLane))
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for rows.Next() {
			got++
		}
		if err := rows.Err(); err != nil || got != test.want {
			t.Errorf("with applied settings %q the statement returns %d runs, %v; want %d", test.applied, got, err, test.want)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
