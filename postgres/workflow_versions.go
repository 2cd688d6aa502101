package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// RecordWorkerVersion implements store.Store. It uses the pool of the heartbeats, so that no other work can delay the report.
func (s *database) RecordWorkerVersion(ctx context.Context, r *store.WorkerVersionReport) (known store.KnownVersions, err error) {
	records := store.IsOrderedVersion(r.Version)
	err = s.runBatch(ctx, s.poolForHeartbeatWithoutLeases(), "record the version", func(batch *pgx.Batch) {
		if records {
			batch.Queue(s.statements.versionsDeleteOld, pgTime(r.Now.Add(-store.VersionRetention)))
			batch.Queue(s.statements.workerVersionRecord, newTextArray(r.Workflows), timeArray{len(r.FirstSeen), func(i int) *time.Time { return &r.FirstSeen[i] }}, r.Version,
				newTextArray(r.QueuesToRecord()), pgTime(r.Now), pgTime(r.Now.Add(-store.VersionTakeoverDelay)), pgTime(r.Now.Add(-store.VersionReportInterval/2)))
		}
		batch.Queue(s.statements.workflowVersions, newTextArray(r.Workflows))
	}, func(res statementResults) error {
		if records {
			for range 2 {
				if _, err := res.Exec(); err != nil {
					return err
				}
			}
		}
		known, err = scanVersions(res)
		return err
	})
	return known, err
}

// WorkflowVersions implements store.Store.
func (s *database) WorkflowVersions(ctx context.Context, workflows []string) (known store.KnownVersions, err error) {
	err = s.runBatch(ctx, s.enginePool, "read versions", func(batch *pgx.Batch) { batch.Queue(s.statements.workflowVersions, newTextArray(workflows)) },
		func(res statementResults) error {
			known, err = scanVersions(res)
			return err
		})
	return known, err
}

func scanVersions(res statementResults) (known store.KnownVersions, err error) {
	err = eachRow(res, func(rows pgx.Rows) error {
		var v store.VersionSighting
		var workflow, version, queue pgtype.Text
		err := rows.Scan((*timeValue)(&known.LatestArrival), &workflow, &version, &queue, (*timeValue)(&v.FirstSeen), (*timeValue)(&v.LastSeen))
		if v.Workflow, v.Version, v.Queue = workflow.String, version.String, queue.String; workflow.Valid {
			known.Sightings = append(known.Sightings, v)
		}
		return err
	})
	return known, err
}
