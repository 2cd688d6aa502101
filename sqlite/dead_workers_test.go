package sqlite

import (
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// While nothing changes, a look for dead workers makes no query for two seconds. A death and a new worker are seen at once.
func TestIdleLooksMakeNoQuery(t *testing.T) {
	s := openTest(t)
	other := openAt(t, s.path)
	worker, self := uuid.New(), uuid.New()
	register := func(id uuid.UUID) {
		t.Helper()
		if _, err := s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	look := func() store.DeadWorkersResult {
		t.Helper()
		peers, err := s.DeadWorkers(t.Context(), self, nil)
		if err != nil {
			t.Fatal(err)
		}
		return peers
	}
	register(worker)
	_, leave := attend(t, other, worker, store.HintClaim)
	defer leave()
	look()
	view := &s.knownWorkers
	settle := func() { view.changedAt = time.Now().Add(-time.Hour) }
	settle()
	read := view.readAt
	for range 100 {
		if peers := look(); peers.LiveCount != 1 || len(peers.Dead) != 0 {
			t.Fatalf("%+v", peers)
		}
	}
	if view.readAt != read && view.readAt.Sub(read) < maxWorkersAge {
		t.Error("the workers were read again, although nothing has changed")
	}
	view.readAt = time.Now().Add(-maxWorkersAge)
	if look(); time.Since(view.readAt) > maxWorkersAge/2 {
		t.Error("the workers were not read again after two seconds")
	}
	if _, err := os.Stat(s.workerLocks.lockFilePath(worker)); err != nil {
		t.Skip("this system cannot tell:", err)
	}
	// Another worker comes, which changes the folder.
	second := uuid.New()
	register(second)
	_, leaveToo := attend(t, other, second, store.HintClaim)
	defer leaveToo()
	if peers := look(); peers.LiveCount != 2 {
		t.Errorf("with another worker: %+v", peers)
	}
	// A worker dies, which changes only its lock.
	dead := uuid.New()
	register(dead)
	if err := os.WriteFile(s.workerLocks.lockFilePath(dead), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	look()
	settle()
	if peers := look(); len(peers.Dead) != 1 || peers.Dead[0] != dead {
		t.Errorf("with a dead worker: %+v", peers)
	}
}

// BenchmarkIdleLook measures a look for dead workers in an idle process, of which there are eight a second.
func BenchmarkIdleLook(b *testing.B) {
	s, err := openDatabase(b.TempDir() + "/durable.db")
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	for name, changedAt := range map[string]time.Duration{"unchanged": time.Hour, "after a change": 0} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				s.knownWorkers.changedAt = time.Now().Add(-changedAt)
				if _, err := s.DeadWorkers(b.Context(), uuid.Nil, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
