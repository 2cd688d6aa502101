package postgres

import (
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// idleRunsReader implements store.IdleRunsReader in the transaction of an admission.
type idleRunsReader struct {
	database *database
	ask      roundTripFunc
	queue    *store.QueueState
}

// ReadIdleRuns implements store.IdleRunsReader.
func (r *idleRunsReader) ReadIdleRuns(at store.IdleRunsCursor) (chunk store.IdleRunsChunk, err error) {
	err = r.ask("search idle runs", func(batch *pgx.Batch) {
		batch.Queue(r.database.statements.admissionIdleRunsLock, r.queue.Name, int16(at.Status), pgUUID(at.After), int32(store.MaxIdleRunsReadPerAdmission))
	}, func(res statementResults) error {
		chunk = store.IdleRunsChunk{ReadUntil: at.After}
		skipped := false
		return eachRow(res, func(rows pgx.Rows) error {
			var last, uncounted bool
			run, locked, err := scanAdmissionRun(rows, r.queue, &last, &uncounted)
			skipped = skipped || uncounted && !locked // the search continues before the run that another transaction has locked
			chunk.HasMore = chunk.HasMore || last || skipped
			if err != nil || skipped {
				return err
			}
			if uncounted {
				chunk.Uncounted = append(chunk.Uncounted, run)
			}
			chunk.ReadUntil = run.Run
			return nil
		})
	})
	return chunk, err
}

// HasUnseenRuns implements store.IdleRunsReader. Admissions find the runs of the lanes that HasUnseenRuns has found.
func (r *idleRunsReader) HasUnseenRuns() (unseen bool, err error) {
	var lanes []knownLane
	err = r.ask("look for lanes", func(batch *pgx.Batch) {
		batch.Queue(r.database.statements.lanesFindUnknown, newLaneArray([]store.ClaimLane{store.FirstLane}), newLaneArray([]store.ClaimLane{store.LastLane}))
	}, func(res statementResults) (err error) {
		lanes, err = scanLanes(res)
		return err
	})
	for _, l := range lanes {
		unseen = unseen || l.queue == r.queue.Name && l.lane.Admission() == store.AdmissionNotNeeded
	}
	if unseen {
		r.database.knownLanes.add(&claimLaneArgs{}, lanes)
	}
	return unseen, err
}
