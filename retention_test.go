package durable_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/postgres"
	"github.com/seed8ec063be/durable/sqlite"
)

// documented returns the block of SQL in docs/operations.md that follows the given HTML comment.
func documented(t *testing.T, comment string) string {
	t.Helper()
	text, err := os.ReadFile("docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile("(?s)<!-- " + comment + " -->\n```sql\n(.*?)```").FindSubmatch(text)
	if found == nil {
		t.Fatalf("docs/operations.md has no block %q", comment)
	}
	return string(found[1])
}

// database executes statements as an operator's shell does, while the engine works.
type database struct {
	exec  func(sql string) error
	count func(sql string) int
}

// TestDocumentedRetention executes the statements of docs/operations.md. They delete trees that have ended with all their rows,
// and nothing that a live run needs.
func TestDocumentedRetention(t *testing.T) {
	t.Run("sqlite", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "retention.db")
		s, err := sqlite.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		db, err := sql.Open("sqlite", "file:"+path+"?_pragma=busy_timeout(10000)")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() })
		conn, err := db.Conn(within(t))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		retention(t, s, documented(t, "retention: sqlite"), "durable_", "ended_at = ended_at - 31 * 86400 * 1000000", database{
			exec: func(text string) error { _, err := conn.ExecContext(within(t), text); return err },
			count: func(text string) (n int) {
				if err := conn.QueryRowContext(within(t), text).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			},
		})
	})
	t.Run("postgres", func(t *testing.T) {
		url, in := pgtest.URL(t), pgtest.Schema(t)
		s, err := postgres.Open(within(t), url, postgres.Schema(in))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		conn, err := pgx.Connect(within(t), url)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close(context.Background()) })
		text := strings.ReplaceAll(documented(t, "retention: postgres"), "durable.", pgx.Identifier{in}.Sanitize()+".")
		retention(t, s, text, pgx.Identifier{in}.Sanitize()+".", "ended_at = ended_at - interval '31 days'", database{
			exec: func(text string) error {
				_, err := conn.Exec(within(t), text, pgx.QueryExecModeSimpleProtocol)
				return err
			},
			count: func(text string) (n int) {
				if err := conn.QueryRow(within(t), text).Scan(&n); err != nil {
					t.Fatal(err)
				}
				return n
			},
		})
	})
}

func retention(t *testing.T, s durable.Store, statements, tables, longAgo string, db database) {
	leaf := durable.Define("leaf", func(c *durable.Ctx, wait bool) (int, error) {
		if wait {
			return c.Receive[int]("go")
		}
		return 1, c.Do("work", func(context.Context) error { return nil })
	})
	type shape struct{ Wait, WaitChild bool }
	root := durable.Define("root", func(c *durable.Ctx, in shape) (int, error) {
		if _, err := c.StartChild("detached", leaf, in.WaitChild, durable.Detached()); err != nil {
			return 0, err
		}
		if n, err := c.Child("kid", leaf, false); err != nil || !in.Wait {
			return n, err
		}
		return c.Receive[int]("go")
	})
	e := engineOn(t, s, root, leaf)
	running(t, e)
	runs := make(map[string]*durable.Run[int])
	for id, in := range map[string]shape{"old": {}, "recent": {}, "waits": {Wait: true}, "child-waits": {WaitChild: true}} {
		run, err := root.Start(within(t), e, in, durable.ID(id), durable.Tag("a.b", "c"))
		if err != nil {
			t.Fatal(err)
		}
		runs[id] = run
		if err := e.Signal(within(t), id, "unreceived", 1); err != nil && !errors.Is(err, durable.ErrState) {
			t.Fatal(err)
		}
	}
	child := func(id, name string) string {
		for _, node := range read(e.Tree(within(t), id))(t).Children {
			if node.Name == name {
				return node.RunID
			}
		}
		return ""
	}
	for _, id := range []string{"old", "recent", "child-waits"} {
		if _, err := runs[id].Result(within(t)); err != nil {
			t.Fatal(err)
		}
	}
	waitFor(t, func() bool { // four trees of three runs, of which two wait
		return db.count("SELECT count(*) FROM "+tables+"run WHERE ended_at IS NOT NULL") == 10
	})
	kid, detached := child("old", "kid"), child("child-waits", "detached")
	recent := runs["recent"].RunID()
	if err := db.exec("UPDATE " + tables + "run SET " + longAgo + " WHERE ended_at IS NOT NULL AND name <> 'recent'"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second execution deletes nothing more
		if err := db.exec(statements); err != nil {
			t.Fatal(err)
		}
	}
	for _, id := range []string{"old", kid} {
		if _, err := e.Get(within(t), id); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("run %s is there: %v", id, err)
		}
	}
	for _, id := range []string{"waits", child("waits", "kid"), "child-waits", detached, "recent", recent} {
		if _, err := e.Get(within(t), id); err != nil {
			t.Errorf("run %s: %v", id, err)
		}
	}
	for _, table := range []string{"step", "signal", "tag"} {
		if n := db.count("SELECT count(*) FROM " + tables + table + " AS x WHERE NOT EXISTS (SELECT 1 FROM " + tables + "run AS r WHERE r.id = x.run_id)"); n != 0 {
			t.Errorf("%d rows of %s are of no run", n, table)
		}
		if n := db.count("SELECT count(*) FROM " + tables + table); n == 0 {
			t.Errorf("no row of %s is left", table)
		}
	}
	for _, id := range []string{"waits", detached} { // the live runs continue
		if err := e.Signal(within(t), id, "go", 7); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := runs["waits"].Result(within(t)); n != 7 || err != nil {
		t.Errorf("the run that waited returned %d, %v", n, err)
	}
	if _, err := e.Events(within(t), durable.Page{}); err != nil {
		t.Error(err)
	}
	if again, err := root.Start(within(t), e, shape{Wait: true}, durable.ID("old")); err != nil {
		t.Errorf("the ID of a deleted run is not free: %v", err)
	} else if again.RunID() == runs["old"].RunID() {
		t.Error("a deleted run was found")
	}
}
