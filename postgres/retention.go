package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// deletedPerStatement is how many runs and generations one statement deletes, so that a large tree does not exceed the
// time limit of a statement.
const deletedPerStatement = 1000

// TreeToDelete implements store.RetentionStore.
func (s *database) TreeToDelete(ctx context.Context, root uuid.UUID) (nodes []store.TreeNode, err error) {
	err = s.roundTripFuncOnEnginePool(ctx)("read a tree", func(batch *pgx.Batch) {
		batch.Queue(s.statements.retentionTreeRead, runIDArgs([]uuid.UUID{root})...)
	}, func(res statementResults) error {
		nodes = nil // discard the rows of a failed try
		return scanTreeNodes(res, &nodes)
	})
	return nodes, err
}

func scanTreeNodes(res statementResults, nodes *[]store.TreeNode) error {
	return eachRow(res, func(rows pgx.Rows) error {
		var n store.TreeNode
		var parent pgtype.UUID
		err := rows.Scan((*uuidValue)(&n.UUID), &parent, &n.Generation, (*int16)(&n.Status), (*epochValue)(&n.Epoch), (*timeValue)(&n.EndedAt), &n.Detached, &n.HoldsQueuePlace)
		n.Parent = uuid.NullUUID{UUID: parent.Bytes, Valid: parent.Valid}
		*nodes = append(*nodes, n)
		return err
	})
}

// DeleteTrees implements store.RetentionStore.
func (s *database) DeleteTrees(ctx context.Context, d *store.DeleteTreesRequest) error {
	if len(d.Trees) == 0 {
		return nil
	}
	if d.AwaitWriters {
		if err := s.awaitStepWriters(ctx); err != nil {
			return err
		}
	}
	return retryUnavailable(ctx, func() error {
		err := s.tryTransaction(ctx, "delete runs", controlLockTimeout, func(ask roundTripFunc) error { return s.tryDeleteTrees(ask, d) })
		d.ReplyLost = d.ReplyLost || errors.Is(err, store.ErrUnavailable)
		return err
	})
}

func (s *database) tryDeleteTrees(ask roundTripFunc, d *store.DeleteTreesRequest) error {
	roots := make([]uuid.UUID, len(d.Trees))
	for i := range d.Trees {
		roots[i] = d.Trees[i].Root
	}
	locked := make(map[uuid.UUID]bool, len(roots))
	var nodes []store.TreeNode
	err := ask("lock trees", func(batch *pgx.Batch) {
		batch.Queue(s.statements.retentionTreeLock, runIDArgs(roots)...)
		batch.Queue(s.statements.retentionTreeRead, runIDArgs(roots)...) // with a snapshot that is newer than the locks
	}, func(res statementResults) error {
		err := eachRow(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			err := rows.Scan((*uuidValue)(&id))
			locked[id] = true
			return err
		})
		if err != nil {
			return err
		}
		return scanTreeNodes(res, &nodes)
	})
	if err != nil {
		return err
	}
	var runs, all []uuid.UUID
	var withEvents []*store.DeleteTreeRequest
	for i := range d.Trees {
		plan := d.Trees[i].Plan(nodes, d.Now, func(id uuid.UUID) bool { return locked[id] })
		runs = append(runs, plan.Runs...)
		for _, g := range plan.Generations {
			all = append(all, g.UUID)
		}
		if d.WithEvents && d.Trees[i].Outcome == store.Written {
			withEvents = append(withEvents, &d.Trees[i])
		}
	}
	deleted := 0
	all = append(all, runs...)
	for rest := all; len(rest) > 0; {
		n := min(len(rest), deletedPerStatement)
		err := ask("delete runs", func(batch *pgx.Batch) {
			batch.Queue(s.statements.retentionRunsDelete, runIDArgs(rest[:n])...)
		}, func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error {
				deleted++
				return rows.Scan(nil)
			})
		})
		if err != nil {
			return err
		}
		rest = rest[n:]
	}
	if deleted != len(runs) {
		// The runs are locked, so this cannot happen. If it did, deleting only a part of a tree would be wrong.
		return fmt.Errorf("postgres: delete runs: %w: %d of %d runs were there", store.ErrUnavailable, deleted, len(runs))
	}
	if len(withEvents) == 0 {
		return nil
	}
	return ask("write events", func(batch *pgx.Batch) {
		batch.Queue(s.statements.eventInsert, deletionEventArgs(d, withEvents)...)
	}, func(res statementResults) error { return expectReturnedRows(res, "events", len(withEvents)) })
}

// deletionEventArgs returns the parameters of event_insert.sql.
func deletionEventArgs(d *store.DeleteTreesRequest, withEvents []*store.DeleteTreeRequest) []any {
	events := make([]store.Event, len(withEvents))
	for i, t := range withEvents {
		events[i] = store.Event{Type: store.EventDeleted, Run: t.Root, OldValue: t.Name, NewValue: strconv.Itoa(t.DeletedRunCount)}
	}
	return eventInsertArgs(store.ActorAndReason{Actor: d.Actor, Reason: d.Reason, At: d.Now}, events)
}
