package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// openTenants opens a store and further schemas of it.
func openTenants(t *testing.T, url string, n int) (first *database, others []*database) {
	t.Helper()
	first = openAt(t, url)
	for i := range n {
		s, err := first.openSchema(t.Context(), fmt.Sprintf("tenant_%d", i))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		others = append(others, s)
	}
	return first, others
}

// Stores of several schemas share connections, and each keeps its own runs. The stores may be closed in any order.
func TestOpenSchemaSharesConnections(t *testing.T) {
	leaktest.Test(t)
	url := migratedURL(t)
	first, others := openTenants(t, url, 3)
	for i, s := range others {
		begin(t, s, &store.StartWrite{Run: pending(now(t, s))})
		for range i {
			begin(t, s, &store.StartWrite{Run: pending(now(t, s))})
		}
	}
	if n := first.enginePool.Stat().TotalConns(); n != 1 {
		t.Errorf("the stores use %d connections", n)
	}
	if n := len(claimAll(t, first)); n != 0 {
		t.Errorf("%d runs of other schemas were claimed", n)
	}
	if err := first.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := first.Now(t.Context()); !errors.Is(err, store.ErrClosed) {
		t.Errorf("a closed store: %v", err)
	}
	late, err := first.openSchema(t.Context(), "tenant_9") // while others are open
	if err != nil {
		t.Fatal(err)
	}
	if err := late.Close(); err != nil {
		t.Error(err)
	}
	for i, s := range others {
		s.reconnect()
		if n := len(claimAll(t, s)); n != i+1 {
			t.Errorf("%d runs of schema %d were claimed", n, i)
		}
	}
}

// OpenSchema refuses what it cannot set for one schema alone.
func TestOpenSchemaRefuses(t *testing.T) {
	leaktest.Test(t)
	s := openAt(t, migratedURL(t))
	for _, opt := range []Option{AllowAsyncCommit(), WithoutListen(), Schema("other")} {
		if _, err := s.openSchema(t.Context(), "tenant", opt); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("got %v", err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.openSchema(t.Context(), "tenant"); !errors.Is(err, store.ErrClosed) {
		t.Errorf("on a closed store: %v", err)
	}
}

// The workers of several schemas listen in one session. Each is told of its own schema, and its death is seen at once.
func TestTenantsListenInOneSession(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	leaktest.Test(t)
	url := migratedURL(t)
	_, here := openTenants(t, url, 2)
	_, there := openTenants(t, url, 2) // another process
	a, b := uuid.New(), uuid.New()
	first, second := attend(t, here[0], a), attend(t, here[1], b)
	conn := ours(t, here[0])
	var listening int
	err := conn.QueryRow(t.Context(), "SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())").Scan(&listening)
	if err != nil || listening != 1 {
		t.Errorf("%d sessions hold presence locks, %v", listening, err)
	}
	begin(t, here[1], &store.StartWrite{Run: pending(now(t, here[1]))})
	commit(t, here[1], &store.Batch{Starts: []*store.StartWrite{{Run: pending(now(t, here[1]))}}})
	second.hinted(t, store.HintClaim)
	select {
	case <-first.hints[store.HintClaim]:
		t.Error("a worker was told of another schema")
	default:
	}
	self := uuid.New()
	if dead(t, there[1], self, b) {
		t.Error("the worker seems dead")
	}
	peers, err := there[0].DeadWorkers(t.Context(), self, nil)
	if err != nil || peers.LiveCount != 1 {
		t.Errorf("%+v, %v", peers, err)
	}
	second.stop()
	if err := <-second.done; err != nil {
		t.Fatal(err)
	}
	awaitDead(t, there[1], self, b)
	if dead(t, there[0], self, a) {
		t.Error("the other worker seems dead")
	}
	// A broken session comes back with all its workers.
	third := attend(t, here[1], uuid.New())
	if _, err := conn.Exec(t.Context(), "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"); err != nil {
		t.Fatal(err)
	}
	first.hinted(t, store.HintOwnedRunChange)
	third.hinted(t, store.HintOwnedRunChange)
	commit(t, here[0], &store.Batch{Starts: []*store.StartWrite{{Run: pending(now(t, here[0]))}}})
	first.hinted(t, store.HintClaim)
	for _, m := range []*attendance{first, third} {
		m.stop()
		if err := <-m.done; err != nil {
			t.Fatal(err)
		}
	}
}

// awaitDead waits until a store sees a worker as dead.
func awaitDead(t *testing.T, s *database, self, worker uuid.UUID) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		peers, err := s.DeadWorkers(ctx, self, nil)
		if err != nil {
			t.Fatal(err)
		}
		if slices.Contains(peers.Dead, worker) {
			return
		}
	}
}

// While no lock disappears, a look of a store of OpenSchema is that of all.
func TestTenantsLookTogether(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	leaktest.Test(t)
	_, tenants := openTenants(t, migratedURL(t), 3)
	self := uuid.New()
	if _, err := tenants[0].DeadWorkers(t.Context(), self, nil); err != nil {
		t.Fatal(err)
	}
	tenants[0].presenceView.changedAt = time.Now().Add(-time.Minute)
	for _, s := range tenants {
		if _, err := s.DeadWorkers(t.Context(), self, nil); err != nil {
			t.Fatal(err)
		}
	}
	before := tenants[0].enginePool.Stat().AcquireCount()
	for range 100 {
		for _, s := range tenants {
			if _, err := s.DeadWorkers(t.Context(), self, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := tenants[0].enginePool.Stat().AcquireCount() - before; n > 50 {
		t.Errorf("300 looks made %d queries", n)
	}
}

// A connection that has prepared the statements of many schemas forgets them, so that the server does not keep them all.
func TestPreparedStatementsAreBounded(t *testing.T) {
	leaktest.Test(t)
	s := openAt(t, migratedURL(t))
	now(t, s)
	conn, err := s.acquireConn(t.Context(), s.enginePool)
	if err != nil {
		t.Fatal(err)
	}
	own := connStateOf(conn.Conn())
	for i := range maxPreparedStatements {
		own.prepared[fmt.Sprint("SELECT ", i)] = own.prepared[s.statements.now]
	}
	s.releaseConn(s.enginePool, conn)
	now(t, s)
	conn, err = s.acquireConn(t.Context(), s.enginePool)
	if err != nil {
		t.Fatal(err)
	}
	defer s.releaseConn(s.enginePool, conn)
	var kept int
	if err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_prepared_statements", pgx.QueryExecModeSimpleProtocol).Scan(&kept); err != nil || kept != 1 || len(own.prepared) != 1 {
		t.Errorf("the connection keeps %d statements, the server %d, %v", len(own.prepared), kept, err)
	}
}
