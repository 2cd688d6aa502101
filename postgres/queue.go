package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// QueueRows implements store.QueueStore.
func (s *database) QueueRows(ctx context.Context) (all []store.QueueRow, err error) {
	err = s.runBatch(ctx, s.enginePool, "read queues", func(batch *pgx.Batch) { batch.Queue(s.statements.queuesWithoutCounts) }, func(res statementResults) error {
		all = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var q store.Queue
			var settings pgtype.Text
			if err := rows.Scan(&q.Name, &settings, (*timeValue)(&q.PausedAt), &q.Deleted); err != nil {
				return err
			}
			err := q.DecodeSettings(settings.String, "")
			all = append(all, q.QueueRow)
			return err
		})
	})
	return all, err
}

// ChangeQueue implements store.QueueStore.
func (s *database) ChangeQueue(ctx context.Context, c store.QueueChangeRequest) error {
	// A declaration may change nothing, because a newer version has declared the queue.
	_, err := s.execOnQueueRow(ctx, "change a queue", func(batch *pgx.Batch) {
		if c.Declare {
			batch.Queue(s.statements.queueDeclare, c.Name, c.Settings.EncodeJSON(), c.Version, pgTime(c.Now))
		} else {
			batch.Queue(s.statements.queueSetSettings, c.Name, c.Settings.EncodeJSON(), textOrNull(&c.Actor), textOrNull(&c.Reason), pgTime(c.Now), c.OperatorChange().EncodeJSON())
		}
	})
	return err
}

// PauseQueue implements store.QueueStore.
func (s *database) PauseQueue(ctx context.Context, p store.QueuePauseRequest) (bool, error) {
	if p.Resume {
		return s.execOnQueueRow(ctx, "resume a queue", func(batch *pgx.Batch) { batch.Queue(s.statements.queueResume, p.Name, p.OperatorChange().EncodeJSON()) })
	}
	return s.execOnQueueRow(ctx, "pause a queue", func(batch *pgx.Batch) {
		batch.Queue(s.statements.queuePause, p.Name, pgTime(p.Now), textOrNull(&p.Actor), textOrNull(&p.Reason), p.OperatorChange().EncodeJSON())
	})
}

// DeleteQueue implements store.QueueStore.
func (s *database) DeleteQueue(ctx context.Context, c store.DeleteOrResetRequest) (bool, error) {
	return s.execOnQueueRow(ctx, "delete a queue", func(batch *pgx.Batch) {
		batch.Queue(s.statements.queueMarkDeleted, append([]any{c.Name, c.OperatorChange(store.OperatorDelete).EncodeJSON()}, actorReasonArgs(new(c.ActorAndReason()))...)...)
	})
}

// ResetQueueSettings implements store.QueueStore.
func (s *database) ResetQueueSettings(ctx context.Context, c store.DeleteOrResetRequest) (bool, error) {
	return s.execOnQueueRow(ctx, "reset a queue", func(batch *pgx.Batch) {
		batch.Queue(s.statements.queueResetToDeclared, c.Name, c.OperatorChange(store.OperatorReset).EncodeJSON())
	})
}

// execOnQueueRow executes a statement that returns the names of the rows that it has changed, and notifies the
// engines. It reports whether the statement has changed a row.
func (s *database) execOnQueueRow(ctx context.Context, what string, fill func(*pgx.Batch)) (changed bool, err error) {
	err = s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), what, func(batch *pgx.Batch) {
		fill(batch)
		batch.Queue(s.statements.notify, notifyChannel(s.schema), queuesPayload)
	}, func(res statementResults) error {
		err := eachRow(res, func(rows pgx.Rows) error {
			changed = true
			return rows.Scan(nil)
		})
		if err != nil {
			return err
		}
		return readRowCount(res, 1, nil)
	})
	return changed, err
}

