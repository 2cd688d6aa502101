package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// RunTree implements store.Store.
func (s *database) RunTree(ctx context.Context, run uuid.UUID, allGenerations bool) (runs []*store.Run, err error) {
	err = s.withReadConn(ctx, "tree", func(x executor) error {
		return x.query(qRunTree, func(v []driver.Value) error {
			row, err := scanRun(v)
			runs = append(runs, &row.Run)
			return err
		}, bindShard(run), bindUUID(run), bindBool(allGenerations))
	})
	if err != nil {
		return nil, err
	}
	return runs, nil
}

// RunTreeCounts implements store.Store.
func (s *database) RunTreeCounts(ctx context.Context, run uuid.UUID, now time.Time) (store.TreeCounts, error) {
	counts := store.TreeCounts{RunsByStatus: make(map[store.Status]int), OpenCallsByKind: make(map[store.StepKind]int)}
	err := s.withReadConn(ctx, "counts", func(x executor) error {
		return x.query(qRunTreeCounts, func(v []driver.Value) error {
			c := columnReader{values: v}
			status, kind := store.Status(c.int()), store.StepKind(c.int())
			n, delayed := int(c.int()), int(c.int())
			counts.Add(status, kind, n, delayed)
			return c.err
		}, bindShard(run), bindUUID(run), bindTime(now))
	})
	return counts, err
}
