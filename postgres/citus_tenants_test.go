package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// A renewal on a Citus uses no connection of the engine: an engine whose connections are all in use keeps its leases.
func TestCitusRenewsWithoutTheEnginePool(t *testing.T) {
	at := migratedURL(t)
	execAt(t, at, fakeCitus, placed(1, addressIn(t, at)))
	s := openAt(t, at)
	for range maxEngineConns {
		conn, err := s.acquireConn(t.Context(), s.enginePool)
		if err != nil {
			t.Fatal(err)
		}
		defer s.releaseConn(s.enginePool, conn)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	h := store.Heartbeat{Worker: store.Worker{ID: uuid.New(), Name: "w", StartedAt: time.Now()}, LeaseUntil: time.Now(), Leases: []store.Lease{{Run: uuid.New()}}}
	if _, err := s.RenewLeases(ctx, h); err != nil {
		t.Error(err)
	}
}

// A pool that New was given, and that leads to another node than the home, is refused for Tx steps with an error that names the home.
// The store keeps its connections.
func TestCitusTxAwayFromHome(t *testing.T) {
	at := migratedURL(t)
	execAt(t, at, fakeCitus, placed(2, closedPort))
	cfg, err := pgxpool.ParseConfig(at)
	if err != nil {
		t.Fatal(err)
	}
	s := openOver(t, cfg)
	now(t, s)
	opened := s.enginePool.Stat().NewConnsCount()
	for range 2 {
		_, err = s.acquireUserConn(t.Context())
		away, ok := errors.AsType[*WrongCitusNodeError](err)
		if !ok || away.Home != closedPort.String() || away.Schema != DefaultSchema || !errors.Is(err, store.ErrRejected) {
			t.Errorf("got %v", err)
		}
	}
	now(t, s)
	if n := s.enginePool.Stat().NewConnsCount() - opened; n > 0 {
		t.Errorf("%d connections were opened anew", n)
	}
}

// The user's pool is closed by the last store that uses it, also if another store of OpenSchema has opened that store.
func TestCitusStoresCloseInAnyOrder(t *testing.T) {
	leaktest.Test(t)
	at := migratedURL(t)
	execAt(t, at, fakeCitus)
	first := openAt(t, at)
	first.sharedConns.userConfig = nil // as if New had been given a pool, which the last store closes
	second, err := first.openSchema(t.Context(), "tenant_1")
	if err != nil {
		t.Fatal(err)
	}
	third, err := second.openSchema(t.Context(), "tenant_2")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []*database{second, first} {
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := third.userPool.Ping(t.Context()); err != nil {
		t.Errorf("the pool of an open store: %v", err)
	}
	if err := third.Close(); err != nil {
		t.Fatal(err)
	}
	if err := first.userPool.Ping(t.Context()); err == nil {
		t.Error("the last store has not closed the pool")
	}
}

// When a standby is promoted, the stores of one server reconnect once, not each for itself.
func TestTenantsReconnectOnceAfterAPromotion(t *testing.T) {
	leaktest.Test(t)
	first, tenants := openTenants(t, migratedURL(t), 5)
	stores := append(tenants, first)
	for _, s := range stores {
		now(t, s)
		l := &s.rewindDetector
		l.mu.Lock()
		l.position.timeline += 7 // the server goes back from there
		l.lastReplyAt.Store(0)
		l.mu.Unlock()
	}
	opened := first.enginePool.Stat().NewConnsCount()
	first.reconnect()
	for _, s := range stores {
		now(t, s)
		if s.rewindDetector.rewindCount.Load() != 1 {
			t.Error("a store has not noticed it")
		}
	}
	if n := first.enginePool.Stat().NewConnsCount() - opened; n > 3 {
		t.Errorf("%d connections were opened for %d stores", n, len(stores))
	}
}

// What a worker that has ended was told of others is forgotten.
func TestPeersOfEndedWorkersAreForgotten(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	leaktest.Test(t)
	_, tenants := openTenants(t, migratedURL(t), 1)
	s := tenants[0]
	s.cacheDeadWorkers(deadWorkersView{self: uuid.New(), at: time.Now().Add(-time.Hour)})
	dead(t, s, uuid.New(), uuid.New())
	if len(s.peers) != 1 {
		t.Errorf("the views of %d workers are kept", len(s.peers))
	}
}
