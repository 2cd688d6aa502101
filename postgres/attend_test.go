package postgres

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// attendance is a call of Attend that a test can follow.
type attendance struct {
	hints map[store.Hint]chan struct{}
	done  chan error
	stop  context.CancelFunc
}

func attend(t *testing.T, s *Store, worker uuid.UUID) *attendance {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	a := &attendance{
		hints: map[store.Hint]chan struct{}{store.HintClaim: make(chan struct{}, 1), store.HintNews: make(chan struct{}, 1)},
		done:  make(chan error, 1), stop: cancel,
	}
	go func() {
		a.done <- s.Attend(ctx, worker, func(h store.Hint) {
			select {
			case a.hints[h] <- struct{}{}:
			default:
			}
		})
	}()
	t.Cleanup(cancel)
	a.hinted(t, store.HintClaim) // once the session is up
	a.hinted(t, store.HintNews)
	beat(t, s, worker)
	return a
}

func (a *attendance) hinted(t *testing.T, want store.Hint) {
	t.Helper()
	select {
	case <-a.hints[want]:
	case <-time.After(20 * time.Second):
		t.Fatalf("no hint %d came", want)
	}
}

func beat(t *testing.T, s *Store, worker uuid.UUID) {
	t.Helper()
	at := now(t, s)
	if _, err := s.Renew(t.Context(), store.Heartbeat{Worker: store.Worker{ID: worker, Name: "w", StartedAt: at}, LeaseUntil: at}); err != nil {
		t.Fatal(err)
	}
}

func dead(t *testing.T, s *Store, self, worker uuid.UUID) bool {
	t.Helper()
	list, err := s.Dead(t.Context(), self)
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(list, worker)
}

func TestAttendHintsAndShowsDeath(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := openBeside(t, mode)
			worker, other, unseen := uuid.New(), uuid.New(), uuid.New()
			a := attend(t, s, worker)
			beat(t, s, unseen) // never attended: only its leases can tell
			commit(t, s, &store.Batch{Starts: []*store.Start{{Run: pending(now(t, s))}}})
			a.hinted(t, store.HintClaim)
			if dead(t, s, other, worker) {
				t.Error("a worker that attends was called dead")
			}
			a.stop()
			if err := <-a.done; err != nil {
				t.Error(err)
			}
			for deadline := time.Now().Add(10 * time.Second); !dead(t, s, other, worker); {
				if time.Now().After(deadline) {
					t.Fatal("a worker that is gone was not seen")
				}
			}
			if dead(t, s, worker, worker) || dead(t, s, other, unseen) {
				t.Error("the asker itself, or one that never attended, was called dead")
			}
		})
	}
}

// TestAttendComesBack ends the session from the server's side: the worker is not taken for
// dead while it comes back, and hears again.
func TestAttendComesBack(t *testing.T) {
	s := open(t, "cache_statement")
	worker := uuid.New()
	a := attend(t, s, worker)
	for range 3 {
		var ended int
		err := s.user.QueryRow(t.Context(), `
			SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE locktype = 'advisory' AND granted
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
	commit(t, s, &store.Batch{Starts: []*store.Start{{Run: pending(now(t, s))}}})
	a.hinted(t, store.HintClaim)
}

// TestReturnerCallsNobodyDead: after a failover everybody has just come back. A worker
// that has only just started may look at once.
func TestReturnerCallsNobodyDead(t *testing.T) {
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
	if _, err := s.user.Exec(t.Context(), "UPDATE durable.worker SET started_at = started_at - interval '1 hour', attended_at = clock_timestamp() WHERE id = $1", newcomer); err != nil {
		t.Fatal(err)
	}
	if dead(t, s, newcomer, gone) {
		t.Error("a worker that has only just come back called another dead")
	}
	for deadline := time.Now().Add(10 * time.Second); !dead(t, s, newcomer, gone); {
		if time.Now().After(deadline) {
			t.Fatal("it never did")
		}
	}
}

func TestCloseEndsAttend(t *testing.T) {
	s := open(t, "cache_statement")
	a := attend(t, s, uuid.New())
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-a.done; !errors.Is(err, store.ErrClosed) {
		t.Errorf("attendance ended with %v", err)
	}
}
