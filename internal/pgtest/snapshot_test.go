package pgtest

import (
	"errors"
	"os"
	"testing"
)

func TestASnapshotIsRestored(t *testing.T) {
	t.Parallel()
	s, err := Start(t.Context(), Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	query(t, s.URL(), "CREATE TABLE kept AS SELECT 1 AS n")
	if err := s.Snapshot(t.Context()); !errors.Is(err, errRunning) {
		t.Errorf("a snapshot of a running server: %v", err)
	}
	down := func(do func() error) {
		t.Helper()
		if err := s.Stop(Fast); err != nil {
			t.Fatal(err)
		}
		if err := do(); err != nil {
			t.Fatal(err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	down(func() error {
		if err := s.Restore(t.Context()); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("without a snapshot: %v", err)
		}
		return s.Snapshot(t.Context())
	})
	query(t, s.URL(), "CREATE TABLE lost AS SELECT 1 AS n")
	down(func() error { return s.Restore(t.Context()) })
	if n := query(t, s.URL(), "SELECT count(*)::text FROM kept"); n != "1" {
		t.Errorf("%s rows are kept", n)
	}
	if there := query(t, s.URL(), "SELECT (to_regclass('lost') IS NULL)::text"); there != "true" {
		t.Error("what came after the snapshot is still there")
	}
}
