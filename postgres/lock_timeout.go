package postgres

import (
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// Lock timeouts that differ from the one in set_engine_session_settings.sql.
const (
	shortLockTimeout   = "20ms" // a single write, which is retried anyway
	controlLockTimeout = "1s"   // a control request, which delays only its caller
)

// readHoldResult reads the result of run_hold_after_rejected_write.sql for one item. Without a row the item gets no outcome.
func readHoldResult(res statementResults, item *store.OwnershipEnd) error {
	item.Outcome, item.RunState = 0, store.RunState{}
	return eachRow(res, func(rows pgx.Rows) error {
		item.Outcome, item.RunState.Found = store.Written, true
		return rows.Scan((*int16)(&item.RunState.Status), (*epochValue)(&item.RunState.Epoch), (*int16)(&item.RunState.Control))
	})
}

// handleLockTimeout handles the error of a batch that was rolled back. After a lock timeout, a batch of one item
// gets the outcome Locked, or the start of a root returns ErrLocked. A larger batch returns ErrLocked;
// the journal then divides it, so that the other items are written.
func (s *database) handleLockTimeout(b *store.Batch, err error) error {
	switch {
	case !isLockTimeout(err):
		return err
	case b.Len() == 1 && len(b.Steps) == 1:
		b.Steps[0].Outcome = store.Locked
		return nil
	case b.Len() == 1 && len(b.Starts) == 1 && !b.Starts[0].Run.Parent.Valid:
		return fmt.Errorf("postgres: start %q: %w", shortenName(b.Starts[0].Run.Name), store.ErrLocked)
	case b.Len() == 1 && len(b.Signals) == 1:
		b.Signals[0].Outcome = store.Locked
		return nil
	case b.Len() == 1 && len(b.Receives) == 1:
		b.Receives[0].Outcome = store.Locked
		return nil
	case b.Len() == 1 && len(b.OwnershipEnds) == 1:
		b.OwnershipEnds[0].Outcome = store.Locked
		return nil
	case b.Len() == 2 && len(b.Starts) == 1 && len(b.Steps) == 1 && b.Starts[0].Run.Parent.Valid: // a child and its marker
		b.Starts[0].Outcome, b.Steps[0].Outcome = store.Locked, store.Locked
		return nil
	case b.Len() == 1: // a child without its marker
		b.Starts[0].Outcome = store.Locked
		return nil
	default:
		return fmt.Errorf("postgres: commit: %w", store.ErrLocked)
	}
}

// shortenName shortens a name for an error message.
func shortenName(name string) string {
	const most = 100
	if len(name) > most {
		return name[:most] + "..."
	}
	return name
}
