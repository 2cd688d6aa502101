package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// A process that stands still in the middle of a transaction loses its locks, so that others need not wait for it.
func TestATransactionThatStandsStillLosesItsLocks(t *testing.T) {
	t.Parallel()
	s := openBeside(t, "cache_statement")
	run := running(uuid.New(), now(t, s))
	begin(t, s, &store.StartWrite{Run: run})
	locked, over := make(chan struct{}), make(chan struct{})
	stopped := make(chan error, 1)
	go func() {
		stopped <- s.tryTransaction(t.Context(), "order", controlLockTimeout, func(ask roundTripFunc) error {
			if _, err := s.lockRunTree(ask, []uuid.UUID{run.UUID}); err != nil {
				return err
			}
			close(locked)
			<-over // as after SIGSTOP
			_, err := s.lockRunTree(ask, []uuid.UUID{run.UUID})
			return err
		})
	}()
	<-locked
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Second) // the timeout of the session is 60s
	defer cancel()
	err := store.ErrLocked
	for errors.Is(err, store.ErrLocked) && ctx.Err() == nil { // each try waits for a lock timeout
		err = s.ControlRuns(ctx, &store.ControlRequest{Verb: store.VerbPause, Runs: []uuid.UUID{run.UUID}, Now: now(t, s)})
	}
	close(over)
	if err != nil {
		t.Errorf("another request for the run: %v", err)
	}
	if err := <-stopped; !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the transaction that stood still: %v, want %v", err, store.ErrUnavailable)
	}
}
