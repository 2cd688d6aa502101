package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// slowly makes the insertion of steps with this name wait, in the middle of its statement, as long as
// somebody holds the advisory lock 1. The engine's lock timeout does not apply to it.
const slowly = `
CREATE FUNCTION durable.slow() RETURNS trigger LANGUAGE plpgsql SET lock_timeout = 0 AS $$
BEGIN PERFORM pg_advisory_xact_lock_shared(1); RETURN NULL; END $$;
CREATE TRIGGER slow AFTER INSERT ON durable.step FOR EACH ROW WHEN (NEW.name = 'slow') EXECUTE FUNCTION durable.slow();
CREATE SEQUENCE durable.looks;`

// A process that has lost its run may be alive, and its last write may be in progress when another
// process takes the run over. That write is allowed, because it began before the takeover, and its step
// must not be executed again. So the takeover waits for it, and reads it with the history.
func TestTakeoverWaitsForWritesUnderWay(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	everyWay(t, func(t *testing.T, s *database) {
		s.statements.writersInFlight += " AND nextval('durable.looks') > 0" // counts the queries that find something
		at := now(t, s)
		overdue := running(uuid.New(), at.Add(-time.Hour))
		overdue.WakeAt = at.Add(-time.Second)
		begin(t, s, &store.StartWrite{Run: overdue})
		cfg := s.userPool.Config().ConnConfig
		conn, err := pgx.ConnectConfig(t.Context(), cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, text := range []string{slowly, "SELECT pg_advisory_lock(1)"} {
			if _, err := conn.Exec(t.Context(), text, pgx.QueryExecModeSimpleProtocol); err != nil {
				t.Fatal(err)
			}
		}
		last := done(overdue.UUID, "slow", at)
		wrote, claimed := make(chan error, 1), make(chan error, 1)
		go func() { wrote <- s.Commit(context.Background(), &store.Batch{Steps: []*store.StepWrite{last}}) }()
		until(t, "the write to be under way", conn, `SELECT count(*) = 1 FROM pg_locks AS l JOIN pg_database AS d ON d.oid = l.database AND d.datname = current_database()
			WHERE l.locktype = 'advisory' AND l.objid = 1 AND NOT l.granted`, wrote)

		var claims store.ClaimResult
		go func() {
			var err error
			claims, err = s.Claim(context.Background(), store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 10, Now: at, LeaseUntil: at.Add(time.Minute)})
			claimed <- err
		}()
		until(t, "the takeover to wait", conn, "SELECT last_value >= 3 FROM durable.looks", claimed)
		if _, err := conn.Exec(t.Context(), "SELECT pg_advisory_unlock(1)", pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatal(err)
		}
		if err := <-wrote; err != nil || last.Outcome != store.Written {
			t.Fatalf("the write: outcome %d, %v", last.Outcome, err)
		}
		if err := <-claimed; err != nil || len(claims.Runs) != 1 {
			t.Fatalf("the takeover: %d runs, %v", len(claims.Runs), err)
		}
		if h := claims.Runs[0].History; len(h) != 1 || h[0].Name != "slow" {
			t.Errorf("the history of the run that was taken over: %+v", h)
		}
	})
}

// until waits until a query returns true. It fails if the channel receives a result first.
func until(t *testing.T, what string, conn *pgx.Conn, query string, over <-chan error) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		var yes bool
		if err := conn.QueryRow(t.Context(), query, pgx.QueryExecModeSimpleProtocol).Scan(&yes); err != nil {
			t.Fatal(err)
		}
		if yes {
			return
		}
		select {
		case err := <-over:
			t.Fatalf("waited for %s, and it is over: %v", what, err)
		default:
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited in vain for %s", what)
		}
	}
}
