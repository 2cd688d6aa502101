package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// How long statements wait for a lock, where not as session.sql says.
const (
	briefly = "20ms" // a lone write that is made again anyway
	orderly = "1s"   // an order, which keeps nobody waiting but its caller
)

// wasHeld takes the result of run_hold.sql for one item. No row leaves it undecided.
func wasHeld(res results, item *store.RunWrite) error {
	item.Outcome, item.State = 0, store.RunState{}
	return each(res, func(rows pgx.Rows) error {
		item.Outcome, item.State.Found = store.Written, true
		return rows.Scan((*int16)(&item.State.Status), (*epochValue)(&item.State.Epoch), (*int16)(&item.State.Control))
	})
}

// refused answers for a batch that was rolled back. A wait that was too long must not
// be one for everybody: a journal splits the batch, and what is alone then gets the
// answer that fits it.
func (s *database) refused(b *store.Batch, err error) error {
	switch {
	case !held(err):
		return err
	case b.Len() == 1 && len(b.Steps) == 1:
		b.Steps[0].Outcome = store.Locked
		return nil
	case b.Len() == 1 && len(b.Starts) == 1 && !b.Starts[0].Run.Parent.Valid:
		return fmt.Errorf("postgres: start %q: %w", shown(b.Starts[0].Run.Name), store.ErrLocked)
	case b.Len() == 1 && len(b.Signals) == 1:
		b.Signals[0].Outcome = store.Locked
		return nil
	case b.Len() == 1 && len(b.Receives) == 1:
		b.Receives[0].Outcome = store.Locked
		return nil
	case b.Len() == 1 && len(b.Runs) == 1:
		b.Runs[0].Outcome = store.Locked
		return nil
	case b.Len() == 2 && len(b.Starts) == 1 && len(b.Steps) == 1 && b.Starts[0].Run.Parent.Valid: // a child and its mark
		b.Starts[0].Outcome, b.Steps[0].Outcome = store.Locked, store.Locked
		return nil
	case b.Len() == 1: // a child without one
		b.Starts[0].Outcome = store.Locked
		return nil
	default:
		return fmt.Errorf("postgres: commit: %w", store.ErrLocked)
	}
}

// shown keeps a name of any length and content fit for an error.
func shown(name string) string {
	const most = 100
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}
