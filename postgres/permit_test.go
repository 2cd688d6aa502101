package postgres

import (
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A run that another transaction has locked does not keep what is free from the next in line.
func TestPermitPassesALockedRun(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		asks := make([]*store.PermitRequest, 3)
		for i := range asks {
			r := running(uuid.New(), at)
			begin(t, s, &store.StartWrite{Run: r})
			asks[i] = &store.PermitRequest{
				Limit: "l", Settings: store.LimitSettings{Concurrent: 1}, Run: r.UUID, Step: "s", Epoch: r.Epoch, Attempt: 1, Units: 1,
			}
			if err := s.GrantAndReturnPermits(t.Context(), &store.PermitBatch{Now: at.Add(time.Duration(i)), Requests: asks[i : i+1]}); err != nil {
				t.Fatal(err)
			}
		}
		tx, err := s.userPool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over if it fails
		// The clock's resolution may give two asks one time: the first in line is the one with the smaller place.
		first, next := asks[1], asks[2]
		if places, err := s.PermitsOfRun(t.Context(), first.Run); err != nil || len(places) != 1 {
			t.Fatal(places, err)
		} else if places[0].StepsAhead != 0 {
			first, next = next, first
		}
		if _, err := tx.Exec(t.Context(), "SELECT FROM "+s.schema+".run WHERE id = $1 FOR UPDATE", first.Run); err != nil {
			t.Fatal(err)
		}
		held := asks[0]
		b := &store.PermitBatch{Now: at, Returns: []store.PermitReturn{{Limit: "l", Run: held.Run, Step: "s", Epoch: held.Epoch, Attempt: 1}}}
		if err := s.GrantAndReturnPermits(t.Context(), b); err != nil {
			t.Fatal(err)
		}
		places, err := s.PermitsOfRun(t.Context(), next.Run)
		if err != nil || len(places) != 1 || places[0].Status != store.PermitOffered {
			t.Errorf("behind a locked run: %+v, %v, want an offer", places, err)
		}
		if b.RecheckAt[store.LimitKey{Limit: "l"}].IsZero() {
			t.Error("nobody looks at the line when the run is no longer locked")
		}
	})
}
