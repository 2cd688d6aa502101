package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/seed8ec063be/durable/internal/store"
)

// A lease whose row is locked by a user's transaction is neither extended nor lost.
func TestRenewOfALockedRun(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	worker := uuid.New()
	run := running(worker, at) // its lease ends in a minute
	begin(t, s, &store.StartWrite{Run: run})
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := s.signalInTx(t.Context(), tx, store.RunRef{UUIDOrName: run.UUID.String()}, signal(run.UUID, "word", "1", at)); err != nil {
		t.Fatal(err)
	}
	until := at.Add(10 * time.Minute)
	pulse, err := s.RenewLeases(t.Context(), store.Heartbeat{
		Worker: store.Worker{ID: worker, Name: "w", StartedAt: at}, Leases: []store.Lease{{Run: run.UUID, Epoch: epochAt(1)}}, LeaseUntil: until,
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(pulse.LockedRuns) != 1 || pulse.LockedRuns[0] != run.UUID || len(pulse.LostRuns) != 0 {
		t.Errorf("the renewal returned %+v, want the run as busy", pulse)
	}
	if got := row(t, s, run.UUID).WakeAt; !got.Equal(run.WakeAt) {
		t.Errorf("the lease ends at %v, want %v", got, run.WakeAt)
	}
}
