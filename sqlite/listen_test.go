package sqlite

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// attend attends until the test ends, and returns where hints of one kind arrive and
// what ends it.
func attend(t *testing.T, s *database, worker uuid.UUID, kind store.WakeHint) (hints chan struct{}, leave func()) {
	t.Helper()
	hints = make(chan struct{}, 1)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		ended <- s.Listen(ctx, worker, func(what store.WakeHint) {
			if what != kind {
				return
			}
			select {
			case hints <- struct{}{}:
			default:
			}
		})
	}()
	await(t, hints) // the first one says that it is up
	left := false
	leave = func() {
		if left {
			return
		}
		left = true
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	t.Cleanup(leave)
	return hints, leave
}

func await(t *testing.T, hints chan struct{}) time.Duration {
	t.Helper()
	began := time.Now()
	select {
	case <-hints:
	case <-time.After(time.Minute):
		t.Fatal("no hint")
	}
	return time.Since(began)
}

func TestHints(t *testing.T) {
	s := openTest(t)
	other := openAt(t, s.path)
	hints, leave := attend(t, s, uuid.New(), store.HintClaim)
	other.mustCommit(t, newPending("there"))
	t.Log("other's commit seen after", await(t, hints))
	s.mustCommit(t, newPending("here"))
	select {
	case <-hints: // it was there when Commit returned
	default:
		t.Error("no hint of an own commit")
	}
	leave()
	if len(s.listeners) != 0 {
		t.Error("a hint is left behind")
	}
}

func TestDeadWorkers(t *testing.T) {
	s := openTest(t)
	other := openAt(t, s.path)
	alive, left, unseen := uuid.New(), uuid.New(), uuid.New()
	for _, id := range []uuid.UUID{alive, left, unseen} {
		if _, err := s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	dead := func(self uuid.UUID) []uuid.UUID {
		t.Helper()
		peers, err := s.DeadWorkers(t.Context(), self, nil)
		if err != nil {
			t.Fatal(err)
		}
		return peers.Dead
	}
	attend(t, other, alive, store.HintClaim)
	_, leave := attend(t, other, left, store.HintClaim)
	if _, err := os.Stat(s.workerLocks.lockFilePath(left)); err != nil {
		t.Skip("this system cannot tell:", err)
	}
	if ids := dead(uuid.Nil); len(ids) != 0 {
		t.Fatal(ids)
	}
	leave()
	if ids := dead(uuid.Nil); len(ids) != 0 {
		t.Fatal("who left cleanly is not dead:", ids)
	}
	// A killed process leaves its file, unlocked.
	if err := os.WriteFile(s.workerLocks.lockFilePath(unseen), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if ids := dead(unseen); len(ids) != 0 {
		t.Fatal("nobody is dead to itself:", ids)
	}
	if ids := dead(uuid.Nil); len(ids) != 1 || ids[0] != unseen {
		t.Fatal(ids)
	}
	if _, err := s.EndLeases(t.Context(), []uuid.UUID{unseen, alive}, query1(now())); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.workerLocks.lockFilePath(unseen)); err == nil {
		t.Error("the dead worker's file is still there")
	}
	if _, err := os.Stat(s.workerLocks.lockFilePath(alive)); err != nil {
		t.Error("a living worker's file is gone:", err)
	}
}

// Close ends an Attend under way, and waits for it.
func TestCloseEndsListen(t *testing.T) {
	s := openTest(t)
	up, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() {
		ended <- s.Listen(context.Background(), uuid.New(), func(store.WakeHint) {
			select {
			case up <- struct{}{}:
			default:
			}
		})
	}()
	await(t, up)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, store.ErrClosed) {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.path + "-wal"); !errors.Is(err, os.ErrNotExist) {
		t.Error("the log was not folded into the file:", err)
	}
}
