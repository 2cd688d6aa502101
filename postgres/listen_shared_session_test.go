package postgres

import (
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// All workers of a store but the first listen in one session. Each is told of its own runs, and its death is seen at once.
func TestFurtherWorkersOfAStoreListenInOneSession(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	leaktest.Test(t)
	url := migratedURL(t)
	here, there := openAt(t, url), openAt(t, url)
	var ids []uuid.UUID
	var workers []*attendance
	for range 4 {
		ids = append(ids, uuid.New())
		workers = append(workers, attend(t, here, ids[len(ids)-1]))
	}
	conn := ours(t, here)
	const locks = "FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
	var sessions, held int
	if err := conn.QueryRow(t.Context(), "SELECT count(DISTINCT pid), count(*) "+locks).Scan(&sessions, &held); err != nil || sessions != 2 || held != 4 {
		t.Errorf("%d sessions hold %d presence locks, %v", sessions, held, err)
	}
	commit(t, here, &store.Batch{Starts: []*store.StartWrite{{Run: pending(now(t, here))}}})
	for _, w := range workers {
		w.hinted(t, store.HintClaim)
	}

	self := uuid.New()
	workers[1].stop()
	if err := <-workers[1].done; err != nil {
		t.Fatal(err)
	}
	awaitDead(t, there, self, ids[1])
	workers[0].stop() // the others keep their session
	if err := <-workers[0].done; err != nil {
		t.Fatal(err)
	}
	awaitDead(t, there, self, ids[0])
	peers, err := there.DeadWorkers(t.Context(), self, nil)
	if err != nil || slices.Contains(peers.Dead, ids[2]) || slices.Contains(peers.Dead, ids[3]) {
		t.Errorf("%v are dead, %v", peers.Dead, err)
	}
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) "+locks); err != nil {
		t.Fatal(err)
	}
	for _, w := range workers[2:] {
		w.hinted(t, store.HintOwnedRunChange) // the session comes back with both
		w.stop()
		if err := <-w.done; err != nil {
			t.Fatal(err)
		}
	}
}
