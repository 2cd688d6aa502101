package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// Notifications implements store.Store.
func (s *database) Notifications(ctx context.Context, worker uuid.UUID, held []store.Lease) (store.Notifications, error) {
	var news store.Notifications
	if len(held) == 0 {
		return news, nil
	}
	known := make(map[uuid.UUID]time.Time, len(held))
	for _, l := range held {
		known[l.Run] = l.RunDeadline
	}
	err := s.runBatch(ctx, s.enginePool, "look for news", func(batch *pgx.Batch) {
		batch.Queue(s.statements.notifications, notificationArgs(held, worker)...)
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
				news.EndedLeases = append(news.EndedLeases, lease)
				return nil
			}
			if !deadline.Equal(known[asked.Run]) {
				news.Deadlines = append(news.Deadlines, lease)
			}
			if asked.Control != 0 {
				news.Requests = append(news.Requests, asked)
			}
			if woken {
				news.Woken = append(news.Woken, asked.Run)
			}
			return nil
		})
	})
	if err != nil {
		return store.Notifications{}, err
	}
	s.rewindDetector.removeEndedRuns(news.EndedLeases)
	return news, nil
}
