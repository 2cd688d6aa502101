package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/seed8ec063be/durable/internal/realtime"
)

// Statements on Writer wait for another process that writes, as transactions on it do, and each is executed once.
func TestStatementsOnWriterWaitForOtherProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "shop.db")
	open := func() *database {
		s, err := openDatabase(path)
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
	a, b := open(), open()
	if _, err := a.Writer().ExecContext(t.Context(), "CREATE TABLE u (a)"); err != nil {
		t.Fatal(err)
	}
	prepared, err := b.Writer().PrepareContext(t.Context(), "INSERT INTO u VALUES (2)")
	if err != nil {
		t.Fatal(err)
	}
	defer prepared.Close()
	var n int
	for name, statement := range map[string]func() error{
		"Exec": func() error { _, err := b.Writer().ExecContext(t.Context(), "INSERT INTO u VALUES (2)"); return err },
		"QueryRow": func() error {
			return b.Writer().QueryRowContext(t.Context(), "INSERT INTO u VALUES (2) RETURNING a").Scan(&n)
		},
		"a prepared one": func() error { _, err := prepared.ExecContext(t.Context()); return err },
		"two statements": func() error {
			_, err := b.Writer().ExecContext(t.Context(), "DELETE FROM u WHERE a = 0; INSERT INTO u VALUES (2)")
			return err
		},
		"a prepared query": func() error {
			return b.Writer().QueryRowContext(t.Context(), "INSERT INTO u SELECT ? RETURNING a", 2).Scan(&n)
		},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := a.Writer().ExecContext(t.Context(), "DELETE FROM u"); err != nil {
				t.Fatal(err)
			}
			tx, err := a.Writer().BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := tx.ExecContext(t.Context(), "INSERT INTO u VALUES (1)"); err != nil {
				t.Fatal(err)
			}
			committed := make(chan error, 1)
			go func() {
				realtime.Pass(100*time.Millisecond, "the statement waits for the file meanwhile")
				committed <- tx.Commit()
			}()
			if err := statement(); err != nil {
				t.Error("the statement did not wait:", err)
			}
			if err := <-committed; err != nil {
				t.Error(err)
			}
			if err := b.Writer().QueryRowContext(t.Context(), "SELECT count(*) FROM u").Scan(&n); err != nil || n != 2 {
				t.Errorf("%d rows, %v; want 2", n, err)
			}
		})
	}
}
