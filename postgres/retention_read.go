package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// eventsPerShard is how many events of each shard one statement deletes at most.
const eventsPerShard = 64

// EndedTrees implements store.RetentionStore.
func (s *database) EndedTrees(ctx context.Context, q store.EndedTreesQuery) (page store.EndedTrees, err error) {
	err = s.roundTripFuncOnEnginePool(ctx)("read runs that ended", func(batch *pgx.Batch) {
		batch.Queue(s.statements.retentionEndedRootsPage, q.Shard, pgUUID(q.After), pgUUID(store.FirstUUIDAt(q.CreatedBefore)), pgTime(q.EndedBefore), int32(q.Limit))
	}, func(res statementResults) error {
		page = store.EndedTrees{} // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var r store.EndedRoot
			var number int
			var ended bool
			err := rows.Scan((*uuidValue)(&r.UUID), &r.Workflow, (*int16)(&r.Status), (*epochValue)(&r.Epoch), (*timeValue)(&r.EndedAt), &number, &ended)
			if ended {
				page.Roots = append(page.Roots, r)
			}
			if number == q.Limit {
				page.Next = r.UUID
			}
			return err
		})
	})
	return page, err
}

// OldGenerations implements store.RetentionStore.
func (s *database) OldGenerations(ctx context.Context, q store.OldGenerationsQuery) (page store.OldGenerations, err error) {
	err = s.roundTripFuncOnEnginePool(ctx)("read old generations", func(batch *pgx.Batch) {
		batch.Queue(s.statements.retentionGenerationsToDelete, q.Shard, pgUUID(q.AfterRun), q.AfterNumber, pgTime(q.SupersededBefore), int32(q.Limit))
	}, func(res statementResults) error {
		page = store.OldGenerations{} // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var g store.OldGeneration
			var position int
			var old bool
			err := rows.Scan((*uuidValue)(&g.Run), &g.Number, (*uuidValue)(&g.ArchiveID), &g.Workflow, &position, &old)
			if old {
				page.Generations = append(page.Generations, g)
			}
			if position == q.Limit {
				page.NextRun, page.NextNumber = g.Run, g.Number
			}
			return err
		})
	})
	return page, err
}

// DeleteEvents implements store.RetentionStore.
func (s *database) DeleteEvents(ctx context.Context, before time.Time) (n int, err error) {
	err = retryUnavailable(ctx, func() error {
		return s.tryTransaction(ctx, "delete events", controlLockTimeout, func(ask roundTripFunc) error {
			return ask("delete events", func(batch *pgx.Batch) {
				batch.Queue(s.statements.retentionEventsDelete, pgTime(before), int32(eventsPerShard))
			}, func(res statementResults) error {
				return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&n) })
			})
		})
	})
	return n, err
}
