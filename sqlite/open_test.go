package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/schema"
)

func TestBadPaths(t *testing.T) {
	folder := t.TempDir()
	text := filepath.Join(folder, "notes.txt")
	if err := os.WriteFile(text, []byte(strings.Repeat("these are notes. ", 500)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{
		"", ":memory:", "file::memory:?cache=shared", "file:x.db", "a\x00b", folder, filepath.Join(folder, "no", "such", "x.db"),
		text, os.DevNull, filepath.Join(text, "x.db"),
	} {
		s, err := openDatabase(path)
		var typed *OpenError
		if !errors.As(err, &typed) || s != nil {
			t.Errorf("%q: %v", path, err)
			continue
		}
		if typed.Path != path || typed.Fix == "" {
			t.Errorf("%q: %+v", path, typed)
		}
		t.Log(err)
	}
}

// A wait of less than nothing is refused.
func TestNegativePatience(t *testing.T) {
	s, err := openDatabase(filepath.Join(t.TempDir(), "x.db"), BusyTimeout(-time.Second))
	var typed *OpenError
	if !errors.As(err, &typed) || s != nil || !strings.Contains(err.Error(), "-1s") {
		t.Errorf("got %v", err)
	}
}

// No character in a path is special.
func TestOddPaths(t *testing.T) {
	folder := t.TempDir()
	for _, name := range []string{"a?b", "a#b.db", "100%", "%41", "a b&c=d;e", "ü🙂", "a?_pragma=query_only(1)", "'"} {
		s := openAt(t, filepath.Join(folder, name))
		s.mustCommit(t, newStart("x"))
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
}

func TestLinksAndRelativePathsMeet(t *testing.T) {
	s := openTest(t)
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(s.path, link); err != nil {
		t.Skip(err)
	}
	if other := openAt(t, link); other.workerLocks != s.workerLocks {
		t.Error(other.workerLocks, s.workerLocks)
	}
	t.Chdir(filepath.Dir(s.path))
	if other := openAt(t, filepath.Base(s.path)); other.path != s.path {
		t.Error(other.path, s.path)
	}
}

func TestOpenersRace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "durable.db")
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			s, err := openDatabase(path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Commit(t.Context(), &store.Batch{Starts: []*store.StartWrite{newStart("")}}); err != nil {
				t.Error(err)
			}
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

// edit changes a file behind durable's back.
func edit(t *testing.T, path string, statements ...string) {
	t.Helper()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range statements {
		if _, err := db.ExecContext(t.Context(), text); err != nil {
			t.Fatal(text, err)
		}
	}
}

func TestSchemaVersions(t *testing.T) {
	path := filepath.Join(t.TempDir(), "durable.db")
	if _, err := openDatabase(path, WithoutMigrations()); !errors.Is(err, store.ErrSchema) {
		t.Fatal("an empty file without migrations:", err)
	}
	s := openAt(t, path)
	openAt(t, path, WithoutMigrations())
	edit(t, s.path, "INSERT INTO durable_migration VALUES (1000, '1000_next.sql', 0)")
	for _, opts := range [][]Option{nil, {WithoutMigrations()}} {
		if _, err := openDatabase(path, opts...); !errors.Is(err, store.ErrSchema) {
			t.Fatal("a newer file:", err)
		}
	}
}

// A file of the version before is brought up to date, with what is in it; a run that
// crashes had paused can then be resumed.
func TestOldFileIsMigrated(t *testing.T) {
	path := filepath.Join(t.TempDir(), "durable.db")
	first := schema.SQLite()[0]
	edit(t, path, first.SQL, string(mustRead(t, "migration_table_create.sql")), "INSERT INTO durable_migration VALUES (1, '"+first.Name+"', 0)",
		`INSERT INTO durable_run (id, shard, name, workflow, queue, lane, status, epoch, crashes, created_at, reason)
			VALUES (x'018f0000000070008000000000000003', 3, 'paused', 'test', 'default', 4, 4, 5, 5, 0, 'it crashes')`,
		`INSERT INTO durable_run (id, shard, name, workflow, queue, lane, status, epoch, wake_at, created_at)
			VALUES (x'018f0000000070008000000000000004', 4, 'due', 'test', 'default', 4, 1, 0, 1, 0)`)
	if _, err := openDatabase(path, WithoutMigrations()); !errors.Is(err, store.ErrSchema) {
		t.Fatal("an old file without migrations:", err)
	}
	s := openAt(t, path)
	id := uuid.MustParse("018f0000-0000-7000-8000-000000000003")
	o := &store.ControlRequest{Verb: store.VerbResume, Runs: []uuid.UUID{id}, Now: now(), ShiftTimers: true}
	if err := s.ControlRuns(t.Context(), o); err != nil || o.Results[0].ChangedCount != 1 || o.Results[0].ControlBefore != store.PausedItself {
		t.Fatalf("%+v %v", o.Results, err)
	}
	if claims := claimAt(t, s, now()); len(claims.Runs) != 2 {
		t.Fatalf("claimed %+v", claims)
	}
	openAt(t, path, WithoutMigrations())
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	text, err := sqlFiles.ReadFile("sql/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestOtherEncodingIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "utf16.db")
	edit(t, path, "PRAGMA encoding = 'UTF-16'", "CREATE TABLE own (x TEXT)")
	var typed *OpenError
	if _, err := openDatabase(path); !errors.As(err, &typed) {
		t.Fatal(err)
	}
}

func TestOwnTablesAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	edit(t, path, "CREATE TABLE own (x TEXT)", "INSERT INTO own VALUES ('kept')")
	s := openAt(t, path)
	var x string
	if err := s.readerDB.QueryRowContext(t.Context(), "SELECT x FROM own").Scan(&x); err != nil || x != "kept" {
		t.Fatal(x, err)
	}
	if _, err := s.readerDB.ExecContext(t.Context(), "DELETE FROM own"); err == nil {
		t.Fatal("a reader wrote")
	}
}

func TestDurability(t *testing.T) {
	for want, opts := range map[int][]Option{2: nil, 1: {Synchronous(Normal)}} {
		s := openTest(t, opts...)
		var level int
		if err := s.writer().QueryRowContext(t.Context(), "PRAGMA synchronous").Scan(&level); err != nil || level != want {
			t.Error(level, err)
		}
	}
}

// If another process keeps the file locked, the error of Open names the file, what Open waited for and for how long, and the fix.
func TestALockedFileIsNamedWithTheFix(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	other, err := sql.Open("sqlite", "file:"+path+"?_pragma=locking_mode(exclusive)")
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	if _, err := other.Exec("BEGIN EXCLUSIVE; CREATE TABLE t (a)"); err != nil {
		t.Fatal(err)
	}
	check := func(err error) {
		t.Helper()
		var typed *OpenError
		if !errors.As(err, &typed) || typed.Path != path || !strings.Contains(typed.Problem, "locked") || !strings.Contains(typed.Fix, "BusyTimeout") {
			t.Errorf("got %v", err)
		}
	}
	s, err := openDatabase(path, BusyTimeout(20*time.Millisecond))
	if check(err); s != nil {
		t.Error("a locked file was opened")
	}
	err = explainOpenError(path, 20*time.Millisecond, fmt.Errorf("sqlite: open: %w", context.DeadlineExceeded))
	if check(err); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}
