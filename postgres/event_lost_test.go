package postgres

import (
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A cursor names its event. If this event is gone although older ones exist, the database went back, and
// the events after the cursor are unknown: the cursor is refused. If the oldest events are deleted first,
// the cursor stays valid.
func TestACursorOfALostEventIsRefused(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	for i := range 3 {
		r := running(uuid.New(), at)
		begin(t, s, &store.StartWrite{Run: r})
		commit(t, s, &store.Batch{OwnershipEnds: []*store.OwnershipEnd{finish(r.UUID, at.Add(time.Duration(i)*time.Second))}})
	}
	var all []store.Event
	for deadline := time.Now().Add(time.Minute); len(all) < 3; { // other tests have transactions on this server too
		var err error
		if all, err = s.Events(t.Context(), "", 10); err != nil || time.Now().After(deadline) {
			t.Fatalf("%d events, %v", len(all), err)
		}
	}
	remove := func(e store.Event) {
		t.Helper()
		if tag, err := s.userPool.Exec(t.Context(), "DELETE FROM durable.event WHERE run_id = $1", e.Run); err != nil || tag.RowsAffected() != 1 {
			t.Fatal(tag, err)
		}
	}
	remove(all[0]) // the oldest: deleted by retention
	for _, e := range all {
		if _, err := s.Events(t.Context(), e.Cursor, 10); err != nil {
			t.Errorf("the cursor %s: %v", e.Cursor, err)
		}
	}
	remove(all[2]) // and not all[1]: lost
	if got, err := s.Events(t.Context(), all[2].Cursor, 10); !errors.Is(err, store.ErrRestored) || !errors.Is(err, store.ErrBadData) {
		t.Errorf("the cursor of a lost event leads to %d events, %v", len(got), err)
	}
	if got, err := s.Events(t.Context(), all[0].Cursor, 10); err != nil || len(got) != 1 {
		t.Errorf("the cursor of a swept event leads to %d events, %v", len(got), err)
	}
	if _, err := s.userPool.Exec(t.Context(), "UPDATE durable.event SET at = at + interval '1 second'"); err != nil { // the transaction ID was assigned again
		t.Fatal(err)
	}
	older := all[1].At.Add(-time.Hour)
	if _, err := s.userPool.Exec(t.Context(), "INSERT INTO durable.event (at, txid, shard, type, run_id) VALUES ($1, '3', 0, 5, $2)", older, uuid.New()); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Events(t.Context(), all[1].Cursor, 10); !errors.Is(err, store.ErrRestored) {
		t.Errorf("a cursor whose number names another event now: %v", err)
	}
}
