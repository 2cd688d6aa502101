package sqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// DueFolds implements store.FoldStore.
func (s *database) DueFolds(ctx context.Context, now time.Time, limit int) (due []store.FoldKey, next time.Time, err error) {
	err = s.withReadConn(ctx, "look for due keys", func(x executor) error {
		due, next = nil, time.Time{}
		err := x.query(qStartFoldKeysDue, func(v []driver.Value) error {
			c := columnReader{values: v}
			k, at := c.foldKey(), c.time()
			if !at.After(now) {
				due = append(due, k)
			} else if next.IsZero() {
				next = at
			}
			return c.err
		}, int64(limit))
		if err != nil {
			return err
		}
		return x.query(qStartFoldKeysRunEnded, func(v []driver.Value) error {
			c := columnReader{values: v}
			due = append(due, c.foldKey())
			return c.err
		}, int64(limit))
	})
	return due, next, err
}

// FoldOfWaitingRun implements store.FoldStore.
func (s *database) FoldOfWaitingRun(ctx context.Context, run uuid.UUID) (row *store.Fold, err error) {
	err = s.withReadConn(ctx, "read what a run waits for", func(x executor) error {
		row = nil // drops what a failed attempt read
		return x.query(qStartFoldKeyOfWaiting, func(v []driver.Value) error {
			c := columnReader{values: v}
			row = &store.Fold{FoldKey: c.foldKey(), CheckAt: c.time(), AfterRun: c.nullUUID(), WaitingRun: c.nullUUID(), State: slices.Clone(c.bytes())}
			return c.err
		}, bindUUID(run))
	})
	return row, err
}

func (c *columnReader) foldKey() store.FoldKey {
	return store.FoldKey{Workflow: c.text(), Key: c.text(), Kind: store.FoldKind(c.int())}
}

// ChangeFold implements store.FoldStore. The write lock excludes other changes, so there is nothing to skip but a missing
// row.
func (s *database) ChangeFold(ctx context.Context, c *store.FoldChangeRequest) error {
	return s.writeAndNotify(ctx, "change a key", func(x *writeTx) error { return changeFold(x, c) })
}

// foldIn changes a key in the caller's transaction.
func (s *database) foldIn(ctx context.Context, tx *sql.Tx, c *store.FoldChangeRequest) error {
	return s.wrapError("start", changeFold(s.newUserTx(ctx, tx), c))
}

func changeFold(x *writeTx, c *store.FoldChangeRequest) error {
	c.AppliedWrite = nil
	state, err := readFold(x, c)
	if err != nil || state.Row == nil && c.SkipLocked {
		return err
	}
	w := c.Plan(state)
	if w == nil {
		return nil
	}
	key := []driver.Value{c.Key.Workflow, c.Key.Key, int64(c.Key.Kind)}
	if w.Delete {
		_, err = x.exec(qStartFoldKeyDelete, key...)
	} else {
		_, err = x.exec(qStartFoldKeyUpsert, append(key, bindTime(w.Row.CheckAt), bindNullUUID(w.Row.AfterRun), bindNullUUID(w.Row.WaitingRun), bindBytes(w.Row.State), bindBytes(w.Row.Input))...)
	}
	if err != nil {
		return err
	}
	if w.Start != nil {
		if err := writeStart(x, w.Start); err != nil {
			return err
		}
		if w.Start.Outcome != store.Written {
			return fmt.Errorf("start %q: %w: another start has just taken the ID", w.Start.Run.Name, store.ErrUnavailable)
		}
	}
	if r := w.Release; r != nil {
		n, err := x.exec(qStartFoldRunRelease, int64(r.Lane), bindTime(r.WakeAt), bindTime(r.Deadline), bindBytes(r.Input), bindShard(r.RunUUID), bindUUID(r.RunUUID),
			r.Queue, int64(r.Priority), r.Timeout.Microseconds())
		if err != nil || n != 1 {
			return checkOneRow("releasing run", r.RunUUID, n, err)
		}
		if _, err := x.exec(qStartFoldReleasedPlaceUpdate, bindTime(r.StartBy), int64(r.Lane), bindShard(r.RunUUID), bindUUID(r.RunUUID)); err != nil {
			return err
		}
		x.addHint(store.HintClaim)
	}
	c.AppliedWrite = w
	return nil
}

// readFold reads the row and what Plan decides about.
func readFold(x executor, c *store.FoldChangeRequest) (state store.FoldSnapshot, err error) {
	err = x.query(qStartFoldKeyRead, func(v []driver.Value) error {
		at := columnReader{values: v}
		state.Row = &store.Fold{
			FoldKey: c.Key, CheckAt: at.time(), AfterRun: at.nullUUID(), WaitingRun: at.nullUUID(), State: slices.Clone(at.bytes()), Input: slices.Clone(at.bytes()),
		}
		return at.err
	}, c.Key.Workflow, c.Key.Key, int64(c.Key.Kind))
	if err != nil {
		return state, err
	}
	if c.Name != "" {
		row, found, err := runByName(x, c.Name, uuid.NullUUID{}, store.ShardOfName(c.Name), store.AllPayloads)
		if err != nil {
			return state, err
		}
		if found {
			state.RunWithName = &row.Run
		}
	}
	if state.Row == nil || c.RunsToRead == nil {
		return state, nil
	}
	state.Runs = make(map[uuid.UUID]store.FoldRun)
	for _, id := range c.RunsToRead(state.Row) {
		err := x.query(qStartFoldRunState, func(v []driver.Value) error {
			at := columnReader{values: v}
			state.Runs[id] = store.FoldRun{
				Name: at.text(), Status: store.Status(at.int()), Control: store.ControlBits(at.int()), Epoch: store.EpochFromNumber(at.int()),
				Queue: at.text(), Priority: int16(at.int()), Version: at.text(),
			}
			return at.err
		}, bindShard(id), bindUUID(id))
		if err != nil {
			return state, err
		}
	}
	return state, nil
}
