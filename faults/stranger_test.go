package faults

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/testsize"
	"github.com/seed8ec063be/durable/postgres"
)

//go:embed testdata/stranger.sql
var strangersTrap string

//go:embed testdata/casts.sql
var strangersCasts string

// shop is a database with an application's role, and a stranger who may create in public
// and has laid a trap there.
type shop struct {
	admin           *pgx.Conn
	url             string // the application's
	owner, stranger string
}

func newShop(t *testing.T) *shop {
	t.Helper()
	url := pgtest.URL(t)
	s := &shop{admin: session(t, url)}
	suffix := strings.TrimPrefix(sql(t, s.admin, "SELECT current_database()::text")[0][0].(string), "pgtest_")
	s.owner, s.stranger = "shop_"+suffix, "stranger_"+suffix
	for _, text := range []string{
		"CREATE ROLE " + s.owner + " NOLOGIN",
		"CREATE ROLE " + s.stranger + " NOLOGIN",
		"GRANT CREATE ON DATABASE pgtest_" + suffix + " TO " + s.owner + ", " + s.stranger,
		"GRANT CREATE ON SCHEMA public TO " + s.owner + ", " + s.stranger,
	} {
		sql(t, s.admin, text)
	}
	t.Cleanup(func() {
		for _, text := range []string{"RESET ROLE", "DROP OWNED BY " + s.owner + ", " + s.stranger + " CASCADE", "DROP ROLE " + s.owner, "DROP ROLE " + s.stranger} {
			if _, err := s.admin.Exec(context.Background(), text); err != nil {
				t.Errorf("%s: %v", text, err)
			}
		}
	})
	s.url = with(url, "options=-c%20role%3D"+s.owner)
	return s
}

