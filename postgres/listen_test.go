package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
)

// attendance is a call of Listen that a test can follow.
type attendance struct {
	hints map[store.WakeHint]chan struct{}
	done  chan error
	stop  context.CancelFunc
}

func attend(t *testing.T, s *database, worker uuid.UUID) *attendance {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attendance{
		hints: map[store.WakeHint]chan struct{}{store.HintClaim: make(chan struct{}, 1), store.HintOwnedRunChange: make(chan struct{}, 1)},
		done:  make(chan error, 1), stop: cancel,
	}
	go func() {
		a.done <- s.Listen(ctx, worker, func(h store.WakeHint) {
			select {
			case a.hints[h] <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(cancel)
	a.hinted(t, store.HintClaim) // once the session is up
	a.hinted(t, store.HintOwnedRunChange)
	beat(t, s, worker)
	return a
}

func (a *attendance) hinted(t *testing.T, want store.WakeHint) {
	t.Helper()
	select {
	case <-a.hints[want]:
	case <-time.After(time.Minute):
		t.Fatalf("no hint %d came", want)
	}
}

func beat(t *testing.T, s *database, worker uuid.UUID) {
	t.Helper()
	at := now(t, s)
	if _, err := s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: worker, Name: "w", StartedAt: at}, LeaseUntil: at}); err != nil {
		t.Fatal(err)
	}
}

func dead(t *testing.T, s *database, self, worker uuid.UUID) bool {
	t.Helper()
	peers, err := s.DeadWorkers(t.Context(), self, nil)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(peers.Dead, worker)
}

func TestListenGivesHintsAndShowsDeath(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := openBeside(t, mode)
			worker, other, unseen := uuid.New(), uuid.New(), uuid.New()
			a := attend(t, s, worker)
			beat(t, s, unseen) // never had a presence lock: only its leases show its death
			commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: pending(now(t, s))}}})
			a.hinted(t, store.HintClaim)
			if dead(t, s, other, worker) {
				t.Error("a worker that attends was called dead")
			}
			a.stop()
			if err := <-a.done; err != nil {
				t.Error(err)
			}
			for deadline := time.Now().Add(time.Minute); !dead(t, s, other, worker); {
				if time.Now().After(deadline) {
					t.Fatal("a worker that is gone was not seen")
				}
			}
			if dead(t, s, worker, worker) || dead(t, s, other, unseen) {
				t.Error("the calling worker itself, or a worker that was never present, was reported dead")
			}
		})
	}
}

// TestListenReconnects ends the session on the server's side. The worker is not considered dead while it
// reconnects, and then receives notifications again.
func TestListenReconnects(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	s := open(t, "cache_statement")
	worker := uuid.New()
	a := attend(t, s, worker)
	for range 3 {
		var ended int
		err := s.userPool.QueryRow(t.Context(), `
			SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ExclusiveLock' AND granted
			AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`).Scan(&ended)
		if err != nil || ended != 1 {
			t.Fatalf("%d sessions were ended, %v", ended, err)
		}
		began := time.Now()
		a.hinted(t, store.HintClaim)
		t.Logf("back after %v", time.Since(began))
		if dead(t, s, uuid.New(), worker) {
			t.Error("a worker that came back was called dead")
		}
	}
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: pending(now(t, s))}}})
	a.hinted(t, store.HintClaim)
}

// TestAWorkerThatReconnectsDeclaresNobodyDead: after a failover every worker has just reconnected, so none is dead. A
// worker that has only just started may query at once.
func TestAWorkerThatReconnectsDeclaresNobodyDead(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	s := open(t, "cache_statement")
	gone, newcomer := uuid.New(), uuid.New()
	a := attend(t, s, gone)
	a.stop()
	<-a.done
	attend(t, s, newcomer)
	for deadline := time.Now().Add(time.Second); !dead(t, s, newcomer, gone); {
		if time.Now().After(deadline) {
			t.Fatal("a newcomer did not see a dead worker within a second")
		}
	}
	if _, err := s.userPool.Exec(t.Context(), "UPDATE durable.worker SET started_at = started_at - interval '1 hour', attended_at = clock_timestamp() WHERE id = $1", newcomer); err != nil {
		t.Fatal(err)
	}
	if dead(t, s, newcomer, gone) {
		t.Error("a worker that has only just come back called another dead")
	}
	for deadline := time.Now().Add(time.Minute); !dead(t, s, newcomer, gone); {
		if time.Now().After(deadline) {
			t.Fatal("it never did")
		}
	}
}

