package postgres

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

func newQueueState(a *store.AdmissionRequest) *store.QueueState {
	return &store.QueueState{QueueRow: store.QueueRow{Name: a.Queue, Deleted: true}, Now: a.Now.Truncate(time.Microsecond)}
}

// lanesWithUnadmittedRuns returns the lanes of the queue in which there may be runs that no admission has seen.
func (s *database) lanesWithUnadmittedRuns(ctx context.Context, queue string) ([]store.ClaimLane, error) {
	if gaps, old := s.knownLanes.gapsToSearch(); old {
		if err := s.findUnknownLanes(ctx, &gaps); err != nil {
			return nil, err
		}
	}
	return s.knownLanes.lanesWithUnadmittedRuns(queue), nil
}

// readUnclaimedCountByKey reads the result of admission_unclaimed_runs_by_group_key.sql.
func readUnclaimedCountByKey(res statementResults, q *store.QueueState) error {
	q.UnclaimedByKey = make(map[string]int)
	return eachRow(res, func(rows pgx.Rows) error {
		var key string
		err := rows.Scan(&key)
		q.UnclaimedByKey[key]++
		return err
	})
}
