package postgres

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// A gate admits one call, and a further one each time that calls have waited for connGrowWait, up to its maximum.
func TestConnGateGrowsWhileCallsWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnGate(3, allOpen)
		began := time.Now()
		for i := range 3 {
			if err := g.acquireSlot(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != time.Duration(i)*connGrowWait {
				t.Errorf("call %d was admitted after %v", i, took)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.acquireSlot(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a fourth call was admitted: %v", err)
		}
		admitted := make(chan error)
		go func() { admitted <- g.acquireSlot(t.Context()) }()
		synctest.Wait()
		g.releaseSlot()
		if err := <-admitted; err != nil || g.inUse != 3 {
			t.Errorf("the next call got %v; %d calls are in", err, g.inUse)
		}
	})
}

// A gate whose calls follow one another closely admits the next one at once, up to its maximum, and no longer after a rest.
func TestConnGateGrowsAtOnceWhileBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnGate(3, allOpen)
		hurried := func() {
			t.Helper()
			began := time.Now()
			if err := g.acquireSlot(t.Context()); err != nil || time.Since(began) != 0 {
				t.Fatalf("a call was admitted after %v: %v", time.Since(began), err)
			}
		}
		for range connBusyCalls {
			hurried()
			g.releaseSlot()
			time.Sleep(connBusyTime / connBusyCalls)
		}
		for range 3 {
			hurried()
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := g.acquireSlot(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("a fourth call was admitted: %v", err)
		}
		for range 3 {
			g.releaseSlot()
		}
		for g.currentMax > 1 {
			time.Sleep(connShrinkInterval)
			hurried()
			g.releaseSlot()
		}
		hurried()
		began := time.Now()
		if err := g.acquireSlot(t.Context()); err != nil || time.Since(began) != connGrowWait {
			t.Fatalf("after a rest, a call was admitted after %v: %v", time.Since(began), err)
		}
	})
}

// While a connection is being opened, waiting calls open a further one only after connOpenWait.
func TestConnGateWaitsForConnectionsThatAreOpened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := 0
		g := newConnGate(3, func() int { return open })
		for range connBusyCalls {
			if err := g.acquireSlot(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.releaseSlot()
		}
		admittedAfter := func(want time.Duration) {
			t.Helper()
			began := time.Now()
			if err := g.acquireSlot(t.Context()); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); took != want {
				t.Errorf("a call was admitted after %v, not after %v", took, want)
			}
		}
		admittedAfter(0)
		admittedAfter(connOpenWait)
		open = 2
		admittedAfter(connGrowWait) // the busy time is over
	})
}

// allOpen says that all connections of the pool are open.
func allOpen() int { return maxEngineConns }

// A gate whose calls no longer overlap shrinks to one connection, and one in full use does not shrink.
func TestConnGateShrinks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnGate(3, allOpen)
		for range 3 {
			if err := g.acquireSlot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(2 * connShrinkInterval)
		g.releaseSlot()
		if g.currentMax != 3 {
			t.Errorf("a bound of %d while all connections were in use", g.currentMax)
		}
		g.releaseSlot()
		g.releaseSlot()
		for range 3 {
			time.Sleep(connShrinkInterval)
			if err := g.acquireSlot(t.Context()); err != nil {
				t.Fatal(err)
			}
			g.releaseSlot()
		}
		if g.currentMax != 1 || g.inUse != 0 {
			t.Errorf("a bound of %d without load, %d calls are in", g.currentMax, g.inUse)
		}
	})
}

// A gate whose pool has had more connections than the bound allows for connIdleTime closes the surplus ones, one with each call.
func TestConnGateClosesSurplusConnections(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		open := 3
		g := newConnGate(3, func() int { return open })
		call := func() (closed bool) {
			if err := g.acquireSlot(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer g.releaseSlot()
			if closed = g.takeSurplusConn(); closed {
				open--
			}
			return closed
		}
		began := time.Now()
		for open > 1 {
			time.Sleep(time.Second)
			if closed := call(); closed && time.Since(began) < connShrinkInterval+connIdleTime {
				t.Fatalf("a connection is closed after %v", time.Since(began))
			}
			if time.Since(began) > 4*connShrinkInterval {
				t.Fatalf("%d connections after %v", open, time.Since(began))
			}
		}
		time.Sleep(3 * connIdleTime)
		for range 2 {
			if call() {
				t.Error("the last connection is closed")
			}
		}
	})
}

