package postgres

import (
	"context"
	"math"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// GetRuns implements store.Store.
func (s *database) GetRuns(ctx context.Context, refs []store.RunRef) ([]*store.Run, error) {
	return s.GetRunsSelectingPayloads(ctx, refs, store.AllPayloads)
}

// GetRunsSelectingPayloads implements store.Store.
func (s *database) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	if len(refs) == 0 {
		return nil, nil
	}
	return s.findRuns(s.roundTripFuncOnEnginePool(ctx), refs, with)
}

// Statuses implements store.Store.
func (s *database) Statuses(ctx context.Context, runs []uuid.UUID) ([]store.Status, error) {
	if len(runs) == 0 {
		return nil, nil
	}
	statuses := make([]store.Status, len(runs))
	err := s.roundTripFuncOnEnginePool(ctx)("read statuses", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runStatuses, runIDArgs(runs)...)
	}, func(res statementResults) error {
		clear(statuses) // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var ordinal int64
			var status int16
			err := rows.Scan(&ordinal, &status)
			if err == nil {
				statuses[ordinal-1] = store.Status(status)
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return statuses, nil
}

// RunFingerprints implements store.Store.
func (s *database) RunFingerprints(ctx context.Context, runs []uuid.UUID, limit int) ([]string, error) {
	marks := make([]string, len(runs))
	err := s.roundTripFuncOnEnginePool(ctx)("read marks of changes", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runFingerprints, append(runIDArgs(runs), int32(min(limit, math.MaxInt32)))...)
	}, func(res statementResults) error {
		clear(marks) // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var ordinal int64
			var mark string
			err := rows.Scan(&ordinal, &mark)
			if err == nil {
				marks[ordinal-1] = mark
			}
			return err
		})
	})
	return marks, err
}

func (s *database) findRuns(ask roundTripFunc, refs []store.RunRef, with store.PayloadSelection) ([]*store.Run, error) {
	n := len(refs)
	runs := make([]*store.Run, n)
	known := make([]uuid.NullUUID, n)
	for i, ref := range refs {
		known[i].UUID, known[i].Valid = ref.AsUUID()
	}
	err := ask("get", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runByID,
			int2Array{n, func(i int) int16 { return refs[i].Shard() }},
			uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&known[i]) }},
			textArray{n, func(i int) *string { return &refs[i].UUIDOrName }},
			with&store.WithInput != 0, with&store.WithOutputAndError != 0)
	}, func(res statementResults) error {
		var ordinal int64
		return eachRow(res, func(rows pgx.Rows) error {
			run, err := scanRun(rows, &ordinal)
			if err == nil {
				runs[ordinal-1] = run
			}
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// History implements store.Store.
func (s *database) History(ctx context.Context, run uuid.UUID) (history []store.Step, err error) {
	err = s.runBatch(ctx, s.enginePool, "read a history", func(batch *pgx.Batch) {
		batch.Queue(s.statements.history, store.ShardOf(run), pgUUID(run))
	}, func(res statementResults) error {
		history = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			step, err := scanStep(rows)
			history = append(history, step)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	store.SortByCallOrder(history)
	return history, nil
}

// HistoryOutline implements store.Store.
func (s *database) HistoryOutline(ctx context.Context, run uuid.UUID) (history []store.Step, err error) {
	err = s.runBatch(ctx, s.enginePool, "read the outline of a history", func(batch *pgx.Batch) {
		batch.Queue(s.statements.historyWithoutPayloads, store.ShardOf(run), pgUUID(run))
	}, func(res statementResults) error {
		history = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			step, err := scanStep(rows)
			history = append(history, step)
			return err
		})
	})
	store.SortByCallOrder(history)
	return history, err
}

// CheckpointsByName implements store.Store.
func (s *database) CheckpointsByName(ctx context.Context, run uuid.UUID, names []string, maxOutput int) (steps []store.SizedStep, err error) {
	err = s.runBatch(ctx, s.enginePool, "read checkpoints", func(batch *pgx.Batch) {
		batch.Queue(s.statements.checkpointsByName, store.ShardOf(run), pgUUID(run), textArray{len(names), func(i int) *string { return &names[i] }}, int32(min(maxOutput, math.MaxInt32)))
	}, func(res statementResults) error {
		steps = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var size int32
			step, err := scanStep(rows, &size)
			steps = append(steps, store.SizedStep{Step: step, OutputSize: int(size)})
			return err
		})
	})
	store.SortSizedByCallOrder(steps)
	return steps, err
}

// FirstInputHash implements store.RepairStore.
func (s *database) FirstInputHash(ctx context.Context, run uuid.UUID) (hash []byte, err error) {
	err = s.runBatch(ctx, s.enginePool, "read the first input of a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runFirstInput, store.ShardOf(run), pgUUID(run))
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&hash) })
	})
	return hash, err
}