// TestAfterAPromotionNobodyIsDeclaredDead: the standby's server started long before the workers took their
// locks, which another server kept. Only the server's start time in their rows shows that.
func TestAfterAPromotionNobodyIsDeclaredDead(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	s := open(t, "cache_statement")
	living, gone := uuid.New(), uuid.New()
	attend(t, s, living)
	a := attend(t, s, gone)
	a.stop()
	<-a.done
	kept := func(worker uuid.UUID, server string) {
		t.Helper()
		tag, err := s.userPool.Exec(t.Context(), "UPDATE durable.worker SET server_started_at = "+server+" WHERE id = $1 AND attended_at > pg_postmaster_start_time()", worker)
		if err != nil || tag.RowsAffected() != 1 {
			t.Fatal(tag, err)
		}
	}
	kept(living, "server_started_at") // a heartbeat has recorded it
	for _, server := range []string{"pg_postmaster_start_time() - interval '1 hour'", "pg_postmaster_start_time() + interval '1 microsecond'", "NULL"} {
		kept(gone, server)
		if dead(t, s, uuid.New(), gone) {
			t.Errorf("a worker whose lock another server kept (%s) was called dead", server)
		}
	}
	kept(gone, "pg_postmaster_start_time()")
	for deadline := time.Now().Add(time.Minute); !dead(t, s, uuid.New(), gone); { // the server ends the session a moment later
		if time.Now().After(deadline) {
			t.Fatal("a worker whose lock this server kept, and that is gone, was not called dead")
		}
	}
	if dead(t, s, uuid.New(), living) {
		t.Error("a worker that lives was called dead")
	}
}

func TestCloseEndsListen(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	s := open(t, "cache_statement")
	a := attend(t, s, uuid.New())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-a.done; !errors.Is(err, store.ErrClosed) {
		t.Errorf("attendance ended with %v", err)
	}
}

// With WithoutListen, Listen opens no session: it waits until its context ends, and nobody is notified.
func TestListenWithoutASession(t *testing.T) {
	s := open(t, "cache_statement", WithoutListen())
	conn := ours(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	worker := uuid.New()
	go func() { done <- s.Listen(ctx, worker, func(h store.WakeHint) { t.Errorf("it was hinted %d", h) }) }()
	beat(t, s, worker)
	commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: pending(now(t, s))}}}) // notifies the workers that listen
	var listening int
	err := conn.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND query ILIKE 'listen%'").Scan(&listening)
	if err != nil || listening != 0 {
		t.Errorf("%d sessions listen, %v", listening, err)
	}
	select {
	case err := <-done:
		t.Errorf("it returned too early: %v", err)
	default:
	}
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// TestNeighbours checks that a query checks the next store.MinDeadWorkerChecks workers in the order of their IDs and those that the caller
// knows to be dead, and counts the others.
func TestNeighbours(t *testing.T) {
	pgtest.NeedLocalFacts(t)
	s := open(t, "cache_statement")
	const workers = store.MinDeadWorkerChecks + 8
	at := now(t, s)
	var ids []uuid.UUID
	for i := range workers {
		id := uuid.UUID{0: byte(i), 15: 1}
		ids = append(ids, id)
		if _, err := s.RenewLeases(t.Context(), store.Heartbeat{Worker: store.Worker{ID: id, Name: "w", StartedAt: at}, LeaseUntil: at}); err != nil {
			t.Fatal(err)
		}
	}
	// All of them seem to have taken their lock, which nobody holds.
	if _, err := s.userPool.Exec(t.Context(), "UPDATE durable.worker SET attended_at = started_at, server_started_at = pg_postmaster_start_time()"); err != nil {
		t.Fatal(err)
	}
	self := ids[10]
	peers, err := s.DeadWorkers(t.Context(), self, nil)
	if err != nil {
		t.Fatal(err)
	}
	if peers.LiveCount != workers-1 || peers.LiveWithLowerIDCount != 10 {
		t.Errorf("%d others, %d of them before", peers.LiveCount, peers.LiveWithLowerIDCount)
	}
	want := append(slices.Clone(ids[11:]), ids[:store.MinDeadWorkerChecks-(workers-11)]...)
	known := sortedUUIDs(want)
	if !slices.Equal(sortedUUIDs(peers.Dead), known) {
		t.Errorf("dead: %v, want the next %d", peers.Dead, store.MinDeadWorkerChecks)
	}
	if peers, err = s.DeadWorkers(t.Context(), self, known); err != nil {
		t.Fatal(err)
	}
	if len(peers.Dead) != workers-1 || peers.LiveCount != workers-1-len(known) {
		t.Errorf("%d dead, %d others, if %d are known", len(peers.Dead), peers.LiveCount, len(known))
	}
}

func sortedUUIDs(ids []uuid.UUID) []uuid.UUID {
	return slices.SortedFunc(slices.Values(ids), store.CompareUUIDsByShard)
}