// asStranger executes statements as the stranger.
func (s *shop) asStranger(t *testing.T, text string) {
	t.Helper()
	for _, text := range []string{"SET search_path = pg_catalog", "SET ROLE " + s.stranger, text, "RESET ROLE"} {
		if _, err := s.admin.Exec(bounded(t), text, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
	}
}

// Row 42: a role that may create in public has operators, functions, types and tables there
// that suit durable's statements better than PostgreSQL's own, or are found before them. None
// is executed by the application's role, whatever its search_path: not in the store's own
// sessions, in migrations and views, nor by durable's statements in transactions of the user's.
func TestRow42_NothingOfAStrangerIsExecuted(t *testing.T) {
	nothingOfAStranger(t, strangersTrap, "SELECT 1::smallint & 1::integer")
}

// Row 42: the stranger has types with the names of PostgreSQL's own, and implicit casts from and to those.
func TestRow42_NoCastOfAStrangerIsExecuted(t *testing.T) {
	nothingOfAStranger(t, strangersCasts, "SELECT 'a'::pg_catalog.text::public.uuid")
}

// nothingOfAStranger lets an application work with the database in which a stranger has laid the trap. The sample
// is a statement of the application's own that falls into it.
func nothingOfAStranger(t *testing.T, trap, sample string) {
	t.Parallel()
	for i, path := range []string{`"$user",public`, "public,pg_catalog"} {
		for j, mode := range []string{"cache_statement", "cache_describe", "exec"} {
			if !testsize.IsFull() && j != 2*i { // each path once, in the mode by default and in the simplest
				continue
			}
			t.Run(path+" "+mode, func(t *testing.T) {
				t.Parallel()
				s := newShop(t)
				s.asStranger(t, trap)
				cfg, err := pgxpool.ParseConfig(with(s.url, "default_query_exec_mode="+mode))
				if err != nil {
					t.Fatal(err)
				}
				cfg.ConnConfig.RuntimeParams["search_path"] = path
				pool, err := pgxpool.NewWithConfig(t.Context(), cfg)
				if err != nil {
					t.Fatal(err)
				}
				defer pool.Close()
				// The trap is set: a statement of the application's own falls into it.
				if _, err := pool.Exec(bounded(t), sample+" -- the application's"); err != nil {
					t.Fatal(err)
				}
				store, err := postgres.New(pool)
				if err != nil {
					t.Fatal(err)
				}
				defer store.Close()
				everything(t, store, pool)
				for _, view := range []string{"runs", "steps", "signals", "events"} {
					if _, err := pool.Exec(bounded(t), "SELECT * FROM durable."+view+" -- the application's"); err != nil {
						t.Error(err)
					}
				}
				own := 0
				for _, row := range sql(t, s.admin, "SELECT who::pg_catalog.text, what::pg_catalog.text, query::pg_catalog.text FROM public.loot") {
					if strings.Contains(row[2].(string), "-- the application's") && !strings.Contains(row[2].(string), "FROM durable.") {
						own++
						continue
					}
					t.Errorf("%s executed a stranger's %s in: %s", row[0], row[1], row[2])
				}
				if own == 0 {
					t.Error("the trap was not set")
				}
			})
		}
	}
}

// everything has an engine do whatever it can do with the database.
func everything(t *testing.T, s durable.Store, pool *pgxpool.Pool) {
	t.Helper()
	child := durable.Define("child", func(c *durable.Ctx, n int) (int, error) { return n, c.Sleep("a while", time.Millisecond) })
	waits := durable.Define("waits", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("go", durable.Within(time.Hour)) })
	tags := make(chan string, 16)
	work := durable.Define("work", func(c *durable.Ctx, n int) (int, error) {
		_, err := postgres.Tx(c, "book", func(ctx context.Context, tx pgx.Tx) (int, error) { return n, nil })
		if err != nil {
			return 0, err
		}
		wait := c.Callback[int]("answer")
		if err := c.Do("ask", func(context.Context) error { tags <- wait.Token(); return nil }); err != nil {
			return 0, err
		}
		got, err := wait.Wait()
		if err != nil {
			return 0, err
		}
		items, err := c.Map("items", []string{"a", "b"}, func(ctx context.Context, item string) (string, error) { return item, nil })
		if err != nil || len(items) != 2 {
			return 0, err
		}
		again := 0
		_, err = c.Step("twice", func(context.Context) (int, error) {
			if again++; again == 1 {
				return 0, errors.New("once more")
			}
			return again, nil
		}, durable.Retry(durable.Exponential(time.Millisecond, time.Millisecond, 3)))
		if err != nil {
			return 0, err
		}
		return c.Child("child", child, got+n)
	})
	e := engineOn(t, s, durable.Config{}, work, child, waits)
	stop := runEngine(t, e)
	defer stop()
	ctx := bounded(t)
	run := start(t, e, work, 1, durable.ID("work-1"), durable.Tag("shop.kind", "book"))
	if err := e.Complete(ctx, <-tags, 41); err != nil {
		t.Fatal(err)
	}
	if v, err := run.Result(ctx); err != nil || v != 42 {
		t.Fatalf("the run returned %d, %v", v, err)
	}
	for _, id := range []string{"w-1", "w-2", "w-3"} {
		inTransaction(t, pool, func(tx pgx.Tx) error {
			if _, err := postgres.StartTx(ctx, tx, e, waits, 1, durable.ID(id)); err != nil {
				return err
			}
			_, err := postgres.StartTx(ctx, tx, e, waits, 1, durable.ID(id)) // it is there
			return err
		})
	}
	inTransaction(t, pool, func(tx pgx.Tx) error {
		_, err := postgres.StartTx(ctx, tx, e, child, 1, durable.Tag("shop.kind", "book"))
		return err
	})
	if _, err := e.Pause(ctx, "w-1", durable.Reason("a test")); err != nil {
		t.Error(err)
	}
	if _, err := e.Resume(ctx, "w-1", durable.FreezeTimers()); err != nil {
		t.Error(err)
	}
	for range 2 { // the second time it is there
		inTransaction(t, pool, func(tx pgx.Tx) error {
			return postgres.SignalTx(ctx, tx, e, "w-1", "go", "on", durable.SignalKey("once"))
		})
	}
	if err := e.Signal(ctx, "w-2", "go", "on"); err != nil {
		t.Error(err)
	}
	if _, err := e.Cancel(ctx, "w-3"); err != nil {
		t.Error(err)
	}
	for _, id := range []string{"w-1", "w-2"} {
		if v, err := result(t, e, waits, id); err != nil || v != "on" {
			t.Errorf("%s returned %q, %v", id, v, err)
		}
	}
	if err := e.SetTags(ctx, "work-1", map[string]string{"shop.kind": "", "shop.size": "big"}); err != nil {
		t.Error(err)
	}
	for _, f := range []durable.Filter{{}, {Tag: "shop.size"}, {Tag: "shop.size", TagValue: "big"}, {IDPrefix: "w-"}, {Workflow: "waits", Status: []durable.Status{durable.StatusCompleted}}} {
		if _, err := e.List(ctx, f, durable.Page{}); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
	if _, err := e.PauseAll(ctx, durable.Filter{Workflow: "waits"}); err != nil {
		t.Error(err)
	}
	history(t, e, "work-1")
	info(t, e, "work-1")
	if _, err := e.Workers(ctx); err != nil {
		t.Error(err)
	}
	watch, done := context.WithCancel(ctx)
	defer done()
	seen := 0
	for _, err := range e.WatchEvents(watch, "") {
		if err != nil {
			break
		}
		if seen++; seen == 3 {
			done()
		}
	}
	if seen < 3 {
		t.Errorf("%d events", seen)
	}
}

// inTransaction commits what fn does.
func inTransaction(t *testing.T, pool *pgxpool.Pool, fn func(pgx.Tx) error) {
	t.Helper()
	if err := pgx.BeginTxFunc(bounded(t), pool, pgx.TxOptions{AccessMode: pgx.ReadWrite}, fn); err != nil {
		t.Error(fmt.Errorf("in a transaction of the user's: %w", err))
	}
}
