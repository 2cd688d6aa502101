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

// startKeyLockTimeout bounds the wait for the row of a key. Engines retry, so that a blocked start holds its
// connection only for a short time.
const startKeyLockTimeout = "100ms"

// DueStartKeys implements store.StartKeyStore.
func (s *database) DueStartKeys(ctx context.Context, now time.Time, limit int) (due []store.StartKey, next time.Time, err error) {
	err = s.runBatch(ctx, s.enginePool, "look for due keys", func(batch *pgx.Batch) {
		batch.Queue(s.statements.startKeysDue, int32(limit))
		batch.Queue(s.statements.startKeysWithReleasableStart, int32(limit))
	}, func(res statementResults) error {
		due, next = nil, time.Time{}
		err := eachRow(res, func(rows pgx.Rows) error {
			var k store.StartKey
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
			var k store.StartKey
			err := rows.Scan(&k.Workflow, &k.Key, (*int16)(&k.Kind))
			due = append(due, k)
			return err
		})
	})
	return due, next, err
}

// StartKeyOfWaitingRun implements store.StartKeyStore.
func (s *database) StartKeyOfWaitingRun(ctx context.Context, run uuid.UUID) (row *store.StartKeyRow, err error) {
	err = s.runBatch(ctx, s.enginePool, "read what a run waits for", func(batch *pgx.Batch) { batch.Queue(s.statements.startKeyOfWaitingRun, pgUUID(run)) },
		func(res statementResults) error {
			row = nil
			return eachRow(res, func(rows pgx.Rows) error {
				row = new(store.StartKeyRow)
				var after, waiting pgtype.UUID
				err := rows.Scan(&row.Workflow, &row.Key, (*int16)(&row.Kind), (*timeValue)(&row.CheckAt), &after, &waiting, &row.State, &row.WaitingInput)
				row.CheckAfterRun, row.WaitingRun = uuid.NullUUID{UUID: after.Bytes, Valid: after.Valid}, uuid.NullUUID{UUID: waiting.Bytes, Valid: waiting.Valid}
				return err
			})
		})
	return row, err
}

// UpdateStartKeyRow implements store.StartKeyStore.
func (s *database) UpdateStartKeyRow(ctx context.Context, c *store.StartKeyChangeRequest) error {
	return retryUnavailable(ctx, func() error {
		return s.tryTransaction(ctx, "change a key", startKeyLockTimeout, func(ask roundTripFunc) error { return s.updateStartKeyRow(ask, c) })
	})
}

// updateStartKeyRowInTx changes a key in the caller's transaction. The change takes effect if and when that transaction commits. The
// wait for the row of the key is bounded by the settings of the caller's session.
func (s *database) updateStartKeyRowInTx(ctx context.Context, tx pgx.Tx, c *store.StartKeyChangeRequest) error {
	return s.updateStartKeyRow(s.roundTripFuncWithSyncCommit(s.roundTripFuncInUserTx(ctx, tx)), c)
}

// errStartKeyCreated says that another transaction has created the row of a key after the caller had found none.
var errStartKeyCreated = errors.New("the row exists by now")

// updateStartKeyRow makes one try. If the row was created meanwhile, it plans again with that row.
func (s *database) updateStartKeyRow(ask roundTripFunc, c *store.StartKeyChangeRequest) error {
	for try := 1; ; try++ {
		err := s.tryUpdateStartKeyRow(ask, c)
		if !errors.Is(err, errStartKeyCreated) {
			return err
		}
		if try == maxStartTries {
			return fmt.Errorf("postgres: key %q of workflow %q: %w: others created and deleted it again and again", c.Key.Key, c.Key.Workflow, store.ErrUnavailable)
		}
	}
}

func (s *database) tryUpdateStartKeyRow(ask roundTripFunc, c *store.StartKeyChangeRequest) error {
	c.AppliedWrite = nil
	state, err := s.lockAndReadStartKey(ask, c)
	if err != nil || state.Row == nil && c.SkipLocked {
		return err
	}
	w := c.Plan(state)
	if w == nil {
		return nil
	}
	if err := s.writeOrDeleteStartKeyRow(ask, c, w, state.Row != nil); err != nil {
		return err
	}
	if w.RunToCreate != nil {
		if err := s.insertRunWithStartKey(ask, w.RunToCreate); err != nil {
			return err
		}
	}
	if w.Release != nil {
		if err := s.releaseDelayedRun(ask, w.Release); err != nil {
			return err
		}
	}
	c.AppliedWrite = w
	return nil
}

