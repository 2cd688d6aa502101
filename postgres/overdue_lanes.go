package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// OverdueClaimLanes implements store.Store.
func (s *database) OverdueClaimLanes(ctx context.Context, at time.Time, after store.ClaimLane, limit int) ([]store.OverdueLane, error) {
	var all []store.OverdueLane
	err := s.runBatch(ctx, s.enginePool, "look for overdue runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.lanesOverdue, pgTime(at), int64(after), int32(limit))
	}, func(res statementResults) error {
		all = nil
		return eachRow(res, func(rows pgx.Rows) error {
			var o store.OverdueLane
			err := rows.Scan(&o.QueueWorkflow.Queue, &o.QueueWorkflow.Workflow, (*int64)(&o.Lane), (*uuidValue)(&o.Run), (*timeValue)(&o.Since))
			all = append(all, o)
			return err
		})
	})
	return all, err
}

// HaveLiveWorkers implements store.Store.
func (s *database) HaveLiveWorkers(ctx context.Context, pairs []store.QueueWorkflow) ([]bool, error) {
	executed := make([]bool, len(pairs))
	if len(pairs) == 0 {
		return executed, nil
	}
	err := s.runBatch(ctx, s.enginePool, "look for workers", func(batch *pgx.Batch) {
		batch.Queue(s.statements.workflowsWithLiveWorker, queueWorkflowArgs(pairs)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var ordinal int64
			err := rows.Scan(&ordinal)
			if err == nil {
				executed[ordinal-1] = true
			}
			return err
		})
	})
	return executed, err
}

// textsOrNull returns texts as the parameter of a statement, and NULL for nil.
func textsOrNull(list []string) any {
	if list == nil {
		return nil
	}
	return textArray{len(list), func(i int) *string { return &list[i] }}
}
