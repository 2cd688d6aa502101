package sqlite

import (
	"context"
	"database/sql/driver"
	"sync"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// OwnedRunChanges implements store.Store. It reads on a reading connection first, so that it takes the write lock only if a run
// was woken.
func (s *database) OwnedRunChanges(ctx context.Context, worker uuid.UUID, held []store.Lease) (store.OwnedRunChanges, error) {
	if len(held) == 0 {
		return store.OwnedRunChanges{}, nil
	}
	known := sync.OnceValue(func() map[uuid.UUID]store.Lease { // usually nothing has changed, and it is not needed
		leases := make(map[uuid.UUID]store.Lease, len(held))
		for _, l := range held {
			leases[l.Run] = l
		}
		return leases
	})
	var changes store.OwnedRunChanges
	var woken []store.Lease
	err := s.withReadConn(ctx, "read the changes of owned runs", func(x executor) error {
		if err := addTerminatedRuns(x, worker, held, known, &changes); err != nil {
			return err
		}
		return x.query(qOwnedRunChanges, func(v []driver.Value) error {
			c := columnReader{values: v}
			a := store.PendingControl{Run: c.uuid(), Epoch: store.DecodeEpoch(c.int()), Control: store.ControlBits(c.int())}
			isWoken := c.int() != 0
			// A run whose claim has not returned to the worker yet stays marked as woken.
			if l, ok := known()[a.Run]; !ok || l.Epoch != a.Epoch {
				return c.err
			}
			if a.Control != 0 {
				changes.ControlRequests = append(changes.ControlRequests, a)
			}
			if isWoken {
				woken = append(woken, known()[a.Run])
			}
			return c.err
		}, bindUUID(worker))
	})
	if err != nil || len(woken) == 0 {
		return changes, err
	}
	err = s.withWriteTx(ctx, "read the changes of owned runs", func(x executor) error {
		for i, l := range woken {
			if i%itemsPerContextCheck == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			err := x.query(qRunWokenClear, func(v []driver.Value) error { // no row: the run's ownership ended meanwhile
				c := columnReader{values: v}
				changes.Woken = append(changes.Woken, l.Run)
				if deadline := c.time(); !deadline.Equal(l.RunDeadline) {
					l.RunDeadline = deadline
					changes.ChangedDeadlines = append(changes.ChangedDeadlines, l)
				}
				return c.err
			}, bindShard(l.Run), bindUUID(l.Run), l.Epoch.EncodeInt64(), bindUUID(worker))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.OwnedRunChanges{}, err
	}
	return changes, nil
}

// addTerminatedRuns adds the held runs that were terminated. Each call reports them again, until the worker no longer passes them as
// held.
func addTerminatedRuns(x executor, worker uuid.UUID, held []store.Lease, known func() map[uuid.UUID]store.Lease, changes *store.OwnedRunChanges) error {
	ended := make(map[uuid.UUID]bool)
	err := x.query(qTerminationNoticesRead, func(v []driver.Value) error {
		c := columnReader{values: v}
		run, epoch := c.uuid(), store.DecodeEpoch(c.int())
		if l, ok := known()[run]; ok && l.Epoch == epoch {
			ended[run] = true
		}
		return c.err
	}, bindUUID(worker))
	if err != nil || len(ended) == 0 {
		return err
	}
	for _, l := range held {
		if ended[l.Run] {
			changes.EndedLeases = append(changes.EndedLeases, l)
		}
	}
	return nil
}
