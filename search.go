package durable

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// How many runs of each shard a search examines at first, and at most.
const (
	firstExaminedPerShard = 16
	maxExaminedPerShard   = 256
)

// searchRuns lists runs. If maxTime is not zero, and no index has exactly these runs in order, searchRuns stops after that time, and returns the
// UUID below which it has not searched. If an index leads to these runs and to others, searchRuns reads this index first, for maxTime at most.
func (e *Engine) searchRuns(ctx context.Context, f store.Filter, before uuid.UUID, limit int, maxTime time.Duration) (rows []*store.Run, reached uuid.UUID, err error) {
	s := e.inner.Store()
	if maxTime <= 0 || f.SelectsFewRuns() || f.IsOrderedIndexRange() {
		rows, err = s.ListRuns(ctx, f, before, limit)
		return rows, reached, err
	}
	if f.UsesIndex() {
		bounded, cancel := context.WithTimeout(ctx, maxTime)
		defer cancel()
		if rows, err = s.ListRuns(bounded, f, before, limit); err == nil || bounded.Err() == nil || ctx.Err() != nil {
			return rows, reached, err
		}
	}
	began := time.Now()
	var ids []uuid.UUID
	for examine := firstExaminedPerShard; ; examine = min(2*examine, maxExaminedPerShard) {
		readBegan := time.Now()
		found, end, err := s.SearchRuns(ctx, f, before, examine)
		if err != nil {
			return nil, reached, err
		}
		ids, before = append(ids, found...), end
		if len(ids) >= limit || end == (uuid.UUID{}) {
			break
		}
		if now := time.Now(); now.Sub(began)+now.Sub(readBegan) > maxTime { // the next read takes at least as long as this one
			reached = end
			break
		}
	}
	if ids = ids[:min(len(ids), limit)]; len(ids) == 0 {
		return nil, reached, nil
	}
	rows, err = s.ListRuns(ctx, store.Filter{UUIDs: ids}, uuid.UUID{}, limit)
	return rows, reached, err
}
