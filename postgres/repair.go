package postgres

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// FenceRun implements store.RepairStore.
func (s *database) FenceRun(ctx context.Context, f *store.FenceRequest) error {
	err := retryUnavailable(ctx, func() error {
		return s.tryTransaction(ctx, "fence a run", controlLockTimeout, func(ask roundTripFunc) error { return s.tryFenceRun(ask, f) })
	})
	if err == nil && f.Outcome == store.Written {
		err = s.awaitStepWriters(ctx)
	}
	return err
}

func (s *database) tryFenceRun(ask roundTripFunc, f *store.FenceRequest) error {
	f.Outcome = store.Fenced
	err := ask("fence a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.repairFence, store.ShardOf(f.Run), pgUUID(f.Run), int16(f.StateBefore.Status), f.StateBefore.Epoch.EncodeInt64(), int16(f.StateBefore.Control),
			f.EpochAfterFence().EncodeInt64(), pgTime(f.Now), textOrNull(&f.Reason), textOrNull(&f.Actor))
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			f.Outcome = store.Written
			return rows.Scan(nil)
		})
	})
	if err != nil || f.Outcome == store.Written {
		return err
	}
	states, _, err := s.readRunsToRepair(ask, []uuid.UUID{f.Run}, nil)
	f.RunState = states[f.Run]
	f.Outcome = f.OutcomeFromState(f.RunState)
	return err
}

// ApplyRepair implements store.RepairStore. It first locks the runs and their ancestors, so that a control request for an ancestor
// does not miss a child that is repaired. For a run that continues as new it does not lock the ancestors, because the run is live,
// and a control request finds it in any case.
func (s *database) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	var gone []store.Lease
	err := retryUnavailable(ctx, func() error {
		era := s.rewindDetector.rewindCount.Load()
		err := s.tryTransaction(ctx, "repair runs", controlLockTimeout, func(ask roundTripFunc) (err error) {
			gone, err = s.tryApplyRepair(ask, r)
			return err
		})
		if err == nil {
			err = s.rewindDetector.recordRepairedRuns(era, r)
		}
		return err
	})
	s.rewindDetector.removeEndedRuns(gone)
	if errors.Is(err, store.ErrRepairOutdated) {
		r.Outcome, err = store.Fenced, nil
	}
	return err
}

// tryApplyRepair repairs the runs in one transaction. If their states are not those that the repair expects, it returns the ownerships of
// these runs that have ended.
func (s *database) tryApplyRepair(ask roundTripFunc, r *store.RepairRequest) (gone []store.Lease, err error) {
	runs := r.RunsInLockOrder()
	err = ask("lock runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.repairRunsLock, append(runIDArgs(runs), !r.Runs[0].ContinuesAsNew)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(nil) })
	})
	if err != nil {
		return nil, err
	}
	states, done, err := s.readRunsToRepair(ask, runs, r)
	if err != nil {
		return nil, err
	}
	if r.Outcome = r.OutcomeFromStates(states, done); r.Outcome != 0 {
		return lostOwnerships(r, states), nil
	}
	if r.CancelRequest != nil {
		if err := s.tryControlRuns(ask, r.CancelRequest); err != nil {
			return nil, err
		}
	}
	for i := range r.Runs {
		if err := s.repairRun(ask, r, &r.Runs[i]); err != nil {
			return nil, err
		}
	}
	if r.ResumeRequest != nil {
		if err := s.tryControlRuns(ask, r.ResumeRequest); err != nil {
			return nil, err
		}
	}
	r.Outcome = store.Written
	return nil, ask("notify", func(batch *pgx.Batch) { batch.Queue(s.statements.notify, notifyChannel(s.schema), "") }, func(res statementResults) error {
		return readRowCount(res, 1, nil)
	})
}

// lostOwnerships returns the runs of a repair that had an owner when the repair was planned, and that this owner no longer owns.
func lostOwnerships(r *store.RepairRequest, states map[uuid.UUID]store.RunState) (gone []store.Lease) {
	for i := range r.Runs {
		if run := &r.Runs[i]; r.Outcome == store.Fenced && run.StateBefore.Status == store.Running && !states[run.Run].IsOwnedAt(run.StateBefore.Epoch) {
			gone = append(gone, store.Lease{Run: run.Run, Epoch: run.StateBefore.Epoch})
		}
	}
	return gone
}

