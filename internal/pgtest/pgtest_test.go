package pgtest

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

func TestMain(m *testing.M) {
	if os.Getenv(helperEnv) != "" {
		helper()
		return
	}
	os.Exit(Main(m))
}

func TestDatabasesAreSeparateAndDropped(t *testing.T) {
	t.Parallel()
	var urls []string
	t.Run("inner", func(t *testing.T) {
		for range 2 {
			url := URL(t)
			query(t, url, "CREATE TABLE here (n int)") // fails in a database that is not empty
			urls = append(urls, url)
		}
	})
	for _, url := range urls {
		conn, err := pgx.Connect(t.Context(), url)
		if err == nil {
			conn.Close(t.Context())
			t.Errorf("%s is there after its test", url)
		}
	}
}

func TestCopiesHaveTheContentOfTheirTemplate(t *testing.T) {
	t.Parallel()
	filled := 0
	fill := func(ctx context.Context, url string) error {
		filled++
		return execute(ctx, url, "CREATE TABLE here AS SELECT 7 AS n")
	}
	var template string
	for range 2 {
		url := CopyURL(t, "seven", fill)
		if n := query(t, url, "DELETE FROM here RETURNING n::text"); n != "7" { // each copy is one of its own
			t.Errorf("the table of a copy contains %s, want 7", n)
		}
		template = templates.made["seven"]
	}
	if filled != 1 || query(t, URL(t), "SELECT count(*)::text FROM pg_database WHERE datname = '"+template+"'") != "1" {
		t.Errorf("the template %q was filled %d times, want once", template, filled)
	}
	if _, err := templateOf("none", func(context.Context, string) error { return errDown }); !errors.Is(err, errDown) {
		t.Errorf("a template that cannot be filled: got %v, want %v", err, errDown)
	}
}

func TestSharedServer(t *testing.T) {
	t.Parallel()
	if os.Getenv("DATABASE_URL") != "" {
		t.Log("DATABASE_URL is set: its settings are its owner's")
		return
	}
	url := URL(t)
	for setting, want := range map[string]string{"fsync": "off", "max_connections": "300", "server_encoding": "UTF8"} {
		if got := query(t, url, "SELECT current_setting('"+setting+"')"); got != want {
			t.Errorf("%s: got %s, want %s", setting, got, want)
		}
	}
}

func TestSchemaNamesDiffer(t *testing.T) {
	t.Parallel()
	url, first, second := URL(t), Schema(t), Schema(t)
	query(t, url, "CREATE SCHEMA "+first)
	query(t, url, "CREATE SCHEMA "+second)
}

func TestTemporaryFilesAreInMemory(t *testing.T) {
	if freeBytes(memoryFolder) < minFreeBytes {
		t.Skip("there is no in-memory file system with enough room")
	}
	t.Setenv("TMPDIR", "")
	dir := ""
	if code := InMemory(func() int {
		dir = os.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "file"), nil, 0o600); err != nil {
			t.Error(err)
		}
		return 7
	}); code != 7 {
		t.Errorf("the exit code is %d, want 7", code)
	}
	if filepath.Dir(dir) != memoryFolder {
		t.Errorf("temporary files are in %s, want a folder of %s", dir, memoryFolder)
	}
	if _, err := os.Stat(dir); !os.IsNotExist(err) {
		t.Errorf("%s is there after the tests: %v", dir, err)
	}
	t.Setenv("TMPDIR", t.TempDir())
	want := os.Getenv("TMPDIR")
	if InMemory(func() int { dir = os.TempDir(); return 0 }); dir != want || os.TempDir() != want {
		t.Errorf("with TMPDIR=%s temporary files are in %s, and after the tests in %s", want, dir, os.TempDir())
	}
}

func TestWithDatabase(t *testing.T) {
	t.Parallel()
	for from, want := range map[string]string{
		"postgres://u:p@h:1/old?sslmode=disable":  "postgres://u:p@h:1/new?sslmode=disable",
		"postgresql://u@/old?host=%2Fdev%2Fshm":   "postgresql://u@/new?host=%2Fdev%2Fshm",
		"host=/tmp user=postgres dbname=postgres": "host=/tmp user=postgres dbname=postgres dbname=new",
	} {
		if got, err := withDatabase(from, "new"); err != nil || got != want {
			t.Errorf("withDatabase(%q) = %q, %v, want %q", from, got, err, want)
		}
	}
}

func TestBindirIsAnOrder(t *testing.T) {
	old := fakePostgres(t, "14.9")
	t.Setenv("PG_BINDIR", old)
	if _, err := newestInstalled(t.Context()); err == nil || !strings.Contains(err.Error(), "15 or newer") {
		t.Errorf("PG_BINDIR of version 14: got %v, want a refusal that names version 15", err)
	}
	t.Setenv("PG_BINDIR", fakePostgres(t, "19beta1"))
	if dir, err := newestInstalled(t.Context()); err != nil || dir != os.Getenv("PG_BINDIR") {
		t.Errorf("PG_BINDIR of version 19: got %q, %v", dir, err)
	}
	t.Setenv("PG_BINDIR", t.TempDir())
	if _, err := newestInstalled(t.Context()); err == nil {
		t.Error("an empty PG_BINDIR was accepted")
	}
}

func TestPathIsSearched(t *testing.T) {
	dir := fakePostgres(t, "99.1")
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	t.Setenv("PG_BINDIR", "")
	if got, err := newestInstalled(t.Context()); err != nil || got != dir {
		t.Errorf("got %q, %v, want the highest version, %s", got, err, dir)
	}
}

func TestNoClusterKeepsSettings(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "postgresql-common")
	for _, before := range []string{"", "port = 1\n"} {
		name := filepath.Join(dir, "createcluster.conf")
		want := "create_main_cluster = false\n"
		if before != "" {
			want = before
			if err := os.WriteFile(name, []byte(before), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		if err := noCluster(dir); err != nil {
			t.Fatal(err)
		}
		if got, err := os.ReadFile(name); err != nil || string(got) != want {
			t.Errorf("createcluster.conf: got %q, %v, want %q", got, err, want)
		}
	}
}

// fakePostgres makes a folder whose postgres says that it is of that version.
func fakePostgres(t *testing.T, version string) string {
	t.Helper()
	dir := t.TempDir()
	script := "#!/bin/sh\necho 'postgres (PostgreSQL) " + version + "'\n"
	for _, name := range []string{"postgres", "initdb"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(script), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command(filepath.Join(dir, "postgres")).Output(); err != nil {
		t.Fatalf("the fake does not run here: %v %s", err, out)
	}
	return dir
}

// query returns the one text value of a query, "" if it has none.
func query(t *testing.T, url, statement string) string {
	t.Helper()
	text, err := queryText(t.Context(), url, statement)
	if err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return text
}

func queryText(ctx context.Context, url, statement string) (string, error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return "", err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	var text string
	if err := conn.QueryRow(ctx, statement).Scan(&text); err != nil && !errors.Is(err, pgx.ErrNoRows) {
		return "", err
	}
	return text, nil
}
