package sqlite

import (
	"bytes"
	"path/filepath"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/store"
)

// openTest opens a store on a new file.
func openTest(t testing.TB, opts ...Option) *database {
	t.Helper()
	return openAt(t, filepath.Join(t.TempDir(), "durable.db"), opts...)
}

// openAt opens a store whose test must leave no goroutine behind.
func openAt(t testing.TB, path string, opts ...Option) *database {
	t.Helper()
	leaktest.Test(t)
	return openBeside(t, path, opts...)
}

// openBeside is openAt for tests that run beside others.
func openBeside(t testing.TB, path string, opts ...Option) *database {
	t.Helper()
	s, err := openDatabase(path, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error("close:", err)
		}
	})
	return s
}

// newStart is a run that its creator owns.
func newStart(name string) *store.StartWrite {
	at := time.Now()
	id, name := store.NewRootIdentity(name)
	return &store.StartWrite{Run: store.Run{
		UUID: id, Name: name, Workflow: "test", Queue: "default", Status: store.Running, Epoch: epochAt(1),
		Owner: uuid.NullUUID{UUID: uuid.New(), Valid: true}, Input: []byte("{}"),
		CreatedAt: at, StartedAt: at, WakeAt: at.Add(time.Minute),
	}}
}

// newPending is a run that anyone may claim.
func newPending(name string) *store.StartWrite {
	w := newStart(name)
	w.Run.Status, w.Run.Epoch, w.Run.Owner = store.Pending, store.Epoch{}, uuid.NullUUID{}
	w.Run.StartedAt, w.Run.WakeAt = time.Time{}, w.Run.CreatedAt
	return w
}

func newStep(run uuid.UUID, name string) *store.StepWrite {
	at := time.Now()
	return &store.StepWrite{Step: store.Step{
		Run: run, Name: name, Kind: store.KindStep, Status: store.StepCompleted, Attempt: 1, Epoch: epochAt(1),
		Output: []byte("1"), StartedAt: at, EndedAt: at,
	}}
}

func startTestRuns(t testing.TB, s *database, n int) []uuid.UUID {
	t.Helper()
	batch := &store.Batch{}
	ids := make([]uuid.UUID, n)
	for i := range ids {
		w := newStart("")
		batch.Starts = append(batch.Starts, w)
		ids[i] = w.Run.UUID
	}
	if err := s.Commit(t.Context(), batch); err != nil {
		t.Fatal(err)
	}
	return ids
}

func served() *store.ClaimFilter { return store.NewClaimFilter([]string{"test"}, nil) }

// samePayload tells no payload from an empty one.
func samePayload(l, r []byte) bool { return (l == nil) == (r == nil) && bytes.Equal(l, r) }

// newChild is a run that anyone may claim, beneath parent at its first epoch.
func newChild(parent uuid.UUID, name string) *store.StartWrite {
	w := newPending(name)
	w.Run.UUID, w.Run.Parent, w.ParentEpoch = store.NewChildUUID(parent), uuid.NullUUID{UUID: parent, Valid: true}, epochAt(1)
	return w
}

func newSignal(run uuid.UUID, name string, at time.Time) *store.SignalWrite {
	return &store.SignalWrite{Run: run, ID: store.NewUUID(0), Name: name, Payload: []byte(`"` + name + `"`), CreatedAt: at}
}

func newReceive(run uuid.UUID, name, signal string) *store.ReceiveWrite {
	return &store.ReceiveWrite{Signal: signal, Step: store.Step{
		Run: run, Name: name, Kind: store.KindReceive, Status: store.StepStarted, Attempt: 1, Epoch: epochAt(1), StartedAt: now(),
	}}
}

func row(t testing.TB, s *database, run uuid.UUID) store.Run {
	t.Helper()
	got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: run.String()}})
	if err != nil || got[0] == nil {
		t.Fatal(run, got, err)
	}
	return *got[0]
}

// order carries out an order on one run and returns what it did for that.
func order(t testing.TB, s *database, verb store.ControlVerb, run uuid.UUID) store.ControlResult {
	t.Helper()
	o := &store.ControlRequest{Verb: verb, Runs: []uuid.UUID{run}, Now: now(), Reason: "because", Actor: "me", Error: []byte(`"over"`)}
	if err := s.ControlRuns(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return o.Results[0]
}

// eventTypes are the events of a run, in order.
func eventTypes(t testing.TB, s *database, run uuid.UUID) (types []store.EventType) {
	t.Helper()
	events, err := s.Events(t.Context(), "", 1000)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Run == run {
			types = append(types, e.Type)
		}
	}
	return types
}

// epochAt is the epoch with that count, and no nonce: none of the claims here draws one.
func epochAt(count int32) store.Epoch { return store.Epoch{Count: count} }
