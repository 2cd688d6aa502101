package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// RecordWorkerVersion implements store.Store.
func (s *database) RecordWorkerVersion(ctx context.Context, r *store.WorkerVersionReport) (store.KnownVersions, error) {
	if store.IsOrderedVersion(r.Version) {
		err := s.withWriteTx(ctx, "record the version", func(x executor) error {
			if _, err := x.exec(qVersionsDeleteOld, bindTime(r.Now.Add(-store.VersionRetention))); err != nil {
				return err
			}
			stale := bindTime(r.Now.Add(-store.VersionTakeoverDelay))
			for i, workflow := range r.Workflows {
				for _, queue := range r.QueuesToRecord() {
					if _, err := x.exec(qWorkerVersionRecord, workflow, bindTime(r.FirstSeen[i]), r.Version, queue, bindTime(r.Now), stale); err != nil {
						return err
					}
				}
			}
			return ctx.Err()
		})
		if err != nil {
			return store.KnownVersions{}, err
		}
	}
	return s.WorkflowVersions(ctx, r.Workflows)
}

// WorkflowVersions implements store.Store.
func (s *database) WorkflowVersions(ctx context.Context, workflows []string) (known store.KnownVersions, err error) {
	err = s.withReadConn(ctx, "read versions", func(x executor) (err error) {
		known.Sightings = nil // discard the rows of a failed try
		if known.LatestArrival, err = lastVersionArrivalTime(x); err != nil {
			return err
		}
		for _, workflow := range workflows {
			err := x.query(qVersionsOfWorkflow, func(v []driver.Value) error {
				c := columnReader{values: v}
				known.Sightings = append(known.Sightings, store.VersionSighting{Workflow: workflow, Version: c.text(), Queue: c.text(), FirstSeen: c.time(), LastSeen: c.time()})
				return c.err
			}, workflow)
			if err != nil {
				return err
			}
		}
		return nil
	})
	return known, err
}

// lastVersionArrivalTime returns when a version of any workflow arrived last, or zero.
func lastVersionArrivalTime(x executor) (at time.Time, err error) {
	err = x.query(qVersionLatestArrival, func(v []driver.Value) error {
		c := columnReader{values: v}
		at = c.time()
		return c.err
	})
	return at, err
}
