package main

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// briefRetention is how long workers keep the ended runs of workflow brief. Config.Retention keeps every run for a minute at least, which is
// longer than most soaks. The recordingStore therefore shows the worker's retention older ends, and makes each deletion wait for writes
// under way, as Engine.Delete does.
const briefRetention = 2 * time.Second

const agedBy = store.MinRetention - briefRetention

// EndedTrees implements store.Store.
func (s *recordingStore) EndedTrees(ctx context.Context, q store.EndedTreesQuery) (store.EndedTrees, error) {
	q.CreatedBefore, q.EndedBefore = q.CreatedBefore.Add(agedBy), q.EndedBefore.Add(agedBy)
	page, err := s.Store.EndedTrees(ctx, q)
	for i := range page.Roots {
		page.Roots[i].EndedAt = page.Roots[i].EndedAt.Add(-agedBy)
	}
	return page, err
}

// TreeToDelete implements store.Store.
func (s *recordingStore) TreeToDelete(ctx context.Context, root uuid.UUID) ([]store.TreeNode, error) {
	nodes, err := s.Store.TreeToDelete(ctx, root)
	for i := range nodes {
		if !nodes[i].EndedAt.IsZero() {
			nodes[i].EndedAt = nodes[i].EndedAt.Add(-agedBy)
		}
	}
	return nodes, err
}

// DeleteTrees implements store.Store.
func (s *recordingStore) DeleteTrees(ctx context.Context, d *store.DeleteTreesRequest) error {
	d.AwaitWriters = true
	for i := range d.Trees {
		t := &d.Trees[i]
		nodes, err := s.Store.TreeToDelete(ctx, t.Root)
		if err != nil {
			return err
		}
		t.EndedBefore, t.EndedBeforeCall = t.EndedBefore.Add(agedBy), make(map[uuid.UUID]store.Epoch, len(nodes))
		for _, n := range nodes {
			if n.Generation == 0 && n.Status.IsTerminal() {
				t.EndedBeforeCall[n.UUID] = n.Epoch
			}
		}
	}
	return s.Store.DeleteTrees(ctx, d)
}
