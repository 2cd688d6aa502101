package model_test

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"pgregory.net/rapid"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/bridge"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// What all tests of this package did, for the line at the end.
var checks, actions, divergences atomic.Int64

// The flags -rapid.checks and -rapid.steps say how much is tried. Without them it is a few
// seconds' worth; rapid's own files of failures are not written.
func TestMain(m *testing.M) {
	flag.Parse()
	given := make(map[string]bool)
	flag.Visit(func(f *flag.Flag) { given[f.Name] = true })
	for name, value := range map[string]string{"rapid.checks": modest(), "rapid.steps": "40", "rapid.nofailfile": "true", "rapid.shrinktime": "20s"} {
		if given[name] {
			continue
		}
		if err := flag.Set(name, value); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
	}
	checksGiven = given["rapid.checks"] || os.Getenv("DURABLE_MODEL_CHECKS") != ""
	code := pgtest.InMemory(func() int { return pgtest.Main(m) })
	fmt.Printf("model: checks=%d actions=%d divergences=%d\n", checks.Load(), actions.Load(), divergences.Load())
	os.Exit(code)
}

// modest is how many checks are made of each store, unless the environment says another
// number.
func modest() string {
	if n := os.Getenv("DURABLE_MODEL_CHECKS"); n != "" {
		return n
	}
	return "12"
}

// checksGiven tells that the environment or a flag says how many checks are made.
var checksGiven bool

// How many checks onBeds makes of a property, unless a number of checks was given.
const (
	allChecks = 0 // as many as rapid makes
	fewChecks = 5 // for properties whose checks are long
)

// onBeds checks the property on a database of each kind.
func onBeds(t *testing.T, atMost int, property func(t *rapid.T, b *bed)) {
	for kind, open := range beds {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			b := open(t)
			passed, failed := 0, false
			rapid.Check(t, func(t *rapid.T) {
				if atMost > 0 && passed == atMost && !checksGiven {
					return
				}
				whole := false
				defer func() { failed = failed || !whole }()
				property(t, b)
				if whole = true; !failed { // a check that failed is made smaller, and no try of that is left out
					passed++
				}
			})
		})
	}
}

// bed is one database with two handles, as two processes have them.
type bed struct {
	kind    string
	handles [2]store.Store
	empty   func(ctx context.Context) error // removes all that a check has left
	// transactions is in how many the runs were written that work, which changes all, has
	// changed.
	transactions func(ctx context.Context, work func() error) (int, error)
	third        *session // nil where a database has no locks of rows
	writer       *sql.DB  // of SQLite; else nil
	// inTransaction makes a start that folds in a transaction of a user. It calls finish, and then commits if that says so.
	inTransaction func(ctx context.Context, c *store.StartKeyChangeRequest, finish func() (commits bool)) error
}

// beds makes a database of each kind.
var beds = map[string]func(t *testing.T) *bed{"sqlite": onSQLite, "postgres": onPostgres}

// note counts a test that found a divergence.
func note(t *testing.T) {
	t.Cleanup(func() {
		if t.Failed() {
			divergences.Add(1)
		}
	})
}

// tables are all that a check fills, without the prefix of either database.
var tables = []string{
	"event", "tag", "signal", "step", "generation", "divergence", "run", "worker", "place", "queue_key", "queue", "permit", "limit_key", "step_limit", "fold", "fire", "fired", "schedule",
}

func onSQLite(t *testing.T) *bed {
	note(t)
	path := filepath.Join(t.TempDir(), "durable.db")
	b := &bed{kind: "sqlite"}
	var writer *sql.DB
	for i := range b.handles {
		s, err := sqlite.Open(path, sqlite.Synchronous(sqlite.Normal))
		if err != nil {
			t.Fatal(err)
		}
		b.keep(t, i, s)
		writer = s.Writer()
	}
	b.writer = writer
	b.inTransaction = func(ctx context.Context, c *store.StartKeyChangeRequest, finish func() bool) error {
		tx, err := writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		insert := insertFold(func() { _, _ = sqlite.StartTx(ctx, tx, nil, (*durable.Workflow[int, int])(nil), 0) })
		if err := insert(ctx, b.handles[1], c); err != nil || !finish() {
			return err
		}
		return tx.Commit()
	}
	b.empty = func(ctx context.Context) error {
		tx, err := writer.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		for _, table := range tables {
			if _, err := tx.ExecContext(ctx, "DELETE FROM durable_"+table); err != nil {
				return err
			}
		}
		return tx.Commit()
	}
	b.transactions = func(_ context.Context, work func() error) (int, error) {
		before, err := commitFrames(path)
		if err == nil {
			err = work()
		}
		if err != nil {
			return 0, err
		}
		after, err := commitFrames(path)
		return after - before, err
	}
	return b
}

func onPostgres(t *testing.T) *bed {
	note(t)
	url, schema := pgtest.ServerURL(t), pgtest.Schema(t)
	b := &bed{kind: "postgres"}
	for i := range b.handles {
		s, err := postgres.Open(t.Context(), url, postgres.Schema(schema))
		if err != nil {
			t.Fatal(err)
		}
		b.keep(t, i, s)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	b.empty = func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			for _, table := range tables {
				if _, err := tx.Exec(ctx, "DELETE FROM "+schema+"."+table); err != nil {
					return err
				}
			}
			return nil
		})
	}
	b.transactions = func(ctx context.Context, work func() error) (n int, err error) {
		if err = work(); err == nil {
			err = conn.QueryRow(ctx, "SELECT count(DISTINCT xmin::text) FROM "+schema+".run").Scan(&n)
		}
		return n, err
	}
	b.inTransaction = func(ctx context.Context, c *store.StartKeyChangeRequest, finish func() bool) error {
		tx, err := conn.Begin(ctx)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback(context.Background()) }()
		insert := insertFold(func() { _, _ = postgres.StartTx(ctx, tx, nil, (*durable.Workflow[int, int])(nil), 0) })
		if err := insert(ctx, b.handles[1], c); err != nil || !finish() {
			return err
		}
		return tx.Commit(ctx)
	}
	b.third = &session{conn: conn, schema: schema}
	return b
}

func (b *bed) keep(t *testing.T, i int, s store.Store) {
	b.handles[i] = s
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
	})
}

// startTx keeps two tests from replacing bridge.StartTx at the same time.
var startTx sync.Mutex

// insertFold returns the function with which StartTx of a store makes a start that folds. call calls StartTx, which goes no further than
// to the bridge, so that a test can decide about the start with a clock of its own.
func insertFold(call func()) (insert bridge.InsertWithStartKey) {
	startTx.Lock()
	defer startTx.Unlock()
	real := bridge.StartTx
	defer func() {
		bridge.StartTx = real
		_ = recover()
	}()
	bridge.StartTx = func(_ bridge.InsertStarts, f bridge.InsertWithStartKey) any {
		insert = f
		panic("StartTx goes no further")
	}
	call()
	return nil
}

// base is when everything begins. The stores take times as they come.
var base = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
