package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/seed8ec063be/durable/internal/store"
)

// foldLockTimeout bounds the wait for the row of a key. Engines retry, so that a blocked start holds its
// connection only for a short time.
const foldLockTimeout = "100ms"

// DueFolds implements store.FoldStore.
func (s *database) DueFolds(ctx context.Context, now time.Time, limit int) (due []store.FoldKey, next time.Time, err error) {
	err = s.runBatch(ctx, s.enginePool, "look for due keys", func(batch *pgx.Batch) {
		batch.Queue(s.statements.startFoldKeysDue, int32(limit))
		batch.Queue(s.statements.startFoldKeysRunEnded, int32(limit))
	}, func(res statementResults) error {
		due, next = nil, time.Time{}
		err := eachRow(res, func(rows pgx.Rows) error {
			var k store.FoldKey
			var at time.Time
			err := rows.Scan(&k.Workflow, &k.Key, (*int16)(&k.Kind), (*timeValue)(&at))
			if !at.After(now) {
				due = append(due, k)
			} else if next.IsZero() {
				next = at
			}
			return err
		})
		if err != nil {
			return err
		}
		return eachRow(res, func(rows pgx.Rows) error {
			var k store.FoldKey
			err := rows.Scan(&k.Workflow, &k.Key, (*int16)(&k.Kind))
			due = append(due, k)
			return err
		})
	})
	return due, next, err
}

// FoldOfWaitingRun implements store.FoldStore.
func (s *database) FoldOfWaitingRun(ctx context.Context, run uuid.UUID) (row *store.Fold, err error) {
	err = s.runBatch(ctx, s.enginePool, "read what a run waits for", func(batch *pgx.Batch) { batch.Queue(s.statements.startFoldKeyOfWaiting, pgUUID(run)) },
		func(res statementResults) error {
			row = nil
			return eachRow(res, func(rows pgx.Rows) error {
				row = new(store.Fold)
				var after, waiting pgtype.UUID
				err := rows.Scan(&row.Workflow, &row.Key, (*int16)(&row.Kind), (*timeValue)(&row.CheckAt), &after, &waiting, &row.State)
				row.AfterRun, row.WaitingRun = uuid.NullUUID{UUID: after.Bytes, Valid: after.Valid}, uuid.NullUUID{UUID: waiting.Bytes, Valid: waiting.Valid}
				return err
			})
		})
	return row, err
}

// ChangeFold implements store.FoldStore.
func (s *database) ChangeFold(ctx context.Context, c *store.FoldChangeRequest) error {
	return retryUnavailable(ctx, func() error {
		return s.tryTransaction(ctx, "change a key", foldLockTimeout, func(ask roundTripFunc) error { return s.changeFold(ask, c) })
	})
}

// foldIn changes a key in the caller's transaction. The change holds if and when that commits. The wait for
// the row of the key is bounded by the settings of the caller's session.
func (s *database) foldIn(ctx context.Context, tx pgx.Tx, c *store.FoldChangeRequest) error {
	return s.changeFold(s.roundTripWithSyncCommit(s.roundTripInUserTx(ctx, tx)), c)
}

// errFoldCreated tells that another transaction has created the row of a key since the caller looked.
var errFoldCreated = errors.New("the row exists by now")

// changeFold makes one try. If the row was created meanwhile, it plans again with that row.
func (s *database) changeFold(ask roundTripFunc, c *store.FoldChangeRequest) error {
	for try := 1; ; try++ {
		err := s.tryFold(ask, c)
		if !errors.Is(err, errFoldCreated) {
			return err
		}
		if try == maxStartTries {
			return fmt.Errorf("postgres: key %q of workflow %q: %w: others created and deleted it again and again", c.Key.Key, c.Key.Workflow, store.ErrUnavailable)
		}
	}
}

func (s *database) tryFold(ask roundTripFunc, c *store.FoldChangeRequest) error {
	c.AppliedWrite = nil
	state, err := s.readFold(ask, c)
	if err != nil || state.Row == nil && c.SkipLocked {
		return err
	}
	w := c.Plan(state)
	if w == nil {
		return nil
	}
	if err := s.writeFold(ask, c, w, state.Row != nil); err != nil {
		return err
	}
	if w.Start != nil {
		if err := s.insertFoldingRun(ask, w.Start); err != nil {
			return err
		}
	}
	if w.Release != nil {
		if err := s.releaseFoldedRun(ask, w.Release); err != nil {
			return err
		}
	}
	c.AppliedWrite = w
	return nil
}

