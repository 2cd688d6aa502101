package faults

import (
	"context"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/pgtest"
)

// with adds a parameter to a URL.
func with(url, param string) string {
	if strings.Contains(url, "?") {
		return url + "&" + param
	}
	return url + "?" + param
}

// ownServer is a server for one test alone, with fsync on, that it may kill.
func ownServer(t testing.TB) *pgtest.Server {
	t.Helper()
	s, err := pgtest.Start(t.Context(), pgtest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// session is a connection of a test's own, outside of the library.
func session(t testing.TB, url string) *pgx.Conn {
	t.Helper()
	conn, err := pgx.Connect(bounded(t), with(url, "application_name=test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	return conn
}

// sql runs one statement and returns its rows.
func sql(t testing.TB, conn *pgx.Conn, text string, args ...any) [][]any {
	t.Helper()
	found, err := conn.Query(bounded(t), text, args...)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := pgx.CollectRows(found, func(row pgx.CollectableRow) ([]any, error) { return row.Values() })
	if err != nil {
		t.Fatal(text, err)
	}
	return rows
}
