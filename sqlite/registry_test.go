package sqlite

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A worker that died where nobody could see it (no presence file) leaves the registry an hour after its last
// heartbeat, as on PostgreSQL.
func TestSilentWorkerLeavesRegistry(t *testing.T) {
	s := openTest(t)
	lost, here := uuid.New(), uuid.New()
	for _, id := range []uuid.UUID{lost, here} {
		if _, err := s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.writerDB.ExecContext(t.Context(), "UPDATE durable_worker SET heartbeat_at = ? WHERE id = ?", now().Add(-48*time.Hour).UnixMicro(), lost[:]); err != nil {
		t.Fatal(err)
	}
	if _, err := s.EndLeases(t.Context(), []uuid.UUID{here}, query1(now())); err != nil {
		t.Fatal(err)
	}
	workers, err := s.Workers(t.Context())
	if err != nil || len(workers) != 0 {
		t.Errorf("%d workers in the registry, the last one silent for two days (%v)", len(workers), err)
	}
}

// Everyone finds the same folder of workers, also whoever opens a link to a file that is not there yet.
func TestLinkToNewFile(t *testing.T) {
	dir := t.TempDir()
	target, link := filepath.Join(dir, "real.db"), filepath.Join(dir, "link.db")
	if err := os.Symlink(target, link); err != nil {
		t.Skip(err)
	}
	first := openAt(t, link)
	second := openAt(t, link)
	if first.workerLocks != second.workerLocks {
		t.Errorf("one file, two folders of workers: %q and %q", first.workerLocks.folder, second.workerLocks.folder)
	}
}
