package postgres

import (
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

var (
	pairs = []store.Pair{{Queue: "default", Workflow: "flow"}}
	modes = []string{"cache_statement", "cache_describe", "exec"}
)

func TestMain(m *testing.M) { os.Exit(pgtest.Main(m)) }

// with adds a parameter to a URL.
func with(url, param string) string {
	if strings.Contains(url, "?") {
		return url + "&" + param
	}
	return url + "?" + param
}

// open makes a store in a database of its own, in one of pgx's modes.
func open(t testing.TB, mode string, opts ...Option) *Store {
	t.Helper()
	return openAt(t, with(pgtest.URL(t), "default_query_exec_mode="+mode), opts...)
}

func openAt(t testing.TB, url string, opts ...Option) *Store {
	t.Helper()
	s, err := Open(t.Context(), url, opts...)
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

func now(t testing.TB, s *Store) time.Time {
	t.Helper()
	at, err := s.Now(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return at
}

func commit(t testing.TB, s *Store, b *store.Batch) {
	t.Helper()
	if err := s.Commit(t.Context(), b); err != nil {
		t.Fatal(err)
	}
}

// running is a run started where it runs.
func running(owner uuid.UUID, now time.Time) store.Run {
	id, name := store.NewRootID("")
	return store.Run{
		ID: id, Name: name, Workflow: "flow", Queue: "default", Status: store.Running, Epoch: 1,
		Owner: uuid.NullUUID{UUID: owner, Valid: true}, Input: []byte("{}"),
		CreatedAt: now, StartedAt: now, WakeAt: now.Add(time.Minute),
	}
}

// pending is a run that waits to be claimed.
func pending(now time.Time) store.Run {
	id, name := store.NewRootID("")
	return store.Run{
		ID: id, Name: name, Workflow: "flow", Queue: "default", Status: store.Pending,
		Input: []byte("{}"), CreatedAt: now, WakeAt: now,
	}
}

// done is a completed step of a run at epoch 1.
func done(run uuid.UUID, name string, now time.Time) *store.StepWrite {
	return &store.StepWrite{Step: store.Step{
		RunID: run, Name: name, Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: 1,
		Output: []byte(`{"ok":true}`), StartedAt: now, EndedAt: now,
	}}
}

// finish completes a run at epoch 1.
func finish(run uuid.UUID, now time.Time) *store.RunWrite {
	return &store.RunWrite{ID: run, Epoch: 1, Status: store.Completed, Output: []byte("1"), EndedAt: now}
}
