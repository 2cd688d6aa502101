package faults

import (
	"context"
	dbsql "database/sql"
	"testing"

	"github.com/jackc/pgx/v5"
	_ "modernc.org/sqlite" // the tests' own look into the file

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// outside runs one statement in the database behind the library's back. In the text,
// durable stands for the schema, or the prefix, of the tables.
func outside(t testing.TB, db database, onSQLite, onPostgres string) {
	t.Helper()
	if db.Kind == "sqlite" {
		conn, err := dbsql.Open("sqlite", "file:"+db.Where+"?_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if _, err := conn.ExecContext(bounded(t), onSQLite); err != nil {
			t.Fatal(err)
		}
		return
	}
	conn := session(t, db.Where)
	sql(t, conn, "SET search_path = "+pgx.Identifier{db.Schema}.Sanitize())
	sql(t, conn, onPostgres)
}

// wake makes every waiting run due now.
func wake(t testing.TB, db database) {
	t.Helper()
	outside(t, db, "UPDATE durable_run SET wake_at = 1 WHERE status = 3", "UPDATE run SET wake_at = 'epoch' WHERE status = 3")
}

// expire ends the lease of a run whose process is gone, so that no test has to wait for that.
func expire(t testing.TB, db database, id string) {
	t.Helper()
	outside(t, db, "UPDATE durable_run SET wake_at = 1 WHERE status = 2 AND name = '"+id+"'", "UPDATE run SET wake_at = 'epoch' WHERE status = 2 AND name = '"+id+"'")
}

// txDo is an empty transactional step on either store.
func txDo(c *durable.Ctx, db database, name string) error {
	var err error
	if db.Kind == "sqlite" {
		_, err = sqlite.Tx(c, name, func(context.Context, *dbsql.Tx) (int, error) { return 0, nil })
	} else {
		_, err = postgres.Tx(c, name, func(context.Context, pgx.Tx) (int, error) { return 0, nil })
	}
	return err
}