// readRunsToRepair returns the states of the runs, and whether the repair r has been applied before. r may be nil.
func (s *database) readRunsToRepair(ask roundTripFunc, runs []uuid.UUID, r *store.RepairRequest) (states map[uuid.UUID]store.RunState, done bool, err error) {
	var first, request uuid.UUID
	var number int32
	if r != nil {
		first, request, number = r.Runs[0].Run, r.RequestID, r.Runs[0].SupersededNumber
	}
	states = make(map[uuid.UUID]store.RunState, len(runs))
	err = ask("read runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.repairRunStates, append(runIDArgs(runs), pgUUID(request), number)...)
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			var repeated bool
			state := store.RunState{Found: true}
			err := rows.Scan((*uuidValue)(&id), (*int16)(&state.Status), (*epochValue)(&state.Epoch), (*int16)(&state.Control), &repeated)
			states[id] = state
			done = done || repeated && id == first
			return err
		})
	})
	return states, done, err
}

// repairRun writes the next generation of one run, which is locked. It returns ErrRepairOutdated if a row is not as the repair
// expects.
func (s *database) repairRun(ask roundTripFunc, r *store.RepairRequest, run *store.RunRepair) error {
	shard, id, archive := store.ShardOf(run.Run), pgUUID(run.Run), pgUUID(run.ArchiveID())
	return ask("repair a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.repairOldGenerationInsert, shard, id, run.SupersededNumber, archive, pgUUID(r.RequestID), pgTime(r.Now), r.Verb, textOrNull(&r.Actor), textOrNull(&r.Reason),
			textOrNull(&run.FromStep), run.Detail)
		batch.Queue(s.statements.repairStepsMoveToGeneration, shard, id, archive)
		if len(run.KeptSteps) > 0 {
			batch.Queue(s.statements.repairKeptStepsCopy, shard, id, archive, run.Epoch.EncodeInt64(), textArray{len(run.KeptSteps), func(i int) *string { return &run.KeptSteps[i] }}, run.FirstChangedSeq)
		}
		if len(run.NewSteps) > 0 {
			batch.Queue(s.statements.repairNewStepsInsert, append([]any{shard, id, run.Epoch.EncodeInt64()}, repairedStepArgs(run.NewSteps)...)...)
		}
		switch {
		case run.ContinuesAsNew:
			batch.Queue(s.statements.repairChildrenMoveToGeneration, shard, id, archive, nil)
		case len(run.DetachedChildren) > 0:
			batch.Queue(s.statements.repairChildrenMoveToGeneration, shard, id, archive, newUUIDArray(run.DetachedChildren))
		}
		if len(run.ReleasedReceivers) > 0 {
			batch.Queue(s.statements.repairSignalsMarkUnreceived, shard, id, textArray{len(run.ReleasedReceivers), func(i int) *string { return &run.ReleasedReceivers[i] }})
		}
		batch.Queue(s.statements.repairBeginNextGeneration, shard, id, int16(run.StateBefore.Status), run.StateBefore.Epoch.EncodeInt64(), int16(run.StateBefore.Control),
			run.Epoch.EncodeInt64(), int16(run.Status), int16(run.Control), pgTime(run.WakeAt), pgTime(run.Deadline), int32(run.Progress),
			pgTime(r.Now), textOrNull(&r.Actor), textOrNull(&r.Reason), strconv.Itoa(int(run.SupersededNumber)), strconv.Itoa(int(run.SupersededNumber)+1),
			pgNullUUID(run.Owner), run.ContinuesAsNew, run.Input, int16(r.EventType()), run.FirstInputHash)
	}, func(res statementResults) error {
		outdated := expectReturnedRows(res, "generations", 1)
		if outdated == nil && run.ContinuesAsNew {
			outdated = readRowCount(res, 1, nil)
		}
		for _, of := range []struct {
			what string
			n    int
			sent bool
		}{
			{"checkpoints", run.CheckpointCount, !run.ContinuesAsNew},
			{"kept checkpoints", len(run.KeptSteps), len(run.KeptSteps) > 0},
			{"further checkpoints", len(run.NewSteps), len(run.NewSteps) > 0},
			{"children", len(run.DetachedChildren), len(run.DetachedChildren) > 0},
		} {
			if outdated == nil && of.sent {
				outdated = expectChangedRows(res, of.what, of.n)
			}
		}
		if outdated == nil && run.ContinuesAsNew {
			outdated = readRowCount(res, 1, nil)
		}
		if outdated == nil && len(run.ReleasedReceivers) > 0 {
			outdated = readRowCount(res, len(run.ReleasedReceivers), nil)
		}
		if outdated == nil {
			outdated = expectReturnedRows(res, "runs", 1)
		}
		var refused *rowCountError
		if errors.As(outdated, &refused) {
			return fmt.Errorf("%w: run %s: %w", store.ErrRepairOutdated, run.Run, outdated)
		}
		return outdated
	})
}

