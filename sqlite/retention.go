package sqlite

import (
	"context"
	"database/sql/driver"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// TreeToDelete implements store.RetentionStore.
func (s *database) TreeToDelete(ctx context.Context, root uuid.UUID) (nodes []store.TreeNode, err error) {
	err = s.withReadConn(ctx, "tree to delete", func(x executor) error {
		nodes, err = readTreeNodes(x, root)
		return err
	})
	return nodes, err
}

func readTreeNodes(x executor, root uuid.UUID) (nodes []store.TreeNode, err error) {
	err = x.query(qRetentionTreeRead, func(v []driver.Value) error {
		c := columnReader{values: v}
		nodes = append(nodes, store.TreeNode{
			UUID: c.uuid(), Parent: c.nullUUID(), Generation: int32(c.int()), Status: store.Status(c.int()), Epoch: store.DecodeEpoch(c.int()),
			EndedAt: c.time(), Detached: c.int() != 0, HoldsQueuePlace: c.int() != 0,
		})
		return c.err
	}, bindUUID(root), bindShard(root))
	return nodes, err
}

// DeleteTrees implements store.RetentionStore. The write lock excludes all other changes.
func (s *database) DeleteTrees(ctx context.Context, d *store.DeleteTreesRequest) error {
	return s.withWriteTx(ctx, "delete runs", func(x executor) error {
		for i := range d.Trees {
			if err := deleteTree(ctx, x, d, &d.Trees[i]); err != nil {
				return err
			}
		}
		return nil
	})
}

// deleteTree deletes one tree, if it can be deleted.
func deleteTree(ctx context.Context, x executor, d *store.DeleteTreesRequest, t *store.DeleteTreeRequest) error {
	nodes, err := readTreeNodes(x, t.Root)
	if err != nil {
		return err
	}
	plan := t.Plan(nodes, d.Now, func(uuid.UUID) bool { return true })
	for i, run := range plan.Runs {
		if i%itemsPerContextCheck == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := deleteRun(x, run); err != nil {
			return err
		}
	}
	for i := range plan.Generations {
		for _, q := range []queryID{qRetentionStepsDelete, qRetentionGenerationDelete} {
			if _, err := x.exec(q, bindUUID(plan.Generations[i].UUID)); err != nil {
				return err
			}
		}
	}
	if t.Outcome != store.Written || !d.WithEvents {
		return nil
	}
	return writeEventWithActor(x, &store.ActorAndReason{Actor: d.Actor, Reason: d.Reason, At: d.Now}, &store.Event{Type: store.EventDeleted, Run: t.Root, OldValue: t.Name, NewValue: strconv.Itoa(t.DeletedRunCount)})
}

// deleteRun deletes a run that has ended, with all rows that belong to it.
func deleteRun(x executor, run uuid.UUID) error {
	for _, q := range []queryID{qRetentionStepsDelete, qDivergencesOfRunDelete} {
		if _, err := x.exec(q, bindUUID(run)); err != nil {
			return err
		}
	}
	for _, q := range []queryID{qRetentionSignalsDelete, qRetentionTagsDelete, qRetentionPermitsDelete, qRetentionPlaceDelete} {
		if _, err := x.exec(q, bindShard(run), bindUUID(run)); err != nil {
			return err
		}
	}
	n, err := x.exec(qRetentionRunDelete, bindUUID(run))
	return checkOneRow("the deletion of run", run, n, err)
}

// eventsPerDeletion is how many events one transaction deletes at most.
const eventsPerDeletion = 200

// EndedTrees implements store.RetentionStore. The runs of all shards are stored together.
func (s *database) EndedTrees(ctx context.Context, q store.EndedTreesQuery) (page store.EndedTrees, err error) {
	if q.Shard != 0 {
		return page, nil
	}
	err = s.withReadConn(ctx, "runs that ended", func(x executor) error {
		return x.query(qRetentionEndedRootsPage, func(v []driver.Value) error {
			c := columnReader{values: v}
			r := store.EndedRoot{UUID: c.uuid(), Workflow: c.text(), Status: store.Status(c.int()), Epoch: store.DecodeEpoch(c.int()), EndedAt: c.time()}
			number := c.int()
			if c.int() != 0 {
				page.Roots = append(page.Roots, r)
			}
			if number == int64(q.Limit) {
				page.Next = r.UUID
			}
			return c.err
		}, bindUUID(q.After), bindUUID(store.FirstUUIDAt(q.CreatedBefore)), bindTime(q.EndedBefore), int64(q.Limit))
	})
	return page, err
}

// OldGenerations implements store.RetentionStore.
func (s *database) OldGenerations(ctx context.Context, q store.OldGenerationsQuery) (page store.OldGenerations, err error) {
	if q.Shard != 0 {
		return page, nil
	}
	err = s.withReadConn(ctx, "old generations", func(x executor) error {
		return x.query(qRetentionGenerationsToDelete, func(v []driver.Value) error {
			c := columnReader{values: v}
			g := store.OldGeneration{Run: c.uuid(), Number: int32(c.int()), ArchiveID: c.uuid(), Workflow: c.text()}
			position := c.int()
			if c.int() != 0 {
				page.Generations = append(page.Generations, g)
			}
			if position == int64(q.Limit) {
				page.NextRun, page.NextNumber = g.Run, g.Number
			}
			return c.err
		}, bindUUID(q.AfterRun), int64(q.AfterNumber), bindTime(q.SupersededBefore), int64(q.Limit))
	})
	return page, err
}

// DeleteEvents implements store.RetentionStore.
func (s *database) DeleteEvents(ctx context.Context, before time.Time) (int, error) {
	var n int64
	err := s.withWriteTx(ctx, "delete events", func(x executor) (err error) {
		n, err = x.exec(qRetentionEventsDelete, bindTime(before), int64(eventsPerDeletion))
		return err
	})
	return int(n), err
}
