package faults

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
)

func init() {
	// open only opens the store, and so migrates it, when a file is there. With an N it then stays until it is killed.
	scenarios["open"] = func(ctx context.Context, j *job, _ durable.Store) error {
		if err := awaitFile(j.File); err != nil {
			return err
		}
		say("migrating")
		s, err := database{j.Point, j.Workflow, j.ID}.open()
		if err != nil {
			return err
		}
		defer s.Close()
		say("open")
		if j.N > 0 {
			<-ctx.Done()
		}
		return nil
	}
}

// Row 32: eight processes migrate an empty database at once, and one is killed in the
// middle. The others finish, and there is one version.
func TestRow32_EightMigrationsOneKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		const processes = 8
		file := t.TempDir() + "/go"
		var blocker pgx.Tx
		var admin *pgx.Conn
		if db.Kind == "postgres" {
			// A schema of the same name, not committed: the migrator that is first gets into
			// its transaction, and waits there.
			admin = session(t, db.Where)
			var err error
			if blocker, err = session(t, db.Where).Begin(bounded(t)); err != nil {
				t.Fatal(err)
			}
			if _, err := blocker.Exec(bounded(t), "CREATE SCHEMA "+pgx.Identifier{db.Schema}.Sanitize()); err != nil {
				t.Fatal(err)
			}
		}
		victim, how := 0, "while it migrated"
		ps := make([]*process, processes)
		for i := range ps {
			where, stays := db.Where, int64(0)
			if db.Kind != "postgres" && i == victim {
				stays = 1 // the signal may come after the migration
			}
			if db.Kind == "postgres" {
				where = with(where, fmt.Sprintf("application_name=%s_%d", db.Schema, i))
			}
			ps[i] = spawn(t, job{Scenario: "open", Point: db.Kind, Workflow: where, ID: db.Schema, File: file, N: stays})
		}
		if err := os.WriteFile(file, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if db.Kind == "postgres" {
			await(t, "one migration in its middle, the others waiting for it", func() bool {
				rows := sql(t, admin, `SELECT application_name, wait_event FROM pg_stat_activity
					WHERE application_name LIKE $1 AND wait_event_type = 'Lock'`, db.Schema+`\_%`)
				for _, row := range rows {
					if row[1] == "transactionid" {
						if _, err := fmt.Sscanf(strings.TrimPrefix(row[0].(string), db.Schema), "_%d", &victim); err != nil {
							t.Fatal(err)
						}
						return len(rows) == processes
					}
				}
				return false
			})
			how = "inside of its transaction, seven waiting for its lock"
		} else {
			ps[victim].expect("migrating")
		}
		ps[victim].signal(syscall.SIGKILL)
		if db.Kind == "postgres" {
			ps[victim].mustBeKilled(syscall.SIGKILL)
			if err := blocker.Rollback(bounded(t)); err != nil {
				t.Fatal(err)
			}
		}
		opened := 0
		for i, p := range ps {
			if i == victim {
				p.mustBeKilled(syscall.SIGKILL)
				continue
			}
			p.mustEndWell()
			opened++
		}
		// The schema is whole: a run goes through.
		w := calm(newLedger(t))
		e := engineOn(t, db.openIn(t), durable.Config{}, w)
		if v, err := w.Call(bounded(t), e, 1, durable.ID("r")); err != nil || v != 4 {
			t.Error(v, err)
		}
		t.Logf("processes=%d killed=1 (%s) opened=%d one_version=true", processes, how, opened)
	})
}

// Row 32: a database of a later version is refused, and nothing in it is changed.
func TestRow32_NewerSchema(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		s, err := db.open()
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		outside(t, db, "INSERT INTO durable_migration (version, name, applied_at) VALUES (999, '0999_later.sql', 1)",
			"INSERT INTO migration (version, name) VALUES (999, '0999_later.sql')")
		s, err = db.open()
		if err == nil {
			s.Close()
		}
		mustFail(t, err, durable.ErrSchema, "999", "update")
		t.Logf("refused: %v", err)
	})
}
