package postgres

import (
	"context"
	"fmt"
	"slices"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// ControlRuns implements store.Store.
func (s *database) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	return retryUnavailable(ctx, func() error {
		return s.tryTransaction(ctx, "control", controlLockTimeout, func(ask roundTripFunc) error { return s.tryControlRuns(ask, o) })
	})
}

// tryControlRuns makes one try: it locks all runs concerned, plans the changes, and writes them.
func (s *database) tryControlRuns(ask roundTripFunc, o *store.ControlRequest) error {
	nodes, err := s.lockRunTree(ask, o.Runs)
	if err != nil {
		return err
	}
	changes, parents := o.Plan(nodes)
	if len(changes) == 0 && len(parents) == 0 {
		return nil // because of the locks, the commit waits for the disk even without changes; see read_durably.go
	}
	var frozen []uuid.UUID
	for _, c := range changes {
		if o.ShiftTimers && c.AuditColumns == store.AuditColumnsClearPause && c.Before.Status == store.Paused {
			frozen = append(frozen, c.Before.UUID)
		}
	}
	events := o.ActorEvents(changes)
	wakes := make([]wakeReason, len(parents))
	for i, id := range parents {
		wakes[i] = wakeReason{run: id, at: o.Now}
	}
	made := int64(0)
	err = ask("control", func(batch *pgx.Batch) {
		if len(frozen) > 0 {
			batch.Queue(s.statements.controlShiftTimers, append(runIDArgs(frozen), pgTime(o.Now))...)
		}
		batch.Queue(s.statements.controlApply, controlApplyArgs(o, changes, notifyChannel(s.schema))...)
		if len(events) > 0 {
			batch.Queue(s.statements.eventInsert, eventInsertArgs(o.ActorAndReason(), events)...)
		}
		if len(wakes) > 0 {
			batch.Queue(s.statements.runWake, append(wakeArgs(wakes), notifyChannel(s.schema))...)
		}
	}, func(res statementResults) error {
		if err := readRowCount(res, len(frozen), nil); err != nil {
			return err
		}
		if err := eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&made, nil) }); err != nil {
			return err
		}
		if len(events) > 0 {
			if err := expectReturnedRows(res, "events", len(events)); err != nil {
				return err
			}
		}
		return readRowCount(res, len(wakes), nil)
	})
	if err == nil && made != int64(len(changes)) {
		// The runs are locked, so this cannot happen. If it did, committing only some of the changes would be wrong.
		err = fmt.Errorf("postgres: order: %w: %d of %d runs were as they had been found", store.ErrUnavailable, made, len(changes))
	}
	return err
}

// lockRunTree locks all runs that a control request may change. It returns the locked runs, and the ended runs between them.
func (s *database) lockRunTree(ask roundTripFunc, runs []uuid.UUID) ([]store.RunToControl, error) {
	var nodes []store.RunToControl
	for {
		locked, live := 0, 0
		err := ask("lock a tree", func(batch *pgx.Batch) {
			batch.Queue(s.statements.controlRunTreeLock, runIDArgs(runs)...)
			batch.Queue(s.statements.controlRunTreeRead, runIDArgs(runs)...)
		}, func(res statementResults) error {
			err := eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&locked) })
			if err != nil {
				return err
			}
			nodes, live = slices.Grow(nodes[:0], locked), 0
			return eachRow(res, func(rows pgx.Rows) error {
				node, err := scanRunToControl(rows)
				nodes = append(nodes, node)
				if !node.Status.IsTerminal() {
					live++
				}
				return err
			})
		})
		if err != nil || live == locked { // locked runs stay locked, so equal numbers mean the same runs
			return nodes, err
		}
	}
}

func scanRunToControl(rows pgx.Rows) (store.RunToControl, error) {
	var n store.RunToControl
	var parent, owner pgtype.UUID
	err := rows.Scan((*uuidValue)(&n.UUID), &parent, (*int16)(&n.Status), (*epochValue)(&n.Epoch), (*int16)(&n.Control), &owner, &n.Detached)
	n.Parent = uuid.NullUUID{UUID: parent.Bytes, Valid: parent.Valid}
	n.Owner = uuid.NullUUID{UUID: owner.Bytes, Valid: owner.Valid}
	return n, err
}

// controlApplyArgs returns the parameters of control_apply.sql.
func controlApplyArgs(o *store.ControlRequest, items []store.ControlChange, channel string) []any {
	n := len(items)
	return []any{
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Before.UUID) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Before.UUID }},
		int2Array{n, func(i int) int16 { return int16(items[i].Before.Status) }},
		epochArray{n, func(i int) store.Epoch { return items[i].Before.Epoch }},
		int2Array{n, func(i int) int16 { return int16(items[i].Before.Control) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Status) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Control) }},
		int2Array{n, func(i int) int16 { return int16(items[i].WakeAt) }},
		int2Array{n, func(i int) int16 { return int16(items[i].AuditColumns) }},
		pgTime(o.Now), textOrNull(&o.Reason), textOrNull(&o.Actor), o.Error, channel,
		uuidArray{n, func(i int) *uuid.UUID { return uuidOrNull(&items[i].Before.Owner) }},
		boolArray{n, func(i int) bool { return items[i].Detached }},
		int64(store.UnreleasedLane),
	}
}
