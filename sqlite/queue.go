package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// insertQueuePlace inserts the place of a new run, and sets the control bit of a run that has a StartBy.
func insertQueuePlace(x executor, w *store.StartWrite) error {
	p := w.Place
	if p == nil {
		return nil
	}
	n, err := x.exec(qQueuePlaceInsert, bindShard(w.Run.UUID), bindUUID(w.Run.UUID), p.Queue, p.Key, int64(p.Weight), int64(p.Priority), bindBool(p.Root), bindTime(p.StartBy))
	if err != nil || n != 1 || w.Run.Control&store.HasStartBy == 0 {
		return checkOneRow("writing the place of run", w.Run.UUID, n, err)
	}
	n, err = x.exec(qStartByDeadlineMarkSet, bindShard(w.Run.UUID), bindUUID(w.Run.UUID))
	return checkOneRow("marking run", w.Run.UUID, n, err)
}

// QueueRows implements store.QueueStore.
func (s *database) QueueRows(ctx context.Context) (all []store.QueueRow, err error) {
	err = s.withReadConn(ctx, "read queues", func(x executor) error {
		all = nil // discard the rows of a failed try
		return x.query(qQueuesWithoutCounts, func(v []driver.Value) error {
			c := columnReader{values: v}
			q := store.Queue{QueueRow: store.QueueRow{Name: c.text()}}
			settings := c.text()
			if q.PausedAt, q.Deleted = c.time(), c.int() != 0; c.err != nil {
				return c.err
			}
			err := q.DecodeSettings(settings, "")
			all = append(all, q.QueueRow)
			return err
		})
	})
	return all, err
}

// ChangeQueue implements store.QueueStore.
func (s *database) ChangeQueue(ctx context.Context, c store.QueueChangeRequest) error {
	// A declaration may change nothing, because a newer version has declared the queue.
	var err error
	if c.Declare {
		_, err = s.execOnQueueRow(ctx, "change a queue", qQueueDeclare, c.Name, c.Settings.EncodeJSON(), c.Version, bindTime(c.Now))
	} else {
		_, err = s.execOnQueueRow(ctx, "change a queue", qQueueSetSettings, c.Name, c.Settings.EncodeJSON(), bindText(c.Actor), bindText(c.Reason), bindTime(c.Now), c.OperatorChange().EncodeJSON())
	}
	return err
}

// PauseQueue implements store.QueueStore.
func (s *database) PauseQueue(ctx context.Context, p store.QueuePauseRequest) (bool, error) {
	if p.Resume {
		return s.execOnQueueRow(ctx, "resume a queue", qQueueResume, p.Name, p.OperatorChange().EncodeJSON())
	}
	return s.execOnQueueRow(ctx, "pause a queue", qQueuePause, p.Name, bindTime(p.Now), bindText(p.Actor), bindText(p.Reason), p.OperatorChange().EncodeJSON())
}

// DeleteQueue implements store.QueueStore.
func (s *database) DeleteQueue(ctx context.Context, c store.DeleteOrResetRequest) (deleted bool, err error) {
	err = s.writeAndNotify(ctx, "delete a queue", func(x *writeTx) error {
		n, err := x.exec(qQueueMarkDeleted, c.Name, c.OperatorChange(store.OperatorDelete).EncodeJSON())
		deleted = n > 0
		x.addHint(store.HintClaim)
		if err == nil && deleted {
			err = writeDeletionEvent(x, store.EventQueueDeleted, &c)
		}
		return err
	})
	return deleted, err
}

// ResetQueueSettings implements store.QueueStore.
func (s *database) ResetQueueSettings(ctx context.Context, c store.DeleteOrResetRequest) (bool, error) {
	return s.execOnQueueRow(ctx, "reset a queue", qQueueResetToDeclared, c.Name, c.OperatorChange(store.OperatorReset).EncodeJSON())
}

// execOnQueueRow executes a statement that changes the row of a queue, and reports whether it has changed a row.
func (s *database) execOnQueueRow(ctx context.Context, what string, q queryID, args ...driver.Value) (changed bool, err error) {
	err = s.writeAndNotify(ctx, what, func(x *writeTx) error {
		n, err := x.exec(q, args...)
		changed = n > 0
		x.addHint(store.HintClaim)
		return err
	})
	return changed, err
}

