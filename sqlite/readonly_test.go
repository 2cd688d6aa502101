package sqlite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// closedFile is a store's file that no process has open.
func closedFile(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	path := filepath.Join(folder, "durable.db")
	s, err := openDatabase(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), os.Chmod(folder, 0o777)); err != nil { //nolint:gosec // for the other user
		t.Fatal(err)
	}
	return path
}

// A read-only file is refused, and nothing is left behind that keeps it from being used once it can be written.
func TestReadOnlyFileLeavesNothingBehind(t *testing.T) {
	path := closedFile(t)
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if err := openUnprivileged(t, path); err == nil || !strings.Contains(err.Error(), "-shm") {
		t.Error("the error does not name the files that need the permission:", err)
	}
	for _, suffix := range []string{"-wal", "-shm"} {
		if _, err := os.Stat(path + suffix); !os.IsNotExist(err) {
			t.Errorf("%s was left behind (%v)", suffix, err)
		}
	}
}

// A -shm that cannot be written is noticed by Open, and named.
func TestReadOnlySharedMemoryIsRefused(t *testing.T) {
	path := closedFile(t)
	if err := errors.Join(os.Chmod(path, 0o666), os.WriteFile(path+"-shm", nil, 0o444)); err != nil { //nolint:gosec // for the other user
		t.Fatal(err)
	}
	if err := openUnprivileged(t, path); err == nil || !strings.Contains(err.Error(), path+"-shm\"") {
		t.Errorf("with a read-only -shm: %v", err)
	}
}