// HistoryFrom implements store.Store.
func (s *database) HistoryFrom(ctx context.Context, run uuid.UUID, from string, bytes int) ([]store.Step, store.UnreadHistory, error) {
	era := s.rewindDetector.rewindCount.Load()
	part := []store.ClaimedRun{{Run: store.Run{UUID: run}}}
	err := s.readHistoryParts(s.roundTripFuncOnEnginePool(ctx), part, []int{0}, from, max(bytes, 1))
	if err == nil {
		err = s.rewindDetector.addHistoryPart(era, &part[0])
	}
	if err != nil {
		return nil, store.UnreadHistory{}, err
	}
	return part[0].History, part[0].UnreadHistory, nil
}

// readHistoryParts reads a part of the history of each run that which lists, in one round trip.
func (s *database) readHistoryParts(ask roundTripFunc, runs []store.ClaimedRun, which []int, from string, bytes int) error {
	return ask("read histories", func(batch *pgx.Batch) {
		for _, i := range which {
			batch.Queue(s.statements.historyPart, store.ShardOf(runs[i].Run.UUID), pgUUID(runs[i].Run.UUID), from, int64(bytes))
		}
	}, func(res statementResults) error {
		for _, i := range which {
			runs[i].History, runs[i].UnreadHistory = nil, store.UnreadHistory{} // discard the rows of a failed try
			err := eachRow(res, func(rows pgx.Rows) error {
				var rest bool
				step, err := scanStep(rows, &rest)
				addStepToHistory(&runs[i], step, rest)
				return err
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// addStepToHistory adds a checkpoint to the part of the history that was read, or, if rest is true, records it as the first unread
// checkpoint.
func addStepToHistory(c *store.ClaimedRun, step store.Step, rest bool) {
	if rest {
		c.UnreadHistory = store.UnreadHistory{Exists: true, FirstStepName: step.Name}
	} else {
		c.History = append(c.History, step)
	}
}

// Workers implements store.Store.
func (s *database) Workers(ctx context.Context) ([]store.Worker, error) {
	var workers []store.Worker
	err := s.runBatch(ctx, s.enginePool, "list workers", func(batch *pgx.Batch) { batch.Queue(s.statements.workers) },
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error {
				var w store.Worker
				var version pgtype.Int2
				var change pgtype.Text
				var clockAhead int64
				err := rows.Scan((*uuidValue)(&w.ID), &w.Name, &w.Version, &w.Capacity, &w.ActiveRuns, (*int16)(&w.State),
					(*timeValue)(&w.StartedAt), (*timeValue)(&w.HeartbeatAt), (*timeValue)(&w.DeadAt), &version, &w.Queues, &w.Workflows, &w.Quiet, &change, &clockAhead)
				if err != nil {
					return err
				}
				w.SchemaVersion, w.ClockAhead = version.Int16, time.Duration(clockAhead)*time.Microsecond
				w.LastChange, err = store.DecodeOperatorChange(change.String)
				workers = append(workers, w)
				return err
			})
		})
	if err != nil {
		return nil, err
	}
	return workers, nil
}

// scanRun scans a run. The destinations in first take the columns before it.
func scanRun(rows pgx.Rows, first ...any) (*store.Run, error) {
	r := new(store.Run)
	var parent, owner pgtype.UUID
	var reason, pausedBy, cancelledBy, cancelReason pgtype.Text
	err := rows.Scan(append(first,
		(*uuidValue)(&r.UUID), &parent, &r.Name, &r.Workflow, &r.Version, &r.Queue, &r.Priority, (*int16)(&r.Status), (*epochValue)(&r.Epoch), &owner,
		&r.Crashes, &r.Input, &r.Output, &r.Error, &reason, &r.Trace,
		(*timeValue)(&r.CreatedAt), (*timeValue)(&r.StartedAt), (*timeValue)(&r.EndedAt), (*timeValue)(&r.WakeAt), (*timeValue)(&r.Deadline),
		&r.Detached, (*int16)(&r.Control), &pausedBy, &cancelledBy, &cancelReason, (*timeValue)(&r.PausedAt), (*timeValue)(&r.CancelledAt))...)
	r.Parent = uuid.NullUUID{UUID: parent.Bytes, Valid: parent.Valid}
	r.Owner = uuid.NullUUID{UUID: owner.Bytes, Valid: owner.Valid}
	r.PauseOrHoldReason, r.PausedBy, r.CancelledBy, r.CancelReason = reason.String, pausedBy.String, cancelledBy.String, cancelReason.String
	return r, err
}

// scanStep scans a step. The destinations in first take the columns before it.
func scanStep(rows pgx.Rows, first ...any) (store.Step, error) {
	var p store.Step
	err := rows.Scan(append(first,
		(*uuidValue)(&p.Run), &p.Name, (*int16)(&p.Kind), (*int16)(&p.Status), &p.Attempt, (*epochValue)(&p.Epoch), &p.Output, &p.Error,
		(*timeValue)(&p.StartedAt), (*timeValue)(&p.EndedAt), (*timeValue)(&p.NextAt), &p.Seq, &p.Failures)...)
	return p, err
}
