package faults

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/realtime"
	"github.com/seed8ec063be/durable/postgres"
)

// codes counts the error codes that the database returned to functions of transactional steps.
type codes struct {
	mu   sync.Mutex
	seen map[string]int
}

// note counts the error by its SQLSTATE, and returns it.
func (c *codes) note(err error) error {
	if err == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.seen == nil {
		c.seen = make(map[string]int)
	}
	code := "connection"
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok {
		code = pg.Code
	}
	c.seen[code]++
	return err
}

func (c *codes) count(code string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.seen[code]
}

// hostile are settings that no engine could live with, made for users.
var hostile = map[string]string{
	"statement_timeout": "100ms", "lock_timeout": "100ms", "idle_in_transaction_session_timeout": "100ms",
	"default_transaction_isolation": "serializable",
}

// hostileWork is a workflow of transactional steps, each of which meets one of the settings
// when it is first executed, and adds one row.
func hostileWork(l ledger, seen *codes, runs int32) *durable.Workflow[int, int] {
	var gathered, read atomic.Int32
	step := func(c *durable.Ctx, name string, meet func(ctx context.Context, tx pgx.Tx, first bool) error) error {
		first := true
		_, err := postgres.Tx(c, name, func(ctx context.Context, tx pgx.Tx) (string, error) {
			l.did(ctx, c.ID(), name)
			was := first
			first = false
			var isolation string
			err := tx.QueryRow(ctx, "INSERT INTO charges VALUES ($1, $2) RETURNING current_setting('transaction_isolation')", c.ID(), name).Scan(&isolation)
			if err == nil && isolation != "serializable" {
				return "", fmt.Errorf("the user's transaction is %s", isolation)
			}
			if err == nil {
				err = meet(ctx, tx, was)
			}
			return isolation, seen.note(err)
		})
		return err
	}
	exec := func(ctx context.Context, tx pgx.Tx, text string) error {
		_, err := tx.Exec(ctx, text)
		return err
	}
	return durable.Define("hostile", func(c *durable.Ctx, in int) (int, error) {
		return in, errors.Join(
			step(c, "statement", func(ctx context.Context, tx pgx.Tx, first bool) error {
				if first {
					return exec(ctx, tx, "SELECT pg_sleep(5)")
				}
				return nil
			}),
			step(c, "idle", func(ctx context.Context, tx pgx.Tx, first bool) error {
				if first {
					realtime.Pass(300*time.Millisecond, "longer than the timeout of idle transactions")
				}
				return exec(ctx, tx, "SELECT 1")
			}),
			step(c, "lock", func(ctx context.Context, tx pgx.Tx, _ bool) error {
				if err := exec(ctx, tx, "SET LOCAL statement_timeout = 0"); err != nil {
					return err
				}
				return exec(ctx, tx, "UPDATE counter SET n = n WHERE name = 'locked'")
			}),
			c.Do("gather", func(ctx context.Context) error {
				gathered.Add(1)
				within(patience, func() bool { return gathered.Load() >= runs || ctx.Err() != nil })
				return ctx.Err()
			}),
			step(c, "serial", func(ctx context.Context, tx pgx.Tx, _ bool) error { // read, then written: a lost update, if it may be
				n := 0
				if err := tx.QueryRow(ctx, "SELECT n FROM counter WHERE name = 'shared'").Scan(&n); err != nil {
					return err
				}
				read.Add(1)
				within(50*time.Millisecond, func() bool { return read.Load() > 1 })
				_, err := tx.Exec(ctx, "UPDATE counter SET n = $1 WHERE name = 'shared'", n+1)
				return err
			}),
		)
	})
}

