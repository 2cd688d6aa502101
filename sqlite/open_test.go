package sqlite

import (
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
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
		s, err := Open(path)
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
	if other := openAt(t, link); other.presence != s.presence {
		t.Error(other.presence, s.presence)
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
			s, err := Open(path)
			if err != nil {
				t.Error(err)
				return
			}
			if err := s.Commit(t.Context(), &store.Batch{Starts: []*store.Start{newStart("")}}); err != nil {
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
	if _, err := Open(path, WithoutMigrations()); !errors.Is(err, store.ErrSchema) {
		t.Fatal("an empty file without migrations:", err)
	}
	s := openAt(t, path)
	openAt(t, path, WithoutMigrations())
	edit(t, s.path, "INSERT INTO durable_migration VALUES (2, '0002_next.sql', 0)")
	for _, opts := range [][]Option{nil, {WithoutMigrations()}} {
		if _, err := Open(path, opts...); !errors.Is(err, store.ErrSchema) {
			t.Fatal("a newer file:", err)
		}
	}
}

func TestOtherEncodingIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "utf16.db")
	edit(t, path, "PRAGMA encoding = 'UTF-16'", "CREATE TABLE own (x TEXT)")
	var typed *OpenError
	if _, err := Open(path); !errors.As(err, &typed) {
		t.Fatal(err)
	}
}

func TestOwnTablesAreLeftAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	edit(t, path, "CREATE TABLE own (x TEXT)", "INSERT INTO own VALUES ('kept')")
	s := openAt(t, path)
	var x string
	if err := s.readers.QueryRowContext(t.Context(), "SELECT x FROM own").Scan(&x); err != nil || x != "kept" {
		t.Fatal(x, err)
	}
	if _, err := s.readers.ExecContext(t.Context(), "DELETE FROM own"); err == nil {
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