// repairedStepArgs returns the parameters of repair_new_steps_insert.sql about the steps.
func repairedStepArgs(items []store.Step) []any {
	n := len(items)
	return []any{
		textArray{n, func(i int) *string { return &items[i].Name }},
		int2Array{n, func(i int) int16 { return int16(items[i].Kind) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Status) }},
		int4Array{n, func(i int) int32 { return items[i].Attempt }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Output }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Error }},
		timeArray{n, func(i int) *time.Time { return &items[i].StartedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].EndedAt }},
		timeArray{n, func(i int) *time.Time { return &items[i].NextAt }},
		int4Array{n, func(i int) int32 { return items[i].Seq }},
		byteaArray{n, func(i int) *[]byte { return &items[i].Failures }},
	}
}

// FindGenerations implements store.RepairStore.
func (s *database) FindGenerations(ctx context.Context, archives []uuid.UUID) (found []store.GenerationKey, err error) {
	err = s.roundTripFuncOnEnginePool(ctx)("find generations", func(batch *pgx.Batch) {
		batch.Queue(s.statements.generationsByArchiveID, uniqueRunIDArgs(archives)...)
	}, func(res statementResults) error {
		found = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var g store.GenerationKey
			err := rows.Scan((*uuidValue)(&g.ArchiveID), (*uuidValue)(&g.Run), &g.Number)
			found = append(found, g)
			return err
		})
	})
	return found, err
}

// SupersededGenerations implements store.RepairStore.
func (s *database) SupersededGenerations(ctx context.Context, run uuid.UUID, q store.GenerationsQuery) (all []store.SupersededGeneration, err error) {
	before, limit, maxBytes := q.BoundsOrMax()
	err = s.roundTripFuncOnEnginePool(ctx)("read generations", func(batch *pgx.Batch) {
		batch.Queue(s.statements.supersededGenerations, store.ShardOf(run), pgUUID(run), q.Payloads&store.WithInput != 0, q.Payloads&store.WithOutputAndError != 0, before, limit, maxBytes)
	}, func(res statementResults) error {
		all = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			g := store.SupersededGeneration{Run: store.Run{UUID: run}}
			r := &g.Run
			err := rows.Scan(&g.Number, (*uuidValue)(&g.ArchiveID), (*uuidValue)(&g.RequestID), (*int16)(&r.Status), (*int16)(&r.Control), &r.Priority, (*epochValue)(&r.Epoch),
				&g.Verb, &g.Actor, &g.Reason, &g.FromStep, (*timeValue)(&g.At), (*timeValue)(&r.CreatedAt), (*timeValue)(&r.StartedAt), (*timeValue)(&r.EndedAt),
				(*timeValue)(&r.Deadline), (*timeValue)(&r.PausedAt), (*timeValue)(&r.CancelledAt), &r.Workflow, &r.Queue, &r.Version, &r.Trace,
				&r.PauseOrHoldReason, &r.PausedBy, &r.CancelledBy, &r.CancelReason, &r.Input, &r.Output, &r.Error, &g.Detail, &g.StoredBytes)
			all = append(all, g)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	slices.Reverse(all)
	return all, nil
}
