package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// A takeover waits for writes of workers. It does not wait for other transactions that have changed the
// step table, such as a DELETE of old rows in a transaction that stays open.
func TestTakeoverWaitsForWorkersOnly(t *testing.T) {
	everyWay(t, func(t *testing.T, s *database) {
		at := now(t, s)
		overdue := running(uuid.New(), at.Add(-time.Hour))
		overdue.WakeAt = at.Add(-time.Second)
		begin(t, s, &store.StartWrite{Run: overdue})
		tx, err := s.userPool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over
		if _, err := tx.Exec(t.Context(), "DELETE FROM durable.step WHERE ended_at < now() - interval '30 days'"); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		claims, err := s.Claim(t.Context(), store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 10, Now: at, LeaseUntil: at.Add(time.Minute)})
		took := time.Since(began)
		if err != nil || len(claims.Runs) != 1 {
			t.Fatalf("the takeover: %d runs, %v", len(claims.Runs), err)
		}
		if took > maxWriterWait/2 {
			t.Errorf("the takeover took %v", took)
		}
		t.Logf("took=%v", took)
	})
}

// If the database does not show such marks, takeovers wait for all transactions that write steps.
func TestTakeoverWaitsForAllWithoutMarks(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	s := openPooled(t, "exec")
	s.cannotTakeWriterLock = true
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer tx.Rollback(t.Context()) //nolint:errcheck // the test is over
	if _, err := tx.Exec(t.Context(), "DELETE FROM durable.step WHERE ended_at < now()"); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second) // the wait ends after half of it, and a loaded machine may stand still for the rest
	defer cancel()
	began := time.Now()
	if err := s.awaitStepWriters(ctx); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 400*time.Millisecond {
		t.Errorf("it waited for %v, and the transaction is open still", took)
	}
}

// If the database does not show which transactions are in progress, a takeover waits for as long as they usually take.
func TestTakeoverWaitsWithoutSight(t *testing.T) {
	url := migratedURL(t)
	pgtest.RemoveLocalFacts(t, url)
	s := openAt(t, url)
	began := time.Now()
	if err := s.awaitStepWriters(t.Context()); err != nil {
		t.Fatal(err)
	}
	if took := time.Since(began); took < 150*time.Millisecond {
		t.Errorf("it waited for %v only", took)
	}
}
