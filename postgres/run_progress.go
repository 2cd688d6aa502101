package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// RunProgress implements store.Store with five reads in one round trip.
func (s *database) RunProgress(ctx context.Context, run uuid.UUID, now time.Time) (store.RunProgress, error) {
	var o store.RunProgress
	shard, id := store.ShardOf(run), pgUUID(run)
	err := s.runBatch(ctx, s.enginePool, "read an outline", func(batch *pgx.Batch) {
		batch.Queue(s.statements.stepsOpen, shard, id, pgTime(now))
		batch.Queue(s.statements.recordedChoices, shard, id)
		batch.Queue(s.statements.runLastLeaseLoss, shard, id)
		batch.Queue(s.statements.mapProgress, shard, id)
		batch.Queue(s.statements.runTags, shard, id)
	}, func(res statementResults) error {
		o = store.RunProgress{} // discard the rows of a failed try
		for _, list := range []*[]store.Step{&o.OpenCalls, &o.Choices} {
			err := eachRow(res, func(rows pgx.Rows) error {
				step, err := scanStep(rows)
				*list = append(*list, step)
				return err
			})
			if err != nil {
				return err
			}
		}
		err := eachRow(res, func(rows pgx.Rows) error {
			var worker pgtype.UUID
			var timeout int64
			err := rows.Scan((*timeValue)(&o.LastLeaseLoss.At), &worker, &timeout)
			o.LastLeaseLoss.Worker, o.Timeout = worker.Bytes, time.Duration(timeout)*time.Microsecond
			return err
		})
		if err != nil {
			return err
		}
		err = eachRow(res, func(rows pgx.Rows) error {
			progress, err := scanMapProgress(rows)
			o.Maps = append(o.Maps, progress)
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			var tag store.Tag
			err := rows.Scan(&tag.Key, &tag.Value)
			o.Tags = append(o.Tags, tag)
			return err
		})
	})
	if err != nil {
		return store.RunProgress{}, err
	}
	return o, nil
}

func scanMapProgress(rows pgx.Rows) (store.MapProgress, error) {
	var done int64
	step, err := scanStep(rows, &done)
	return store.MapProgress{Step: step, DoneCount: int(done)}, err
}
