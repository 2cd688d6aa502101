package postgres

import (
	"context"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// If the presence lock cannot be recorded, the session ends and the lock is free, so no heartbeat may go on to claim it: others
// would declare a living worker dead again and again.
func TestPresenceLockThatIsNotRecordedIsForgotten(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	s := open(t, "cache_statement")
	worker := uuid.New()
	beat(t, s, worker)
	unlock := lockWorkerRow(t, s, worker)
	if err := s.listenUntilFailure(t.Context(), worker, func(h store.WakeHint) { t.Errorf("hint %d", h) }); err == nil {
		t.Fatal("the lock was recorded in a row that is locked")
	}
	unlock()
	beat(t, s, worker)
	if claimsPresence(t, s, worker) {
		t.Error("the worker claims a lock that nobody holds")
	}
	if dead(t, s, uuid.New(), worker) {
		t.Error("a living worker seems dead")
	}
}

// lockWorkerRow locks the row of a worker until the returned function is called.
func lockWorkerRow(t *testing.T, s *database, worker uuid.UUID) (unlock func()) {
	t.Helper()
	tx, err := s.userPool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	if _, err := tx.Exec(t.Context(), "SELECT FROM "+pgx.Identifier{s.schema, "worker"}.Sanitize()+" WHERE id = $1 FOR UPDATE", worker); err != nil {
		t.Fatal(err)
	}
	return func() {
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// claimsPresence reports whether the row of a worker says that it holds its presence lock.
func claimsPresence(t *testing.T, s *database, worker uuid.UUID) (claims bool) {
	t.Helper()
	err := s.userPool.QueryRow(t.Context(), "SELECT attended_at IS NOT NULL FROM "+pgx.Identifier{s.schema, "worker"}.Sanitize()+" WHERE id = $1", worker).Scan(&claims)
	if err != nil {
		t.Fatal(err)
	}
	return claims
}

// endListenSession ends the session that holds presence locks, on the server's side.
func endListenSession(t *testing.T, s *database) {
	t.Helper()
	var ended int
	err := s.userPool.QueryRow(t.Context(), `
		SELECT count(pg_terminate_backend(pid)) FROM (
			SELECT DISTINCT pid FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())) AS holder`).Scan(&ended)
	if err != nil || ended != 1 {
		t.Fatalf("%d sessions were ended, %v", ended, err)
	}
}

// A tenant whose schema is gone, or whose row is locked, fails alone: the session goes on to serve the others.
func TestATenantThatFailsDoesNotEndTheSession(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	leaktest.Test(t)
	_, tenants := openTenants(t, migratedURL(t), 3)
	dropped, locked, whole := uuid.New(), uuid.New(), uuid.New()
	attend(t, tenants[0], dropped)
	second := attend(t, tenants[1], locked)
	third := attend(t, tenants[2], whole)
	if _, err := tenants[0].userPool.Exec(t.Context(), "DROP SCHEMA tenant_0 CASCADE"); err != nil {
		t.Fatal(err)
	}
	unlock := lockWorkerRow(t, tenants[1], locked)
	endListenSession(t, tenants[2])
	third.hinted(t, store.HintClaim)
	third.hinted(t, store.HintOwnedRunChange)
	held := tenants[2].presenceLockOf(whole)
	for tenants[0].session.failureCount(dropped) < 3 { // it is tried again
		if held == (presenceLock{}) || held != tenants[2].presenceLockOf(whole) || !claimsPresence(t, tenants[2], whole) {
			t.Fatal("the failure of one tenant has ended the session of another")
		}
	}
	if tenants[1].presenceLockOf(locked) != (presenceLock{}) {
		t.Error("a lock is claimed that was not recorded")
	}
	unlock()
	second.hinted(t, store.HintClaim)
	second.hinted(t, store.HintOwnedRunChange)
	if !claimsPresence(t, tenants[1], locked) {
		t.Error("the lock was not recorded at last")
	}
	commit(t, tenants[2], &store.Batch{Starts: []*store.StartWrite{{Run: pending(now(t, tenants[2]))}}})
	third.hinted(t, store.HintClaim)
	if held != tenants[2].presenceLockOf(whole) {
		t.Error("the failure of one tenant has ended the session of another")
	}
}

// mutedConn is a connection whose packets are lost once it is muted.
type mutedConn struct {
	net.Conn
	muted  atomic.Bool
	once   sync.Once
	closed chan struct{}
}

func (c *mutedConn) Write(p []byte) (int, error) {
	if c.muted.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

func (c *mutedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A worker stops, and another one comes, although the server does not reply in the session that they share.
func TestASilentServerKeepsNoTenantFromStopping(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	leaktest.Test(t)
	first := openAt(t, migratedURL(t))
	var session atomic.Pointer[mutedConn]
	first.connectListener = func(ctx context.Context) (*pgx.Conn, error) {
		cfg := first.userPool.Config().ConnConfig
		dial := cfg.DialFunc
		cfg.DialFunc = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &mutedConn{Conn: conn, closed: make(chan struct{})}, err
		}
		boundCloseTime(cfg)
		conn, err := pgx.ConnectConfig(ctx, cfg)
		if err == nil {
			session.Store(conn.PgConn().Conn().(shortDeadlineConn).NetConn().(*mutedConn))
		}
		return conn, err
	}
	var tenants []*database
	for _, name := range []string{"tenant_0", "tenant_1", "tenant_2"} {
		s, err := first.openSchema(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = s.Close() })
		tenants = append(tenants, s)
	}
	t.Cleanup(func() { _ = session.Load().Close() }) // ends calls that wait for ever
	leaving, staying := attend(t, tenants[0], uuid.New()), attend(t, tenants[1], uuid.New())
	silent := session.Load()
	silent.muted.Store(true)
	leaving.stop()
	select {
	case <-leaving.done:
	case <-time.After(time.Minute):
		t.Fatal("a worker cannot stop while the server is silent")
	}
	staying.hinted(t, store.HintClaim) // in a new session
	staying.hinted(t, store.HintOwnedRunChange)
	if session.Load() == silent {
		t.Error("the session goes on that does not reply")
	}
	silent = session.Load()
	silent.muted.Store(true)
	ctx, cancel := context.WithCancel(t.Context())
	coming := make(chan error, 1)
	go func() { coming <- tenants[2].Listen(ctx, uuid.New(), func(store.WakeHint) {}) }()
	select {
	case <-silent.closed:
	case <-time.After(time.Minute):
		t.Error("the session goes on that does not reply to a new worker")
	}
	cancel()
	if err := <-coming; err != nil {
		t.Error(err)
	}
	staying.hinted(t, store.HintClaim)
	staying.hinted(t, store.HintOwnedRunChange)
}

// A look that waits for a connection keeps no other store from stopping.
func TestALookThatHangsKeepsNoTenantFromStopping(t *testing.T) {
	leaktest.Test(t)
	_, tenants := openTenants(t, migratedURL(t), 2)
	for range maxEngineConns {
		conn, err := tenants[0].acquireConn(t.Context(), tenants[0].enginePool)
		if err != nil {
			t.Fatal(err)
		}
		defer tenants[0].releaseConn(tenants[0].enginePool, conn)
	}
	ctx, cancel := context.WithCancel(t.Context())
	looks := make(chan error, 2)
	go func() {
		_, err := tenants[0].DeadWorkers(ctx, uuid.New(), nil)
		looks <- err
	}()
	gate := tenants[0].engineGate
	for waiting := 0; waiting == 0; {
		gate.mu.Lock()
		waiting = len(gate.waiting)
		gate.mu.Unlock()
	}
	ended, end := context.WithCancel(t.Context())
	end()
	go func() {
		_, err := tenants[1].DeadWorkers(ended, uuid.New(), nil)
		looks <- err
	}()
	select {
	case err := <-looks:
		if err == nil {
			t.Error("a look whose context has ended returned no error")
		}
	case <-time.After(time.Minute):
		t.Error("a look whose context has ended waits for that of another store")
	}
	cancel()
	<-looks
}
