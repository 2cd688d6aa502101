package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// ForkRun implements store.RepairStore.
func (s *database) ForkRun(ctx context.Context, f *store.ForkRequest) error {
	return retryUnavailable(ctx, func() error {
		return s.tryTransaction(ctx, "fork a run", controlLockTimeout, func(ask roundTripFunc) error { return s.tryForkRun(ask, f) })
	})
}

func (s *database) tryForkRun(ask roundTripFunc, f *store.ForkRequest) error {
	w := &sortedBatch{newRowsMayExist: true}
	w.addBatch(&store.Batch{Starts: []*store.StartWrite{f.Start}})
	var took changedRowCounts
	err := ask("start a run", func(batch *pgx.Batch) { s.addStatements(batch, w) }, func(res statementResults) error { return w.readRowCounts(res, &took) })
	if err != nil {
		return err
	}
	if took.starts == 0 {
		left, err := s.setStartOutcomes(ask, w.starts)
		if err == nil && len(left) > 0 {
			err = startConflictGoneError(left[0])
		}
		return err
	}
	f.Start.Outcome, f.Start.ExistingRun = store.Written, nil
	return s.writeForkedCheckpoints(ask, f)
}

// writeForkedCheckpoints writes the checkpoints of a run that was created in this transaction, and an event.
func (s *database) writeForkedCheckpoints(ask roundTripFunc, f *store.ForkRequest) error {
	run := &f.Start.Run
	shard, id := store.ShardOf(run.UUID), pgUUID(run.UUID)
	return ask("write the checkpoints of a forked run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.eventInsert, eventInsertArgs(store.ActorAndReason{Actor: f.Actor, Reason: f.Reason, At: run.CreatedAt},
			[]store.Event{{Type: store.EventRepaired, Run: run.UUID, OldValue: f.Source.String()}})...)
		if len(f.Steps) > 0 {
			batch.Queue(s.statements.repairNewStepsInsert, append([]any{shard, id, run.Epoch.EncodeInt64()}, repairedStepArgs(f.Steps)...)...)
		}
	}, func(res statementResults) error {
		err := expectReturnedRows(res, "events", 1)
		if err == nil && len(f.Steps) > 0 {
			err = expectChangedRows(res, fmt.Sprintf("checkpoints of run %s", run.UUID), len(f.Steps))
		}
		return err
	})
}
