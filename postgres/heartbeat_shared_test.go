package postgres

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/leaktest"
	"github.com/seed8ec063be/durable/internal/store"
)

// idleHeartbeat returns the heartbeat of a worker without leases.
func idleHeartbeat(t *testing.T, s *database) store.Heartbeat {
	at := now(t, s)
	return store.Heartbeat{Worker: store.Worker{ID: uuid.New(), Name: "idle", StartedAt: at}, LeaseUntil: at.Add(time.Minute)}
}

// gatherHeartbeats calls Renew for each store while another heartbeat seems to be in flight. It returns the results after that.
func gatherHeartbeats(t *testing.T, stores []*database, beats []store.Heartbeat) (results []store.RenewResult, errs []error) {
	t.Helper()
	b := &stores[0].heartbeats
	b.mu.Lock()
	b.sending = true
	b.mu.Unlock()
	results, errs = make([]store.RenewResult, len(stores)), make([]error, len(stores))
	done := make(chan struct{})
	for i, s := range stores {
		go func() {
			results[i], errs[i] = s.RenewLeases(t.Context(), beats[i])
			done <- struct{}{}
		}()
	}
	for waiting := 0; waiting < len(stores) && t.Context().Err() == nil; {
		b.mu.Lock()
		waiting = len(b.waiting)
		b.mu.Unlock()
	}
	b.mu.Lock()
	b.waiting[0].turn <- true // as the one in flight does at its end
	b.mu.Unlock()
	for range stores {
		<-done
	}
	return results, errs
}

// transactionOf returns the transaction that wrote the row of a worker.
func transactionOf(t *testing.T, s *database, id uuid.UUID) (xmin string) {
	t.Helper()
	table := pgx.Identifier{s.schema, "worker"}.Sanitize()
	if err := s.enginePool.QueryRow(t.Context(), "SELECT xmin::text FROM "+table+" WHERE id = $1", id).Scan(&xmin); err != nil {
		t.Fatal(err)
	}
	return xmin
}

// Heartbeats of workers without leases that come together share a transaction, whatever the schemas of their stores. Each gets the
// result of its own worker.
func TestHeartbeatsShareATransaction(t *testing.T) {
	leaktest.Test(t)
	first, others := openTenants(t, migratedURL(t), 3)
	stores := append(others, first, first) // two workers of one schema
	var beats []store.Heartbeat
	for _, s := range stores {
		beats = append(beats, idleHeartbeat(t, s))
	}
	if _, err := stores[1].RenewLeases(t.Context(), beats[1]); err != nil {
		t.Fatal(err)
	}
	if found, err := stores[1].SetWorkerQuiet(t.Context(), store.SetWorkerQuietRequest{Worker: beats[1].Worker.ID, Now: now(t, first), Actor: "ann"}); err != nil || !found {
		t.Fatal(found, err)
	}
	before := now(t, first)
	results, errs := gatherHeartbeats(t, stores, beats)
	for i, s := range stores {
		if errs[i] != nil || results[i].Quiet != (i == 1) || results[i].Now.Before(before) {
			t.Errorf("heartbeat %d: %+v, %v", i, results[i], errs[i])
		}
		if got, want := transactionOf(t, s, beats[i].Worker.ID), transactionOf(t, first, beats[3].Worker.ID); got != want {
			t.Errorf("heartbeat %d was written by transaction %s, another one by %s", i, got, want)
		}
	}
	if first.heartbeats.sending {
		t.Error("a heartbeat seems to be in flight")
	}
}

// A heartbeat that fails, because the schema was dropped, does not hinder the others.
func TestAHeartbeatThatFailsDoesNotHinderOthers(t *testing.T) {
	leaktest.Test(t)
	first, others := openTenants(t, migratedURL(t), 2)
	stores := append(others, first)
	var beats []store.Heartbeat
	for _, s := range stores {
		beats = append(beats, idleHeartbeat(t, s))
	}
	if _, err := first.enginePool.Exec(t.Context(), "DROP SCHEMA "+pgx.Identifier{others[0].schema}.Sanitize()+" CASCADE"); err != nil {
		t.Fatal(err)
	}
	_, errs := gatherHeartbeats(t, stores, beats)
	if errs[0] == nil || errs[1] != nil || errs[2] != nil {
		t.Errorf("the heartbeats returned %v", errs)
	}
}

// A heartbeat that waits for another one ends with its context, and one that renews leases does not wait.
func TestAHeartbeatWaitsNoLongerThanItsContext(t *testing.T) {
	leaktest.Test(t)
	s := openAt(t, migratedURL(t))
	s.heartbeats.sending = true // and does not end
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		_, err := s.RenewLeases(ctx, idleHeartbeat(t, s))
		done <- err
	}()
	for waiting := 0; waiting == 0 && t.Context().Err() == nil; {
		s.heartbeats.mu.Lock()
		waiting = len(s.heartbeats.waiting)
		s.heartbeats.mu.Unlock()
	}
	cancel()
	if err := <-done; err == nil || len(s.heartbeats.waiting) != 0 {
		t.Errorf("got %v, and %d wait", err, len(s.heartbeats.waiting))
	}
	for range 50 { // it was told to send when its context ended
		b := &sharedHeartbeats{sending: true}
		late, next := &sharedHeartbeat{turn: make(chan bool, 1)}, &sharedHeartbeat{turn: make(chan bool, 1)}
		b.waiting = append(b.waiting, late, next)
		late.turn <- true
		if !late.await(ctx, b) && len(next.turn) != 1 {
			t.Fatal("nobody sends the heartbeats that wait")
		}
	}
	h := idleHeartbeat(t, s)
	h.Leases = []store.Lease{{Run: store.NewUUID(0)}}
	if got, err := s.RenewLeases(t.Context(), h); err != nil || len(got.LostRuns) != 1 {
		t.Errorf("with a lease: %+v, %v", got, err)
	}
}

// A heartbeat that another caller sends takes no longer than its own caller waits.
func TestASharedHeartbeatHasTheEarliestDeadline(t *testing.T) {
	soon, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Minute))
	defer cancel()
	late, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	want, _ := soon.Deadline()
	for _, all := range [][]*sharedHeartbeat{{{ctx: late}, {ctx: soon}}, {{ctx: t.Context()}, {ctx: soon}, {ctx: late}}} {
		ctx, cancel := withEarliestDeadline(all[0].ctx, all)
		if got, _ := ctx.Deadline(); !got.Equal(want) {
			t.Errorf("the deadline is %v, want %v", got, want)
		}
		cancel()
	}
}
