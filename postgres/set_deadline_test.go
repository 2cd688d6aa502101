package postgres

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// The event of a timeout has the deadline that the change has replaced, also if another transaction has set that one meanwhile.
func TestTheEventOfATimeoutHasTheDeadlineThatItReplaced(t *testing.T) {
	s := open(t, "cache_statement")
	at := now(t, s)
	first, between := at.Add(time.Hour), at.Add(2*time.Hour)
	for name, last := range map[string]time.Time{"another": at.Add(3 * time.Hour), "the first one again": first} {
		t.Run(name, func(t *testing.T) {
			run := running(uuid.New(), at)
			run.Deadline = first
			begin(t, s, &store.StartWrite{Run: run})
			holder, err := s.userPool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer holder.Rollback(context.WithoutCancel(t.Context())) //nolint:errcheck // after a commit there is nothing to undo
			if _, err := holder.Exec(t.Context(), "UPDATE durable.run SET deadline_at = $2 WHERE id = $1", run.UUID, between); err != nil {
				t.Fatal(err)
			}
			change := &store.DeadlineChangeRequest{Run: run.UUID, Now: at, NewDeadline: last, Timeout: last.Sub(at), ActorAndReason: store.ActorAndReason{Actor: "ann", At: at}}
			ended := make(chan error, 1)
			go func() {
				err := s.SetDeadline(t.Context(), change)
				for errors.Is(err, store.ErrLocked) { // on a slow machine
					err = s.SetDeadline(t.Context(), change)
				}
				ended <- err
			}()
			for waits := 0; waits == 0 && len(ended) == 0; {
				err := s.userPool.QueryRow(t.Context(), "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()").Scan(&waits)
				if err != nil {
					t.Fatal(err)
				}
			}
			if err := holder.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := <-ended; err != nil || change.Outcome != store.Written || !row(t, s, run.UUID).Deadline.Equal(last) {
				t.Fatalf("the change gives %v, %v", change.Outcome, err)
			}
			var old, set string
			err = s.userPool.QueryRow(t.Context(), "SELECT old_value, new_value FROM durable.event WHERE run_id = $1 AND type = 11", run.UUID).Scan(&old, &set)
			if err != nil || old != store.TimeText(between) || set != store.TimeText(last) {
				t.Errorf("the event has %s and %s, %v; want %s and %s", old, set, err, store.TimeText(between), store.TimeText(last))
			}
		})
	}
}
