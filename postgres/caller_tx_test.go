package postgres

import (
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// TestCheckpointInTx writes steps in a user's transaction: new ones, over a marker, over a terminal row,
// and fenced ones. The transaction prevents a claim, but no renewal.
func TestCheckpointInTx(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := openBeside(t, mode)
			at := now(t, s)
			owner := uuid.New()
			run := running(owner, at)
			run.WakeAt = at // due: its lease has ended
			marker := done(run.UUID, "marked", at)
			marker.Step.Status = store.StepStarted
			first := done(run.UUID, "first", at)
			commit(t, s, &store.Batch{Starts: []*store.StartWrite{{Run: run}}, Steps: []*store.StepWrite{marker, first}})

			other := done(run.UUID, "first", at)
			other.Step.Attempt, other.Step.Output = 2, []byte("2")
			stale := done(run.UUID, "stale", at)
			stale.Step.Epoch = store.Epoch{}
			nonce := done(run.UUID, "nonce", at)
			nonce.Step.Epoch.Nonce++
			known := done(run.UUID, "marked", at)
			known.RowExists = true
			err := pgx.BeginFunc(t.Context(), s.userPool, func(tx pgx.Tx) error {
				for _, c := range []struct {
					w    *store.StepWrite
					want store.WriteOutcome
				}{
					{done(run.UUID, "new", at), store.Written},
					{known, store.Written},
					{done(run.UUID, "first", at), store.AlreadyRecorded}, // a repeated try must not repeat the user's writes
					{other, store.AlreadyRecorded},
					{stale, store.Fenced},
					{nonce, store.Fenced},
				} {
					if err := s.writeStepInTx(t.Context(), tx, c.w, false); err != nil {
						return err
					}
					if c.w.Outcome != c.want {
						t.Errorf("%s: outcome %d, not %d", c.w.Step.Name, c.w.Outcome, c.want)
					}
				}
				q := store.ClaimQuery{Worker: uuid.New(), Filter: flow, Limit: 1, Now: at, LeaseUntil: at.Add(1e9), MaxCrashes: 5}
				claims, err := s.Claim(t.Context(), q)
				if err != nil || len(claims.Runs) != 0 {
					t.Errorf("a claim during the transaction: %v, %v", claims, err)
				}
				pulse, err := s.RenewLeases(t.Context(), store.Heartbeat{
					Worker: store.Worker{ID: owner, StartedAt: at}, Leases: []store.Lease{{Run: run.UUID, Epoch: epochAt(1)}}, LeaseUntil: at,
				})
				if err != nil || len(pulse.LostRuns) != 0 {
					t.Errorf("a renewal during the transaction: %v, %v", pulse, err)
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			if string(other.RecordedStep.Output) != `{"ok":true}` {
				t.Errorf("the recorded output is %s", other.RecordedStep.Output)
			}
			history, err := s.History(t.Context(), run.UUID)
			if err != nil || len(history) != 3 {
				t.Errorf("the history is %v, %v", history, err)
			}
		})
	}
}

// TestStartInTx starts a run if and only if the user's transaction commits.
func TestStartInTx(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			s := openBeside(t, mode)
			at := now(t, s)
			undo := errors.New("undo")
			for _, end := range []error{undo, nil} {
				start := &store.StartWrite{Run: pending(at)}
				err := pgx.BeginFunc(t.Context(), s.userPool, func(tx pgx.Tx) error {
					for range 2 { // the second is a repeated call
						if err := s.startRunsInTx(t.Context(), tx, []*store.StartWrite{start}); err != nil {
							return err
						}
						if start.Outcome != store.Written {
							t.Errorf("outcome %d", start.Outcome)
						}
					}
					return end
				})
				if !errors.Is(err, end) {
					t.Fatal(err)
				}
				got, err := s.GetRuns(t.Context(), []store.RunRef{{UUIDOrName: start.Run.Name}})
				if err != nil || (got[0] != nil) != (end == nil) {
					t.Errorf("after %v: %v, %v", end, got[0], err)
				}
			}
		})
	}
}

// The caller's transaction keeps its own lock timeout.
func TestSignalTxKeepsSettings(t *testing.T) {
	s := shop(t)
	w := durable.Define("w", func(c *durable.Ctx, _ int) (string, error) { return c.Receive[string]("word") })
	e, err := durable.New(s, durable.Config{Workflows: []durable.Definition{w}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.Start(t.Context(), e, 0, durable.ID("order")); err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), s.userPool, func(tx pgx.Tx) error {
		var before, after string
		if err := tx.QueryRow(t.Context(), "SELECT current_setting('lock_timeout')").Scan(&before); err != nil {
			return err
		}
		if err := SignalTx(t.Context(), tx, e, "order", "word", "hello"); err != nil {
			return err
		}
		if err := tx.QueryRow(t.Context(), "SELECT current_setting('lock_timeout')").Scan(&after); err != nil {
			return err
		}
		if before != after {
			t.Errorf("lock_timeout of the user's transaction was %s, and is %s after SignalTx", before, after)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A text that can be the ID of no run does not abort the caller's transaction.
func TestSignalTxOddID(t *testing.T) {
	s := open(t, "cache_statement")
	e, err := durable.New(s, durable.Config{})
	if err != nil {
		t.Fatal(err)
	}
	err = pgx.BeginFunc(t.Context(), s.userPool, func(tx pgx.Tx) error {
		if err := SignalTx(t.Context(), tx, e, "order", "word", 1, durable.Actor("ann")); !errors.Is(err, durable.ErrInvalidConfig) {
			t.Errorf("a signal with an actor: %v", err)
		}
		if err := SignalTx(t.Context(), tx, e, "\xff", "word", 1); !errors.Is(err, durable.ErrNotFound) {
			t.Errorf("%v, want ErrNotFound", err)
		}
		_, err := tx.Exec(t.Context(), "SELECT 1")
		return err
	})
	if err != nil {
		t.Error("the transaction is lost:", err)
	}
}
