package faults

import (
	"bytes"
	"context"
	dbsql "database/sql"
	"fmt"
	"os"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

const charges = 30

// charging is a workflow of transactional steps, each of which adds one row.
//
// In the execution that comes to hang, counted over all processes, it then never ends.
func charging(db database, l ledger, hang int) *durable.Workflow[int, int] {
	return durable.Define("charging", func(c *durable.Ctx, _ int) (int, error) {
		for i := range charges {
			name := fmt.Sprint("charge ", i)
			var err error
			if db.Kind == "sqlite" {
				_, err = sqlite.Tx(c, name, func(ctx context.Context, tx *dbsql.Tx) (int, error) {
					l.did(ctx, c.ID(), name)
					_, err := tx.ExecContext(ctx, "INSERT INTO charges VALUES (?)", name)
					l.hangAt(hang)
					return i, err
				})
			} else {
				_, err = postgres.Tx(c, name, func(ctx context.Context, tx pgx.Tx) (int, error) {
					l.did(ctx, c.ID(), name)
					_, err := tx.Exec(ctx, "INSERT INTO "+pgx.Identifier{db.Schema, "charges"}.Sanitize()+" VALUES ($1)", name)
					l.hangAt(hang)
					return i, err
				})
			}
			if err != nil {
				return 0, err
			}
		}
		return charges, nil
	})
}

// hangAt says so and never returns if the ledger has n entries.
func (l ledger) hangAt(n int) {
	text, err := os.ReadFile(string(l))
	if err == nil && n > 0 && bytes.Count(text, []byte("\n")) == n {
		say("inside")
		select {}
	}
}

func init() {
	scenarios["charging"] = func(ctx context.Context, j *job, s durable.Store) error {
		w := charging(j.DB, j.Ledger, j.Runs)
		e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}, Lease: j.Lease})
		if err != nil {
			return err
		}
		_, err = w.Call(ctx, e, 1, durable.ID(j.ID))
		return err
	}
}

// Row 1: processes are killed in the middle of user transactions, after the user's write:
// each took effect exactly once (I11).
func TestRow01_TransactionsUnderKill9(t *testing.T) {
	onBoth(t, func(t *testing.T, db database) {
		l := newLedger(t)
		s := db.openIn(t)
		outside(t, db, "CREATE TABLE charges (step TEXT)", "CREATE TABLE charges (step text)")
		kills := 0
		for _, at := range []int{4, 11, 19} {
			p := spawn(t, job{Scenario: "charging", DB: db, Ledger: l, ID: "r", Runs: at})
			p.expect("inside")
			p.kill()
			kills++
			expire(t, db, "r")
		}
		w := charging(db, l, 0)
		e := engineOn(t, s, durable.Config{}, w)
		if out, err := w.Call(bounded(t), e, 1, durable.ID("r")); err != nil || out != charges {
			t.Errorf("%d, %v", out, err)
		}
		// A step twice is refused by the index, a step missing is missed by the count.
		outside(t, db, "CREATE UNIQUE INDEX once ON charges (step)", "CREATE UNIQUE INDEX once ON charges (step)")
		rows := count(t, db, "charges")
		// A lease can be lost on a busy machine too, so there may be more executions; never more effects.
		if rows != charges || len(l.read(t)) < charges+kills {
			t.Errorf("%d rows and %d executions of %d transactions", rows, len(l.read(t)), charges)
		}
		t.Logf("kills=%d transactions=%d rows=%d executions=%d", kills, charges, rows, len(l.read(t)))
	})
}

// count returns the rows of a table of the test's own.
func count(t *testing.T, db database, table string) (n int) {
	t.Helper()
	if db.Kind == "postgres" {
		return int(sql(t, session(t, db.Where), "SELECT count(*) FROM "+pgx.Identifier{db.Schema, table}.Sanitize())[0][0].(int64))
	}
	conn, err := dbsql.Open("sqlite", "file:"+db.Where+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.QueryRowContext(bounded(t), "SELECT count(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}
