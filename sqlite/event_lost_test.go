package sqlite

import (
	"errors"
	"path/filepath"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A cursor names its event. If that is gone and older ones are there, the file was restored, and what
// came after it cannot be told: the cursor is refused. Swept from the oldest on, events leave it valid.
func TestACursorOfALostEventIsRefused(t *testing.T) {
	s, err := openDatabase(filepath.Join(t.TempDir(), "a.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	ctx := t.Context()
	exec := func(text string, args ...any) {
		t.Helper()
		if _, err := s.Writer().ExecContext(ctx, text, args...); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		run := uuid.New()
		exec("INSERT INTO durable_event (run_id, type, at) VALUES (?, 5, ?)", run[:], int64(1_000_000*(i+1)))
	}
	all, err := s.Events(ctx, "", 10)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	exec("DELETE FROM durable_event WHERE at = 1000000")
	for _, e := range all {
		if _, err := s.Events(ctx, e.Cursor, 10); err != nil {
			t.Errorf("the cursor %s: %v", e.Cursor, err)
		}
	}
	exec("DELETE FROM durable_event WHERE at = 3000000")
	if got, err := s.Events(ctx, all[2].Cursor, 10); !errors.Is(err, store.ErrRestored) || !errors.Is(err, store.ErrBadData) {
		t.Errorf("the cursor of a lost event leads to %d events, %v", len(got), err)
	}
	if got, err := s.Events(ctx, all[0].Cursor, 10); err != nil || len(got) != 1 {
		t.Errorf("the cursor of a swept event leads to %d events, %v", len(got), err)
	}
	exec("UPDATE durable_event SET id = 3") // the number was given anew
	if _, err := s.Events(ctx, all[2].Cursor, 10); !errors.Is(err, store.ErrRestored) {
		t.Errorf("a cursor whose number names another event now: %v", err)
	}
}
