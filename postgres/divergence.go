package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// RunsHeldForDrift implements store.DivergenceStore.
func (s *database) RunsHeldForDrift(ctx context.Context, version string, f *store.ClaimFilter, after uuid.UUID, limit int) (runs []uuid.UUID, err error) {
	workflows, queues := f.WorkflowsAndQueues()
	err = s.roundTripFuncOnEnginePool(ctx)("read held runs", func(batch *pgx.Batch) {
		batch.Queue(s.statements.runsHeldForDrift, version, newTextArray(workflows), newTextArray(queues), pgUUID(after), int32(limit))
	}, func(res statementResults) error {
		runs = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			err := rows.Scan((*uuidValue)(&id))
			runs = append(runs, id)
			return err
		})
	})
	return runs, err
}

// ClaimRunHeldForDrift implements store.DivergenceStore.
func (s *database) ClaimRunHeldForDrift(ctx context.Context, run *store.Run, diverged store.DivergedVersions, q store.ClaimQuery) (claimed *store.Run, err error) {
	lane, version := q.Versions.LaneOfHeldRun(run, diverged)
	era := s.rewindDetector.rewindCount.Load()
	err = s.runBatch(ctx, s.enginePool, "claim a held run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.claimRunHeldForDrift, store.ShardOf(run.UUID), pgUUID(run.UUID), int64(q.EpochNonce), pgUUID(q.Worker), pgTime(q.LeaseUntil), pgTime(q.Now),
			int64(lane), version, run.Queue, run.Priority, run.Version, textOrNull((*string)(&diverged)))
		batch.Queue(s.statements.notify, notifyChannel(s.schema), "")
	}, func(res statementResults) error {
		claimed = nil // discard the row of a failed try
		err := eachRow(res, func(rows pgx.Rows) (err error) {
			claimed, err = scanRun(rows)
			return err
		})
		if err != nil {
			return err
		}
		return readRowCount(res, 1, nil)
	})
	if err == nil && claimed != nil && claimed.Status == store.Running {
		err = s.rewindDetector.addClaimedRuns(era, []store.ClaimedRun{{Run: *claimed}})
	}
	if err != nil {
		return nil, err
	}
	return claimed, nil
}

// Divergences implements store.DivergenceStore.
func (s *database) Divergences(ctx context.Context, run uuid.UUID) (all []store.Divergence, err error) {
	err = s.roundTripFuncOnEnginePool(ctx)("read divergences", func(batch *pgx.Batch) {
		batch.Queue(s.statements.divergencesOfRun, store.ShardOf(run), pgUUID(run))
	}, func(res statementResults) error {
		all = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			var d store.Divergence
			err := rows.Scan(&d.Version, (*timeValue)(&d.At), &d.Call, &d.Detail, &d.ContinuedBy)
			all = append(all, d)
			return err
		})
	})
	return all, err
}

// DeleteDivergences implements store.DivergenceStore.
func (s *database) DeleteDivergences(ctx context.Context) error {
	return s.runBatch(ctx, s.enginePool, "delete divergences", func(batch *pgx.Batch) { batch.Queue(s.statements.divergencesDeleteObsolete) },
		func(res statementResults) error { return readRowCount(res, 1, nil) })
}

// newTextArray returns texts as a parameter.
func newTextArray(texts []string) textArray {
	return textArray{len(texts), func(i int) *string { return &texts[i] }}
}

// Histories implements store.DivergenceStore.
func (s *database) Histories(ctx context.Context, runs []uuid.UUID) (steps []store.Step, err error) {
	err = s.roundTripFuncOnEnginePool(ctx)("read histories", func(batch *pgx.Batch) {
		batch.Queue(s.statements.historiesOfRuns, runIDArgs(runs)...)
	}, func(res statementResults) error {
		steps = nil // discard the rows of a failed try
		return eachRow(res, func(rows pgx.Rows) error {
			step, err := scanStep(rows)
			steps = append(steps, step)
			return err
		})
	})
	return steps, err
}
