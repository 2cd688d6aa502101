package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// Control implements store.Store.
func (s *database) Control(ctx context.Context, o *store.ControlOperation) error {
	return retryUnavailable(ctx, func() error {
		return s.runTransaction(ctx, "order", func(ask roundTripFunc) error { return s.tryControl(ask, o) })
	})
}

// tryControl makes one try: it locks all runs concerned, plans the changes, and writes them.
func (s *database) tryControl(ask roundTripFunc, o *store.ControlOperation) error {
	nodes, err := s.lockTree(ask, o.Runs)
	if err != nil {
		return err
	}
	changes, parents := o.Plan(nodes)
	if len(changes) == 0 && len(parents) == 0 {
		return nil // the commit waits for the disk because of the locks; see read_durably.go
	}
	var frozen []uuid.UUID
	for _, c := range changes {
		if o.ShiftTimers && c.Audit == store.AuditResume && c.Before.Status == store.Paused {
			frozen = append(frozen, c.Before.UUID)
		}
	}
	wakes := make([]wakeReason, len(parents))
	for i, id := range parents {
		wakes[i] = wakeReason{run: id, at: o.Now}
	}
	made := int64(0)
	err = ask("order", func(batch *pgx.Batch) {
		if len(frozen) > 0 {
			batch.Queue(s.sql.controlShiftTimers, append(lockArgs(frozen), pgTime(o.Now))...)
		}
		batch.Queue(s.sql.controlApply, append(changeArgs(changes),
			pgTime(o.Now), nullText(&o.Reason), nullText(&o.Actor), o.Error, notifyChannel(s.schema),
			uuidArray{len(changes), func(i int) *uuid.UUID { return nullUUID(&changes[i].Before.Owner) }},
			boolArray{len(changes), func(i int) bool { return changes[i].Detached }}, int64(store.FoldLane))...)
		if len(wakes) > 0 {
			batch.Queue(s.sql.runWake, append(wakeArgs(wakes), notifyChannel(s.schema))...)
		}
	}, func(res statementResults) error {
		if err := readRowCount(res, len(frozen), nil); err != nil {
			return err
		}
		if err := eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&made, nil) }); err != nil {
			return err
		}
		return readRowCount(res, len(wakes), nil)
	})
	if err == nil && made != int64(len(changes)) {
		// The runs are locked, so this cannot happen. If it did, half of the changes must not be
		// committed.
		err = fmt.Errorf("postgres: order: %w: %d of %d runs were as they had been found", store.ErrUnavailable, made, len(changes))
	}
	return err
}

// lockTree locks all runs that a control request may change. It returns them as they are after that, with
// the ended runs between them.
func (s *database) lockTree(ask roundTripFunc, runs []uuid.UUID) ([]store.ControlledRun, error) {
	var nodes []store.ControlledRun
	for {
		locked, live := 0, 0
		err := ask("lock a tree", func(batch *pgx.Batch) {
			batch.Queue(s.sql.controlTreeLock, lockArgs(runs)...)
			batch.Queue(s.sql.controlTree, lockArgs(runs)...)
		}, func(res statementResults) error {
			err := eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&locked) })
			if err != nil {
				return err
			}
			nodes, live = slices.Grow(nodes[:0], locked), 0
			return eachRow(res, func(rows pgx.Rows) error {
				node, err := scanNode(rows)
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

func scanNode(rows pgx.Rows) (store.ControlledRun, error) {
	var n store.ControlledRun
	var parent, owner pgtype.UUID
	err := rows.Scan((*uuidValue)(&n.UUID), &parent, (*int16)(&n.Status), (*epochValue)(&n.Epoch), (*int16)(&n.Control), &owner, &n.Detached)
	n.Parent = uuid.NullUUID{UUID: parent.Bytes, Valid: parent.Valid}
	n.Owner = uuid.NullUUID{UUID: owner.Bytes, Valid: owner.Valid}
	return n, err
}

// changeArgs returns the first parameters of control_apply.sql.
func changeArgs(items []store.ControlChange) []any {
	n := len(items)
	return append(make([]any, 0, 16),
		int2Array{n, func(i int) int16 { return store.ShardOf(items[i].Before.UUID) }},
		uuidArray{n, func(i int) *uuid.UUID { return &items[i].Before.UUID }},
		int2Array{n, func(i int) int16 { return int16(items[i].Before.Status) }},
		epochArray{n, func(i int) store.Epoch { return items[i].Before.Epoch }},
		int2Array{n, func(i int) int16 { return int16(items[i].Before.Control) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Status) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Control) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Wake) }},
		int2Array{n, func(i int) int16 { return int16(items[i].Audit) }},
	)
}

// runTransaction calls work in one transaction of several round trips, with the settings that every transaction
// of the engine has. In a session that has these settings, the first round trip of work also begins the transaction.
func (s *database) runTransaction(ctx context.Context, what string, work func(roundTripFunc) error) (err error) {
	conn, err := s.acquire(ctx, s.enginePool)
	if err != nil {
		return s.wrapError(ctx, what, err)
	}
	defer conn.Release()
	outer := ctx
	ctx, landed := s.hosts.track(ctx, s.hosts.addressOf(conn.Conn()), false)
	defer func() {
		if landed() && err != nil {
			err = s.wrapError(outer, what, movedError(err))
		}
	}()
	pg := conn.Conn().PgConn()
	defer func() {
		// This also runs when ctx has ended. After a commit there is nothing to do.
		if pg.IsClosed() || pg.TxStatus() == 'I' {
			return
		}
		bye, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_, _ = conn.Exec(bye, rollbackSQL) // if it fails, the pool drops the connection
	}()
	begun := false
	begin := func(batch *pgx.Batch) {
		batch.Queue(beginSQL)
		batch.Queue(s.sql.setTransactionTimeouts, controlLockTimeout, standstillTimeout)
	}
	ask := func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		var batch pgx.Batch
		first := 0
		if !begun {
			begun, first = true, 2
			begin(&batch)
		}
		fill(&batch)
		return s.wrapError(ctx, what, readAndClose(conn.SendBatch(ctx, &batch), skipping(first, read)))
	}
	if connStateOf(conn.Conn()) == nil { // a statement that pgx describes is parsed with the engine's search_path
		if _, err := conn.Exec(ctx, beginSQL); err != nil {
			return s.wrapError(ctx, what, err)
		}
		begun = true
		if err := ask(what, s.queueSettings, func(res statementResults) error { return readRowCount(res, 1, nil) }); err != nil {
			return err
		}
		err := ask(what, func(batch *pgx.Batch) {
			batch.Queue(s.sql.setTransactionTimeouts, controlLockTimeout, standstillTimeout)
		},
			func(res statementResults) error { return readRowCount(res, 1, nil) })
		if err != nil {
			return err
		}
	}
	if err := work(ask); err != nil || !begun {
		return err
	}
	tag, err := conn.Exec(ctx, commitSQL)
	switch {
	case err != nil:
	case tag.String() != commitSQL:
		err = errRolledBack
	case takeUnreplicated(pg):
		err = errUnreplicated
	case !s.inCurrentEra(conn.Conn()):
		err = errRewound
	}
	return s.wrapError(ctx, what, err)
}

// skipping returns a function that reads the results of as many statements, and then calls read.
func skipping(first int, read func(statementResults) error) func(statementResults) error {
	return func(res statementResults) error {
		for range first {
			if _, err := res.Exec(); err != nil {
				return err
			}
		}
		return read(res)
	}
}
