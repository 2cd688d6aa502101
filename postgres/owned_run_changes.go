package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// OwnedRunChanges implements store.Store.
func (s *database) OwnedRunChanges(ctx context.Context, worker uuid.UUID, held []store.Lease) (store.OwnedRunChanges, error) {
	var changes store.OwnedRunChanges
	if len(held) == 0 {
		return changes, nil
	}
	known := make(map[uuid.UUID]time.Time, len(held))
	for _, l := range held {
		known[l.Run] = l.RunDeadline
	}
	err := s.runBatch(ctx, s.enginePool, "read the changes of owned runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.ownedRunChanges, ownedRunChangeArgs(held, worker)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var asked store.PendingControl
			var status store.Status
			var woken bool
			var deadline time.Time
			err := rows.Scan((*uuidValue)(&asked.Run), (*epochValue)(&asked.Epoch), (*int16)(&status), (*int16)(&asked.Control), &woken, (*timeValue)(&deadline))
			if err != nil {
				return err
			}
			lease := store.Lease{Run: asked.Run, Epoch: asked.Epoch, RunDeadline: deadline}
			if status.IsTerminal() {
				changes.EndedLeases = append(changes.EndedLeases, lease)
				return nil
			}
			if !deadline.Equal(known[asked.Run]) {
				changes.ChangedDeadlines = append(changes.ChangedDeadlines, lease)
			}
			if asked.Control != 0 {
				changes.ControlRequests = append(changes.ControlRequests, asked)
			}
			if woken {
				changes.Woken = append(changes.Woken, asked.Run)
			}
			return nil
		})
	})
	if err != nil {
		return store.OwnedRunChanges{}, err
	}
	s.rewindDetector.removeEndedRuns(changes.EndedLeases)
	return changes, nil
}

// ownedRunChangeArgs returns the parameters of owned_run_changes.sql.
func ownedRunChangeArgs(items []store.Lease, owner uuid.UUID) []any {
	return append(leaseArgs(items, owner), timeArray{len(items), func(i int) *time.Time { return &items[i].RunDeadline }})
}
