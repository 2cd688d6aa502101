package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/schema"
)

func TestEightMigrateAtOnce(t *testing.T) {
	url := pgtest.URL(t)
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i == 0 {
				cancel() // a migrator that is killed at some point
			}
			s, err := openDatabase(ctx, url, Schema("at_once"))
			if i == 0 {
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			_ = s.Close()
		})
	}
	all.Wait()
	s := openAt(t, url, Schema("at_once"), WithoutMigrations())
	var rows int
	if err := s.userPool.QueryRow(t.Context(), "SELECT count(*) FROM at_once.migration").Scan(&rows); err != nil || rows != len(schema.Postgres()) {
		t.Errorf("%d migrations are recorded, %v", rows, err)
	}
}

// TestMigrationOfADatabaseInUse migrates version 1 with runs in it, one of which is paused.
func TestMigrationOfADatabaseInUse(t *testing.T) {
	url := pgtest.URL(t)
	old, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = old.Close(context.Background()) })
	first, second := pending(time.Now()), pending(time.Now())
	for _, sql := range []string{
		schema.Postgres()[0].SQL,
		fmt.Sprintf(`INSERT INTO durable.run (created_at, epoch, shard, status, id, name, workflow, queue, lane) VALUES
			(now(), 1, %d, 4, '%s', '%s', 'flow', 'default', 0), (now(), 1, %d, 5, '%s', '%s', 'flow', 'default', 0)`,
			store.ShardOf(first.UUID), first.UUID, first.Name, store.ShardOf(second.UUID), second.UUID, second.Name),
		`INSERT INTO durable.worker (started_at, heartbeat_at, silent_at, capacity, active, id, name, version)
			VALUES (now(), now(), now() + interval '1 hour', 1, 0, gen_random_uuid(), 'old', '')`,
	} {
		if _, err := old.Exec(t.Context(), sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
	s := openAt(t, url)
	if row(t, s, first.UUID).Control != store.PausedItself || row(t, s, second.UUID).Control != 0 {
		t.Error("the run that was paused does not count as paused, or the other one does")
	}
	order(t, s, &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{first.UUID}})
	if workers, err := s.Workers(t.Context()); err != nil || len(workers) != 1 || workers[0].SchemaVersion != 0 || !workers[0].DeadAt.After(time.Now()) {
		t.Errorf("the worker of before: %+v, %v", workers, err)
	}
	var status string
	var paused bool
	err = old.QueryRow(t.Context(), "SELECT status, paused FROM durable.runs WHERE id = $1", first.UUID).Scan(&status, &paused)
	if err != nil || status != "pending" || paused {
		t.Errorf("the view shows %s, %v, %v", status, paused, err)
	}
}

func TestSchemaThatDoesNotFit(t *testing.T) {
	url := pgtest.URL(t)
	_, err := openDatabase(t.Context(), url, WithoutMigrations())
	if !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "0001_core.sql") {
		t.Errorf("an empty database without migrations: %v", err)
	}
	s := openAt(t, url)
	if _, err := s.userPool.Exec(t.Context(), "INSERT INTO durable.migration (version, name) VALUES (999, 'future')"); err != nil {
		t.Fatal(err)
	}
	for _, opts := range [][]Option{nil, {WithoutMigrations()}} {
		if _, err := openDatabase(t.Context(), url, opts...); !errors.Is(err, store.ErrSchema) || !strings.Contains(err.Error(), "update durable") {
			t.Errorf("a newer database: %v", err)
		}
	}
	if _, err := s.userPool.Exec(t.Context(), "DROP TABLE durable.step CASCADE"); err != nil {
		t.Fatal(err)
	}
	run := pending(now(t, s))
	b := &store.Batch{Steps: []*store.StepWrite{done(run.UUID, "a", run.CreatedAt)}}
	if err := s.Commit(t.Context(), b); !errors.Is(err, store.ErrSchema) {
		t.Errorf("a table that is gone: %v", err)
	}
}

func TestSchemaThatExistsNeedsNoRightToCreateOne(t *testing.T) {
	url := pgtest.URL(t)
	s := openAt(t, url, Schema("other"))
	for _, sql := range []string{
		"DROP ROLE IF EXISTS durable_limited", "CREATE ROLE durable_limited LOGIN", "CREATE SCHEMA mine AUTHORIZATION durable_limited",
	} {
		if _, err := s.userPool.Exec(t.Context(), sql); err != nil {
			t.Fatal(sql, err)
		}
	}
	t.Cleanup(func() {
		for _, sql := range []string{"DROP OWNED BY durable_limited CASCADE", "DROP ROLE durable_limited"} {
			_, _ = s.userPool.Exec(context.Background(), sql)
		}
	})
	limited := with(url, "options=-c%20role%3Ddurable_limited")
	openAt(t, limited, Schema("mine"))
	_, err := openDatabase(t.Context(), limited, Schema("absent"))
	if err == nil || !strings.Contains(err.Error(), "grant the role CREATE") {
		t.Errorf("without the right: %v", err)
	}
}

func TestOptionsAndTheirErrors(t *testing.T) {
	for _, name := range []string{"", "a.b", `a"b`, "1a", strings.Repeat("a", 49), "a b", "pg_flows", "information_schema"} {
		if _, err := openDatabase(t.Context(), "postgres://localhost/x", Schema(name)); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("the schema name %q returned %v", name, err)
		}
	}
	if _, err := newDatabase(nil); err == nil {
		t.Error("no pool was accepted")
	}
	for _, url := range []string{"postgres://u:secret%zz@localhost:x/y", "host=localhost password=secret port=secret"} {
		_, err := openDatabase(t.Context(), url)
		if err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("a connection string that cannot be parsed: %v", err)
		}
	}
	_, err := openDatabase(t.Context(), "postgres://u:secret@127.0.0.1:1/y?connect_timeout=2")
	if !errors.Is(err, store.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("no server: %v", err)
	}
}