// lockAndReadStartKey locks and reads the row, and reads the runs about which Plan decides.
func (s *database) lockAndReadStartKey(ask roundTripFunc, c *store.StartKeyChangeRequest) (state store.StartKeySnapshot, err error) {
	lock := s.statements.startKeyLock
	if c.SkipLocked {
		lock = s.statements.startKeyTryLock
	}
	err = ask("lock a key", func(batch *pgx.Batch) {
		batch.Queue(lock, startKeyArgs(c.Key)...)
		if c.Name != "" { // a statement of its own, so it sees what was committed before the lock was taken
			batch.Queue(s.statements.runByName, int2Array{1, func(int) int16 { return store.ShardOfName(c.Name) }}, uuidArray{1, func(int) *uuid.UUID { return nil }},
				textArray{1, func(int) *string { return &c.Name }})
		}
	}, func(res statementResults) error {
		state = store.StartKeySnapshot{}
		err := eachRow(res, func(rows pgx.Rows) error {
			row := &store.StartKeyRow{StartKey: c.Key}
			var after, waiting pgtype.UUID
			err := rows.Scan((*timeValue)(&row.CheckAt), &after, &waiting, &row.State, &row.WaitingInput)
			row.CheckAfterRun, row.WaitingRun = uuid.NullUUID{UUID: after.Bytes, Valid: after.Valid}, uuid.NullUUID{UUID: waiting.Bytes, Valid: waiting.Valid}
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
	state.Runs = make(map[uuid.UUID]store.StartKeyRun, len(runs))
	err = ask("read the runs of a key", func(batch *pgx.Batch) { batch.Queue(s.statements.startKeyRunStates, runIDArgs(runs)...) }, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			var id uuid.UUID
			var r store.StartKeyRun
			err := rows.Scan((*uuidValue)(&id), &r.Name, (*int16)(&r.Status), (*int16)(&r.Control), (*epochValue)(&r.Epoch), &r.Queue, &r.Priority, &r.Version)
			state.Runs[id] = r
			return err
		})
	})
	return state, err
}

// writeOrDeleteStartKeyRow writes or deletes the row, which this transaction has locked if it was found.
func (s *database) writeOrDeleteStartKeyRow(ask roundTripFunc, c *store.StartKeyChangeRequest, w *store.StartKeyWrite, found bool) error {
	args, statement := startKeyArgs(c.Key), s.statements.startKeyDelete
	if !w.Delete {
		row := &w.Row
		if statement = s.statements.startKeyInsert; found {
			statement = s.statements.startKeyUpdate
		}
		var shard any
		if row.CheckAfterRun.Valid {
			shard = store.ShardOf(row.CheckAfterRun.UUID)
		}
		args = append(args, pgTime(row.CheckAt), shard, pgtype.UUID{Bytes: row.CheckAfterRun.UUID, Valid: row.CheckAfterRun.Valid},
			pgtype.UUID{Bytes: row.WaitingRun.UUID, Valid: row.WaitingRun.Valid}, row.State, row.WaitingInput)
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
		return errStartKeyCreated
	}
	return fmt.Errorf("postgres: key %q of workflow %q: %w: its row is gone although it is locked", c.Key.Key, c.Key.Workflow, store.ErrUnavailable)
}

// insertRunWithStartKey inserts the run of a start with a start key, and sets its outcome.
func (s *database) insertRunWithStartKey(ask roundTripFunc, item *store.StartWrite) error {
	w := &sortedBatch{newRowsMayExist: true}
	w.addBatch(&store.Batch{Starts: []*store.StartWrite{item}})
	w.notifyWorkers = w.notifyWorkers && !item.Run.Unreleased
	var took changedRowCounts
	err := ask("start", func(batch *pgx.Batch) { s.addStatements(batch, w) }, func(res statementResults) error { return w.readRowCounts(res, &took) })
	if err != nil {
		return err
	}
	if took.starts == 1 {
		item.Outcome, item.ExistingRun, item.RunState = store.Written, nil, store.RunState{}
		return nil
	}
	return fmt.Errorf("postgres: start %q: %w: another start has just taken the ID", shortenName(item.Run.Name), store.ErrUnavailable)
}

// releaseDelayedRun makes a run claimable.
func (s *database) releaseDelayedRun(ask roundTripFunc, r *store.DelayedRunRelease) error {
	n := 0
	err := ask("release a run", func(batch *pgx.Batch) {
		batch.Queue(s.statements.startKeyReleaseRun, store.ShardOf(r.RunUUID), pgUUID(r.RunUUID), int64(r.Lane), pgTime(r.WakeAt), pgTime(r.Deadline), r.Input, r.Queue, r.Priority,
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

// startKeyArgs returns the first parameters of the statements about one key.
func startKeyArgs(k store.StartKey) []any {
	return append(make([]any, 0, 10), k.Shard(), k.Workflow, k.Key, int16(k.Kind))
}