// Row 16: the database, the role or the connection sets timeouts of 100 ms and isolation
// SERIALIZABLE. User transactions meet each of them and are made again, with one effect;
// the engine's own do not care, and everything ends.
func TestRow16_HostileSettings(t *testing.T) {
	t.Parallel()
	for _, where := range []string{"database", "role", "connection"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			const runs = 6
			db := database{Kind: "postgres", Where: pgtest.URL(t), Schema: "durable"}
			admin := session(t, db.Where)
			name := sql(t, admin, "SELECT quote_ident(current_database())")[0][0].(string)
			for setting, value := range hostile {
				switch where {
				case "database":
					sql(t, admin, "ALTER DATABASE "+name+" SET "+setting+" = '"+value+"'")
				case "role":
					sql(t, admin, "ALTER ROLE CURRENT_USER IN DATABASE "+name+" SET "+setting+" = '"+value+"'")
				default:
					db.Where = with(db.Where, setting+"="+strings.ReplaceAll(value, " ", "%20"))
				}
			}
			if where == "role" { // the setting is the server's, and would outlive the database
				t.Cleanup(func() {
					_, _ = admin.Exec(context.Background(), "ALTER ROLE CURRENT_USER IN DATABASE "+name+" RESET ALL")
				})
			}
			sql(t, admin, "CREATE TABLE charges (run text, step text)")
			sql(t, admin, "CREATE TABLE counter (name text PRIMARY KEY, n int)")
			sql(t, admin, "INSERT INTO counter VALUES ('locked', 0), ('shared', 0)")
			s := db.openIn(t) // which migrates with these settings
			l, seen := newLedger(t), new(codes)
			w := hostileWork(l, seen, runs)
			e := engineOn(t, s, durable.Config{Lease: 2 * time.Second}, w, calm(l))
			holder, err := admin.Begin(bounded(t))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := holder.Exec(bounded(t), "UPDATE counter SET n = 1 WHERE name = 'locked'"); err != nil {
				t.Fatal(err)
			}
			runEngine(t, e)
			began := time.Now()
			var handles []*durable.Run[int]
			for i := range runs {
				handles = append(handles, start(t, e, w, i, durable.ID(fmt.Sprint("r", i))))
			}
			await(t, "a transaction that waits for a lock", func() bool { return seen.count("55P03") > 0 })
			if err := holder.Commit(bounded(t)); err != nil {
				t.Fatal(err)
			}
			epochs := 0
			for i, run := range handles {
				if v, err := run.Result(bounded(t)); err != nil || v != i {
					t.Errorf("run %d: %d, %v", i, v, err)
				}
				epochs = max(epochs, info(t, e, run.ID()).Epoch)
			}
			if v, err := calm(l).Call(bounded(t), e, 5); err != nil || v != 20 {
				t.Errorf("a run without transactions: %d, %v", v, err)
			}
			took := time.Since(began)
			executed := len(l.of(t, "", "statement")) + len(l.of(t, "", "idle")) + len(l.of(t, "", "lock")) + len(l.of(t, "", "serial"))
			rows := sql(t, admin, "SELECT count(*), count(DISTINCT (run, step)), (SELECT n FROM counter WHERE name = 'shared') FROM charges")[0]
			if rows[0] != int64(4*runs) || rows[1] != int64(4*runs) || rows[2] != int32(runs) {
				t.Errorf("%v rows of %v steps, want %d; the counter is %v, want %d", rows[0], rows[1], 4*runs, rows[2], runs)
			}
			ended, conflicts := seen.count("25P03")+seen.count("connection"), len(l.of(t, "", "serial"))-runs
			if seen.count("57014") == 0 || ended == 0 || conflicts == 0 || executed <= 4*runs {
				t.Errorf("not every fault occurred: %v, %d serialization conflicts", seen.seen, conflicts)
			}
			t.Logf("runs=%d transactions=%d executions=%d statement_timeouts=%d lock_timeouts=%d idle_timeouts=%d serialization_conflicts=%d rows=%v most_epochs=%d took=%v",
				runs, 4*runs, executed, seen.count("57014"), seen.count("55P03"), ended, conflicts, rows[0], epochs, took.Round(10*time.Millisecond))
		})
	}
}