// Queues implements store.QueueStore.
func (s *database) Queues(ctx context.Context, _ time.Time) (all []store.Queue, err error) {
	err = s.withReadConn(ctx, "read queues", func(x executor) error {
		all = nil // discard the rows of a failed try
		err := x.query(qQueuesWithCounts, func(v []driver.Value) error {
			q, err := scanQueue(v)
			all = append(all, q)
			return err
		})
		if err != nil {
			return err
		}
		for i := range all {
			q := &all[i]
			err := x.query(qQueueBusiestGroupKeys, func(v []driver.Value) error {
				c := columnReader{values: v}
				q.Keys = append(q.Keys, store.QueueKeyUse{
					Key: c.text(), QueueUse: store.QueueUse{Executing: int(c.int()), InProgress: int(c.int()), Waiting: int(c.int()), WaitingForKey: int(c.int())},
				})
				return c.err
			}, q.Name, int64(store.MaxListedQueueKeys))
			if err != nil {
				return err
			}
		}
		return nil
	})
	return all, err
}

func scanQueue(values []driver.Value) (q store.Queue, err error) {
	c := columnReader{values: values}
	q.Name = c.text()
	declared := c.text()
	q.DeclaredVersion, q.DeclaredAt = c.text(), c.time()
	set := c.text()
	q.SetBy, q.SetReason, q.SetAt = c.text(), c.text(), c.time()
	q.PausedAt, q.PausedBy, q.PauseReason = c.time(), c.text(), c.text()
	q.Executing, q.InProgress, q.Waiting, q.WaitingForKey, q.OldestDue, q.RateUsedUntil = int(c.int()), int(c.int()), int(c.int()), int(c.int()), c.time(), c.time()
	change := c.text()
	if c.err != nil {
		return q, c.err
	}
	if q.LastChange, err = store.DecodeOperatorChange(change); err != nil {
		return q, err
	}
	return q, q.DecodeSettings(declared, set)
}

// QueueDepth implements store.QueueStore.
func (s *database) QueueDepth(ctx context.Context, queue string, most int) (n int, err error) {
	err = s.withReadConn(ctx, "read the depth of a queue", func(x executor) (err error) {
		n, err = queryInt(x, qQueueDepth, queue, int64(most))
		return err
	})
	return min(n, most), err
}

// QueuePlaceOfRun implements store.QueueStore.
func (s *database) QueuePlaceOfRun(ctx context.Context, run uuid.UUID) (place *store.QueuedRun, err error) {
	err = s.withReadConn(ctx, "read a place", func(x executor) error {
		place = nil // discard the rows of a failed try
		return x.query(qQueuePlaceOfRun, func(v []driver.Value) error {
			c := columnReader{values: v}
			place = &store.QueuedRun{QueuePlace: store.QueuePlace{
				Run: run, Queue: c.text(), Key: c.text(), Weight: int32(c.int()), Priority: int16(c.int()), State: store.PlaceState(c.int()),
				Root: c.int() != 0, HasBegun: c.int() != 0, Turn: c.int(), ArrivedAt: c.time(), StartBy: c.time(),
			}, Admission: store.AdmissionState(c.int()), RunsAhead: int(c.int())}
			return c.err
		}, bindShard(run), bindUUID(run), int64(store.MaxRunsAhead))
	})
	if place != nil {
		place.RunsAhead = min(place.RunsAhead, store.MaxRunsAhead)
	}
	return place, err
}

// ClearStartByDeadline implements store.QueueStore.
func (s *database) ClearStartByDeadline(ctx context.Context, run uuid.UUID, epoch store.Epoch) (kept bool, err error) {
	err = s.withWriteTx(ctx, "begin a run", func(x executor) error {
		n, err := x.exec(qStartByDeadlineMarkClear, bindShard(run), bindUUID(run), epoch.EncodeInt64())
		if kept = n == 1; err != nil || !kept {
			return err
		}
		if n, err = x.exec(qQueuePlaceKeepGroupKey, bindShard(run), bindUUID(run)); err != nil || n == 1 {
			return err
		}
		_, err = x.exec(qQueuePlaceDeleteUnneeded, bindShard(run), bindUUID(run), int64(store.UnreleasedLane))
		return err
	})
	return kept, err
}
