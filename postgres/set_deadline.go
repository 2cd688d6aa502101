package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetDeadline implements store.Store.
func (s *database) SetDeadline(ctx context.Context, d *store.DeadlineChangeRequest) error {
	return retryUnavailable(ctx, func() error { return s.setDeadline(ctx, d) })
}

func (s *database) setDeadline(ctx context.Context, d *store.DeadlineChangeRequest) error {
	d.Outcome, d.RunState = 0, store.RunState{}
	err := s.runBatch(ctx, s.enginePool, "set a deadline", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runDeadlineSet, append(append([]any{
			store.ShardOf(d.Run), pgUUID(d.Run), pgTime(d.NewDeadline), pgTime(d.Now), notifyChannel(s.schema), d.Timeout.Microseconds(),
		}, actorReasonArgs(&d.ActorAndReason)...), textOrNull(new(store.TimeText(d.NewDeadline))))...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			d.Outcome = store.Written
			return rows.Scan(nil, nil)
		})
	})
	if err != nil || d.Outcome == store.Written {
		return err
	}
	d.Outcome = store.Fenced
	keys := []*store.OwnershipEnd{{UUID: d.Run}}
	return s.runBatch(ctx, s.enginePool, "read back a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runState, ownershipEndIDArgs(keys)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			d.RunState.Found = true
			return rows.Scan(nil, (*int16)(&d.RunState.Status), (*epochValue)(&d.RunState.Epoch), (*int16)(&d.RunState.Control), nil, nil)
		})
	})
}
