package postgres

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/schema"
)

// textLog is a log that a test reads while it is written.
type textLog struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *textLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *textLog) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), text)
}

// A worker whose role was granted its rights before retention existed says so once, and executes runs. When it has got the
// right, it deletes.
func TestAWorkerWithoutTheRightToDelete(t *testing.T) {
	url := pgtest.URL(t)
	openAt(t, url, Schema("flows"))
	name, as := granted(t, url, "flows", schema.Worker)
	conn := connectTo(t, url)
	execAll(t, conn, "REVOKE DELETE ON flows.run FROM "+name)
	old := time.Now().Add(-48 * time.Hour)
	id := store.NewUUIDAt(5, old)
	_, err := conn.Exec(t.Context(), `INSERT INTO flows.run (created_at, ended_at, epoch, lane, shard, status, id, name, workflow, queue)
		VALUES ($1, $1, 1, 0, 5, 5, $2, $3, 'w', 'default')`, old, id.String(), id.String())
	if err != nil {
		t.Fatal(err)
	}
	w := durable.Define("w", func(c *durable.Ctx, in int) (int, error) { return in, nil })
	log := new(textLog)
	owner := conn.Config().User
	e, err := durable.New(openAt(t, as, Schema("flows"), WithoutMigrations(), OwnedBy(owner)), durable.Config{
		Workflows: []durable.Definition{w}, Logger: slog.New(slog.NewTextHandler(log, nil)), Poll: time.Millisecond,
		Retention: durable.Retention{Runs: durable.KeepFor(24 * time.Minute)},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- e.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}()
	const message = "retention cannot delete"
	for n := 1; log.count(message) == 0 && ctx.Err() == nil; n++ {
		if got, err := w.Call(ctx, e, n); got != n || err != nil {
			t.Fatal(got, err)
		}
	}
	if log.count(message) != 1 || log.count("level=WARN") != 0 {
		t.Errorf("%s", log.text.String())
	}
	if info, err := e.Get(ctx, id.String()); err != nil || info.Status != durable.StatusCompleted {
		t.Errorf("the run is %+v, %v", info, err)
	}
}

// Every table with rows of runs is in the statement that deletes them.
func TestADeletionKnowsAllTables(t *testing.T) {
	url := pgtest.URL(t)
	openAt(t, url, Schema("flows"))
	rows, err := connectTo(t, url).Query(t.Context(), `
		SELECT c.relname::text FROM pg_class AS c JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attname = 'run_id'
		WHERE c.relnamespace = 'flows'::regnamespace AND c.relkind = 'r'`)
	if err != nil {
		t.Fatal(err)
	}
	text, err := files.ReadFile("sql/retention_runs_delete.sql")
	if err != nil {
		t.Fatal(err)
	}
	var table string
	if _, err := pgx.ForEachRow(rows, []any{&table}, func() error {
		if stays := table == "event" || table == "fire" || table == "repair_pause"; stays == strings.Contains(string(text), "DELETE FROM durable."+table+" ") { // they go by age, with their schedule, and with their lease
			t.Errorf("a deletion of runs deletes rows of %s: %v", table, !stays)
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
}
