package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// idleRunsReader implements store.IdleRunsReader in the transaction of an admission.
type idleRunsReader struct {
	database *database
	ctx      context.Context
	x        executor
	queue    *store.QueueState
}

// ReadIdleRuns implements store.IdleRunsReader.
func (r *idleRunsReader) ReadIdleRuns(at store.IdleRunsCursor) (chunk store.IdleRunsChunk, err error) {
	chunk.ReadUntil = at.After
	n := 0
	var uncounted []uuid.UUID
	err = r.x.query(qAdmissionSelectIdleRuns, func(v []driver.Value) error {
		c := columnReader{values: v}
		chunk.ReadUntil = c.uuid()
		if c.int() != 0 {
			uncounted = append(uncounted, chunk.ReadUntil)
		}
		n++
		return c.err
	}, r.queue.Name, int64(at.Status), bindUUID(at.After), int64(store.MaxIdleRunsReadPerAdmission))
	chunk.HasMore = n == store.MaxIdleRunsReadPerAdmission
	for _, id := range uncounted {
		if err != nil {
			break
		}
		var run *store.RunToMove
		if run, err = readRunToMove(r.x, id); run != nil {
			chunk.Uncounted = append(chunk.Uncounted, run.AdmissionRun)
		}
	}
	return chunk, err
}

// HasUnseenRuns implements store.IdleRunsReader.
func (r *idleRunsReader) HasUnseenRuns() (bool, error) {
	byQueue, err := readUnadmittedLanes(r.ctx, r.x)
	if err != nil {
		return false, err
	}
	r.database.unadmittedLaneCache.setLanes(byQueue)
	return len(byQueue[r.queue.Name]) > 0, nil
}
