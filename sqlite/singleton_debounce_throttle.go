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

// DueStartKeys implements store.StartKeyStore.
func (s *database) DueStartKeys(ctx context.Context, now time.Time, limit int) (due []store.StartKey, next time.Time, err error) {
	err = s.withReadConn(ctx, "look for due keys", func(x executor) error {
		due, next = nil, time.Time{}
		err := x.query(qStartKeysDue, func(v []driver.Value) error {
			c := columnReader{values: v}
			k, at := c.startKey(), c.time()
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
		return x.query(qStartKeysWithReleasableStart, func(v []driver.Value) error {
			c := columnReader{values: v}
			due = append(due, c.startKey())
			return c.err
		}, int64(limit))
	})
	return due, next, err
}

// StartKeyOfWaitingRun implements store.StartKeyStore.
func (s *database) StartKeyOfWaitingRun(ctx context.Context, run uuid.UUID) (row *store.StartKeyRow, err error) {
	err = s.withReadConn(ctx, "read what a run waits for", func(x executor) error {
		row = nil // discard the rows of a failed try
		return x.query(qStartKeyOfWaitingRun, func(v []driver.Value) error {
			c := columnReader{values: v}
			row = &store.StartKeyRow{
				StartKey: c.startKey(), CheckAt: c.time(), CheckAfterRun: c.nullUUID(), WaitingRun: c.nullUUID(), State: slices.Clone(c.bytes()), WaitingInput: slices.Clone(c.bytes()),
			}
			return c.err
		}, bindUUID(run))
	})
	return row, err
}

func (c *columnReader) startKey() store.StartKey {
	return store.StartKey{Workflow: c.text(), Key: c.text(), Kind: store.StartKeyKind(c.int())}
}

// UpdateStartKeyRow implements store.StartKeyStore. The write lock excludes other changes, so there is nothing to skip but a missing
// row.
func (s *database) UpdateStartKeyRow(ctx context.Context, c *store.StartKeyChangeRequest) error {
	return s.writeAndNotify(ctx, "change a key", func(x *writeTx) error { return updateStartKeyRow(x, c) })
}

// updateStartKeyRowInTx changes a key in the caller's transaction.
func (s *database) updateStartKeyRowInTx(ctx context.Context, tx *sql.Tx, c *store.StartKeyChangeRequest) error {
	return s.wrapError("start", updateStartKeyRow(s.newUserTx(ctx, tx), c))
}

func updateStartKeyRow(x *writeTx, c *store.StartKeyChangeRequest) error {
	c.AppliedWrite = nil
	state, err := readStartKey(x, c)
	if err != nil || state.Row == nil && c.SkipLocked {
		return err
	}
	w := c.Plan(state)
	if w == nil {
		return nil
	}
	key := []driver.Value{c.Key.Workflow, c.Key.Key, int64(c.Key.Kind)}
	if w.Delete {
		_, err = x.exec(qStartKeyDelete, key...)
	} else {
		_, err = x.exec(qStartKeyUpsert, append(key, bindTime(w.Row.CheckAt), bindNullUUID(w.Row.CheckAfterRun), bindNullUUID(w.Row.WaitingRun), bindBytes(w.Row.State), bindBytes(w.Row.WaitingInput))...)
	}
	if err != nil {
		return err
	}
	if w.RunToCreate != nil {
		if err := writeStart(x, w.RunToCreate); err != nil {
			return err
		}
		if w.RunToCreate.Outcome != store.Written {
			return fmt.Errorf("start %q: %w: another start has just taken the ID", w.RunToCreate.Run.Name, store.ErrUnavailable)
		}
	}
	if r := w.Release; r != nil {
		n, err := x.exec(qStartKeyReleaseRun, int64(r.Lane), bindTime(r.WakeAt), bindTime(r.Deadline), bindBytes(r.Input), bindShard(r.RunUUID), bindUUID(r.RunUUID),
			r.Queue, int64(r.Priority), r.Timeout.Microseconds())
		if err != nil || n != 1 {
			return checkOneRow("releasing run", r.RunUUID, n, err)
		}
		if _, err := x.exec(qStartKeyReleasedPlaceUpdate, bindTime(r.StartBy), int64(r.Lane), bindShard(r.RunUUID), bindUUID(r.RunUUID)); err != nil {
			return err
		}
		x.addHint(store.HintClaim)
	}
	c.AppliedWrite = w
	return nil
}

// readStartKey reads the row, and the runs about which Plan decides.
func readStartKey(x executor, c *store.StartKeyChangeRequest) (state store.StartKeySnapshot, err error) {
	err = x.query(qStartKeyRead, func(v []driver.Value) error {
		at := columnReader{values: v}
		state.Row = &store.StartKeyRow{
			StartKey: c.Key, CheckAt: at.time(), CheckAfterRun: at.nullUUID(), WaitingRun: at.nullUUID(), State: slices.Clone(at.bytes()), WaitingInput: slices.Clone(at.bytes()),
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
	state.Runs = make(map[uuid.UUID]store.StartKeyRun)
	for _, id := range c.RunsToRead(state.Row) {
		err := x.query(qStartKeyRunState, func(v []driver.Value) error {
			at := columnReader{values: v}
			state.Runs[id] = store.StartKeyRun{
				Name: at.text(), Status: store.Status(at.int()), Control: store.ControlBits(at.int()), Epoch: store.DecodeEpoch(at.int()),
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