// testWithTwoSurplusConns calls test with a gate that is to close two of the three open connections of its pool.
func testWithTwoSurplusConns(t *testing.T, test func(t *testing.T, g *connGate, open *int)) {
	synctest.Test(t, func(t *testing.T) {
		open := 3
		g := newConnGate(3, func() int { return open })
		for range 3 {
			time.Sleep(connIdleTime)
			_ = g.acquireSlot(t.Context())
			g.releaseSlot()
		}
		if n := g.surplusConns.Load(); n != 2 {
			t.Fatalf("%d connections are to be closed", n)
		}
		test(t, g, &open)
	})
}

// A gate closes no surplus connection if the bound grows meanwhile.
func TestConnGateKeepsSurplusConnectionsWhenTheBoundGrows(t *testing.T) {
	testWithTwoSurplusConns(t, func(t *testing.T, g *connGate, _ *int) {
		g.raiseBound()
		if g.takeSurplusConn() {
			t.Error("a connection is closed although the bound has grown")
		}
	})
}

// A gate closes none of the remaining connections if the pool has closed the surplus ones itself, as it does with connections that are idle or lead to
// another host.
func TestConnGateKeepsConnectionsAfterThePoolClosedTheSurplus(t *testing.T) {
	testWithTwoSurplusConns(t, func(t *testing.T, g *connGate, open *int) {
		*open = 1
		if g.takeSurplusConn() {
			t.Error("the last connection is closed")
		}
		*open = 2
		if g.takeSurplusConn() {
			t.Error("a connection is closed that was opened after the surplus ones were closed")
		}
	})
}

// After the server has refused a connection, calls wait for those that there are, until connFreezeTime is over.
func TestConnGateFreezes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newConnGate(3, allOpen)
		for range 2 {
			if err := g.acquireSlot(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		g.releaseSlot()
		g.capBoundAtOpenConns(1)
		began := time.Now()
		if err := g.acquireSlot(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took < connFreezeTime || took > connFreezeTime+2*connGrowWait {
			t.Errorf("a call was admitted after %v", took)
		}
	})
}

// While the server has no connection left, calls share those that there are, a worker renews its leases on them, and the error of a
// call without any names the fix.
func TestServerWithoutConnectionsLeft(t *testing.T) {
	server, err := pgtest.Start(t.Context(), pgtest.Options{NoSync: true, Settings: map[string]string{"max_connections": "10"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	s, err := openDatabase(t.Context(), server.URL())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	at := now(t, s) // the pool of the engine has one connection
	s.userPool.Reset()
	for {
		conn, err := pgx.Connect(t.Context(), server.URL())
		if hasSQLState(err, sqlStateTooManyConns) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(t.Context())
	}
	done := make(chan error)
	const calls = 20
	for range calls {
		go func() {
			_, err := s.QueueRows(t.Context())
			done <- err
		}()
	}
	for range calls {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	if s.engineGate.inUse != 0 {
		t.Errorf("%d connections count as used after all calls", s.engineGate.inUse)
	}
	if warning := s.tooManyConnsWarning.takeWarning(time.Now()); !strings.Contains(warning, "calls share the connections") || !strings.Contains(warning, "raise max_connections") {
		t.Errorf("what is logged: %q", warning)
	}
	if _, err := s.dialListenSession(t.Context()); !hasSQLState(err, sqlStateTooManyConns) {
		t.Fatalf("a session to listen: %v", err)
	}
	if warning := s.tooManyConnsWarning.takeWarning(time.Now()); warning != "" {
		t.Errorf("within the same minute: %q", warning)
	}
	if warning := s.tooManyConnsWarning.takeWarning(time.Now().Add(connWarningInterval)); !strings.Contains(warning, "no session listens") {
		t.Errorf("after a minute: %q", warning)
	}
	s.heartbeatPool.Reset()
	beat := store.Heartbeat{Worker: store.Worker{ID: uuid.New(), Name: "w", StartedAt: at}, LeaseUntil: at, Leases: []store.Lease{{Run: uuid.New()}}}
	if _, err := s.RenewLeases(t.Context(), beat); err != nil {
		t.Error(err)
	}
	if _, err := s.acquireUserConn(t.Context()); !hasSQLState(err, sqlStateTooManyConns) {
		t.Errorf("a pool without any connection got %v", err)
	}
	if err := s.wrapError(t.Context(), "call", &pgconn.PgError{Code: sqlStateTooManyConns}); !errors.Is(err, store.ErrUnavailable) || !strings.Contains(err.Error(), "raise max_connections") {
		t.Errorf("the error does not name the fix: %v", err)
	}
}
