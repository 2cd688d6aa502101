package durable

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// newRunInfos converts rows. If a child belongs to a superseded generation, its parent in the store is the archive ID of that
// generation, which no caller knows. A RunInfo has the UUID of the parent and the number of the generation instead.
func (e *Engine) newRunInfos(ctx context.Context, rows []*store.Run) ([]RunInfo, error) {
	generations, err := e.supersededParents(ctx, rows)
	if err != nil {
		return nil, err
	}
	infos := make([]RunInfo, len(rows))
	for i, r := range rows {
		infos[i] = *newRunInfo(r)
		if g, ok := generations[r.Parent.UUID]; ok {
			infos[i].Parent, infos[i].ParentGeneration = g.Run.String(), int(g.Number)
		}
	}
	return infos, nil
}

// supersededParents returns the parents of the rows that are superseded generations, by their archive IDs.
func (e *Engine) supersededParents(ctx context.Context, rows []*store.Run) (map[uuid.UUID]store.GenerationKey, error) {
	areRuns := make(map[uuid.UUID]bool, len(rows))
	for _, r := range rows {
		areRuns[r.UUID] = true
	}
	var unknown []uuid.UUID
	for _, r := range rows {
		if r.Parent.Valid && !areRuns[r.Parent.UUID] {
			unknown = append(unknown, r.Parent.UUID)
		}
	}
	if len(unknown) == 0 {
		return nil, nil
	}
	found, err := e.inner.Store().FindGenerations(ctx, store.SortedUniqueUUIDs(unknown))
	if err != nil {
		return nil, fmt.Errorf("find the parents of runs: %w", err)
	}
	generations := make(map[uuid.UUID]store.GenerationKey, len(found))
	for _, g := range found {
		generations[g.ArchiveID] = g
	}
	return generations, nil
}