// readFold locks the row, and reads it and what Plan decides about.
func (s *database) readFold(ask roundTripFunc, c *store.FoldChangeRequest) (state store.FoldSnapshot, err error) {
	lock := s.statements.startFoldKeyLock
	if c.SkipLocked {
		lock = s.statements.startFoldKeyTryLock
	}
	err = ask("lock a key", func(batch *pgx.Batch) {
		batch.Queue(lock, foldKey(c.Key)...)
		if c.Name != "" { // a statement of its own, so it sees what was committed before the lock was taken
			batch.Queue(s.statements.runByName, int2Array{1, func(int) int16 { return store.ShardOfName(c.Name) }}, uuidArray{1, func(int) *uuid.UUID { return nil }},
				textArray{1, func(int) *string { return &c.Name }})
		}
	}, func(res statementResults) error {
		state = store.FoldSnapshot{}
		err := eachRow(res, func(rows pgx.Rows) error {
			row := &store.Fold{FoldKey: c.Key}
			var after, waiting pgtype.UUID
			err := rows.Scan((*timeValue)(&row.CheckAt), &after, &waiting, &row.State, &row.Input)
			row.AfterRun, row.WaitingRun = uuid.NullUUID{UUID: after.Bytes, Valid: after.Valid}, uuid.NullUUID{UUID: waiting.Bytes, Valid: waiting.Valid}
			state.Row = row
			return err
		})
		if err != nil || c.Name == "" {
			return err
		}
		var ordinal int64
		return eachRow(res, func(rows pgx.Rows) error {
			state.RunWithName, err = scanRun(rows, &ordinal)
			return err
		})
	})
	if err != nil || state.Row == nil || c.RunsToRead == nil {
		return state, err
	}
	runs := c.RunsToRead(state.Row)
	if len(runs) == 0 {
		return state, nil
	}
	state.Runs = make(map[uuid.UUID]store.FoldRun, len(runs))
	err = ask("read the runs of a key", func(batch *pgx.Batch) { batch.Queue(s.statements.startFoldRunStates, lockArgs(runs)...) }, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			var r store.FoldRun
			err := rows.Scan((*uuidValue)(&id), &r.Name, (*int16)(&r.Status), (*int16)(&r.Control), (*epochValue)(&r.Epoch), &r.Queue, &r.Priority, &r.Version)
			state.Runs[id] = r
			return err
		})
	})
	return state, err
}

// writeFold writes or deletes the row, which this transaction has locked if it was found.
func (s *database) writeFold(ask roundTripFunc, c *store.FoldChangeRequest, w *store.FoldWrite, found bool) error {
	args, statement := foldKey(c.Key), s.statements.startFoldKeyDelete
	if !w.Delete {
		row := &w.Row
		if statement = s.statements.startFoldKeyInsert; found {
			statement = s.statements.startFoldKeyUpdate
		}
		var shard any
		if row.AfterRun.Valid {
			shard = store.ShardOf(row.AfterRun.UUID)
		}
		args = append(args, pgTime(row.CheckAt), shard, pgtype.UUID{Bytes: row.AfterRun.UUID, Valid: row.AfterRun.Valid},
			pgtype.UUID{Bytes: row.WaitingRun.UUID, Valid: row.WaitingRun.Valid}, row.State, row.Input)
	}
	n := 0
	err := ask("write a key", func(batch *pgx.Batch) { batch.Queue(statement, args...) }, func(res statementResults) error {
		n = 0
		return eachRow(res, func(pgx.Rows) error { n++; return nil })
	})
	switch {
	case err != nil || n == 1:
		return err
	case !found:
		return errFoldCreated
	}
	return fmt.Errorf("postgres: key %q of workflow %q: %w: its row is gone although it is locked", c.Key.Key, c.Key.Workflow, store.ErrUnavailable)
}

// insertFoldingRun inserts the run of a start that folds, and sets its outcome.
func (s *database) insertFoldingRun(ask roundTripFunc, item *store.StartWrite) error {
	w := &sortedBatch{newRowsMayExist: true}
	w.addBatch(&store.Batch{Starts: []*store.StartWrite{item}})
	w.notifyWorkers = w.notifyWorkers && !item.Run.Unreleased
	var took changedRowCounts
	err := ask("start", func(batch *pgx.Batch) { s.addStatements(batch, w) }, func(res statementResults) error { return w.readRowCounts(res, &took) })
	if err != nil {
		return err
	}
	if took.starts == 1 {
		item.Outcome, item.Existing, item.RunState = store.Written, nil, store.RunState{}
		return nil
	}
	return fmt.Errorf("postgres: start %q: %w: another start has just taken the ID", shortenName(item.Run.Name), store.ErrUnavailable)
}

// releaseFoldedRun makes a run claimable.
func (s *database) releaseFoldedRun(ask roundTripFunc, r *store.FoldRelease) error {
	n := 0
	err := ask("release a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.startFoldRunRelease, store.ShardOf(r.RunUUID), pgUUID(r.RunUUID), int64(r.Lane), pgTime(r.WakeAt), pgTime(r.Deadline), r.Input, r.Queue, r.Priority,
			pgTime(r.StartBy), timeoutOrNull(r.Timeout))
		batch.Queue(s.statements.notify, notifyChannel(s.schema), "")
	}, func(res statementResults) error {
		n = 0
		if err := eachRow(res, func(pgx.Rows) error { n++; return nil }); err != nil {
			return err
		}
		return readRowCount(res, 1, nil)
	})
	if err == nil && n != 1 {
		err = fmt.Errorf("postgres: run %s: %w: it was ended or changed just now", r.RunUUID, store.ErrUnavailable)
	}
	return err
}

// foldKey returns the first parameters of the statements about one key.
func foldKey(k store.FoldKey) []any {
	return append(make([]any, 0, 10), k.Shard(), k.Workflow, k.Key, int16(k.Kind))
}