// Queues implements store.QueueStore.
func (s *database) Queues(ctx context.Context, _ time.Time) (all []store.Queue, err error) {
	err = s.runBatch(ctx, s.enginePool, "read queues", func(batch *pgx.Batch) {
		batch.Queue(s.statements.queuesWithCounts)
		batch.Queue(s.statements.queueBusiestGroupKeys, int32(store.MaxListedQueueKeys))
	}, func(res statementResults) error {
		all = nil // discard the rows of a failed try
		at := make(map[string]int)
		err := eachRow(res, func(rows pgx.Rows) error {
			q, err := scanQueue(rows)
			at[q.Name] = len(all)
			all = append(all, q)
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			var name string
			var k store.QueueKeyUse
			err := rows.Scan(&name, &k.Key, (*intValue)(&k.Executing), (*intValue)(&k.InProgress), (*intValue)(&k.Waiting), (*intValue)(&k.WaitingForKey))
			if i, found := at[name]; found { // a queue that is not found was created after the first statement
				all[i].Keys = append(all[i].Keys, k)
			}
			return err
		})
	})
	return all, err
}

func scanQueue(rows pgx.Rows) (q store.Queue, err error) {
	var declared, version, set, by, reason, pausedBy, pauseReason, change pgtype.Text
	err = rows.Scan(&q.Name, &declared, &version, (*timeValue)(&q.DeclaredAt), &set, &by, &reason, (*timeValue)(&q.SetAt),
		(*timeValue)(&q.PausedAt), &pausedBy, &pauseReason, (*intValue)(&q.Executing), (*intValue)(&q.InProgress), (*intValue)(&q.Waiting), (*intValue)(&q.WaitingForKey),
		(*timeValue)(&q.OldestDue), (*timeValue)(&q.RateUsedUntil), &change)
	if err != nil {
		return q, err
	}
	q.DeclaredVersion, q.SetBy, q.SetReason, q.PausedBy, q.PauseReason = version.String, by.String, reason.String, pausedBy.String, pauseReason.String
	if q.LastChange, err = store.DecodeOperatorChange(change.String); err != nil {
		return q, err
	}
	return q, q.DecodeSettings(declared.String, set.String)
}

// QueueDepth implements store.QueueStore.
func (s *database) QueueDepth(ctx context.Context, queue string, most int) (n int, err error) {
	err = s.runBatch(ctx, s.enginePool, "read the depth of a queue", func(batch *pgx.Batch) { batch.Queue(s.statements.queueDepth, queue, int32(most)) },
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error { return rows.Scan((*intValue)(&n)) })
		})
	return min(n, most), err
}

// QueuePlaceOfRun implements store.QueueStore.
func (s *database) QueuePlaceOfRun(ctx context.Context, run uuid.UUID) (place *store.QueuedRun, err error) {
	err = s.runBatch(ctx, s.enginePool, "read a place", func(batch *pgx.Batch) {
		batch.Queue(s.statements.queuePlaceOfRun, store.ShardOf(run), pgUUID(run), int32(store.MaxRunsAhead))
	}, func(res statementResults) error {
		place = nil // discard the row of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			place = &store.QueuedRun{QueuePlace: store.QueuePlace{Run: run}}
			var admission pgtype.Int2
			err := rows.Scan(&place.Queue, &place.Key, &place.Weight, &place.Priority, (*int16)(&place.State), &place.Root, &place.HasBegun, &place.Turn,
				(*timeValue)(&place.ArrivedAt), (*timeValue)(&place.StartBy), &admission, (*intValue)(&place.RunsAhead))
			place.Admission = store.AdmissionState(admission.Int16)
			return err
		})
	})
	if place != nil {
		place.RunsAhead = min(place.RunsAhead, store.MaxRunsAhead)
	}
	return place, err
}

// ClearStartByDeadline implements store.QueueStore.
func (s *database) ClearStartByDeadline(ctx context.Context, run uuid.UUID, epoch store.Epoch) (kept bool, err error) {
	err = s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), "begin a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.startByDeadlineMarkClear, store.ShardOf(run), pgUUID(run), epoch.EncodeInt64())
	}, func(res statementResults) error {
		kept = false // discard the row of a failed try
		return eachRow(res, func(pgx.Rows) error {
			kept = true
			return nil
		})
	})
	return kept, err
}
