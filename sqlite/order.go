package sqlite

import (
	"context"
	"database/sql/driver"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Order implements store.Store. The write lock is held from the first look on, so no
// child can come meanwhile.
func (s *Store) Control(ctx context.Context, o *store.Order) error {
	return s.change(ctx, "order", func(x *writing) error {
		nodes, paused, err := concerned(ctx, x, o.Runs)
		if err != nil {
			return err
		}
		changes, parents := o.Plan(nodes)
		for i := range changes {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := makeChange(x, o, &changes[i], paused[changes[i].Before.ID]); err != nil {
				return err
			}
		}
		for _, parent := range parents {
			if err := wake(x, parent, o.Now); err != nil {
				return err
			}
		}
		return nil
	})
}

// concerned answers all that is at and beneath the runs, and above them, each once; and
// since when those are paused that are.
func concerned(ctx context.Context, x session, runs []uuid.UUID) (nodes []store.Node, paused map[uuid.UUID]time.Time, err error) {
	paused = make(map[uuid.UUID]time.Time)
	seen := make(map[uuid.UUID]uuid.NullUUID) // and the parent
	look := func(q query, run uuid.UUID) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		return x.each(q, func(v []driver.Value) error {
			c := columns{values: v}
			n := store.Node{
				ID: c.id(), Parent: c.nullID(), Status: store.Status(c.int()), Epoch: store.EpochOf(c.int()), Control: store.ControlBits(c.int()),
				Owner: c.nullID(), Detached: c.int() != 0,
			}
			since := c.time()
			if _, again := seen[n.ID]; again {
				return c.err
			}
			seen[n.ID] = n.Parent
			nodes = append(nodes, n)
			if !since.IsZero() {
				paused[n.ID] = since
			}
			return c.err
		}, shardOf(run), key(run))
	}
	for _, run := range runs {
		if _, beneath := seen[run]; !beneath { // else it is beneath another one
			if err := look(qOrderTree, run); err != nil {
				return nil, nil, err
			}
		}
	}
	for _, run := range runs {
		for above := seen[run]; above.Valid; above = seen[above.UUID] {
			if _, known := seen[above.UUID]; known {
				continue
			}
			if err := look(qOrderParent, above.UUID); err != nil {
				return nil, nil, err
			}
		}
	}
	return nodes, paused, nil
}

// makeChange makes one change of an order, whose run may have been paused since a time.
func makeChange(x *writing, o *store.Order, c *store.Change, since time.Time) error {
	run := c.Before.ID
	if o.ShiftTimers && c.Audit == store.AuditResume && c.Before.Status == store.Paused && since.Before(o.Now) && !since.IsZero() {
		if err := freeze(x, run, since, o.Now); err != nil {
			return err
		}
	}
	n, err := x.exec(
		qOrderChange, micros(o.Now), textOrNull(o.Reason), textOrNull(o.Actor), shardOf(run), key(run),
		int64(c.Before.Status), c.Before.Epoch.Number(), int64(c.Status), int64(c.Control), int64(c.Wake), int64(c.Audit),
		blob(o.Error), int64(c.Before.Control), flag(c.Detached),
	)
	if err != nil || n != 1 {
		return changed("an order for run", run, n, err)
	}
	switch {
	case c.Before.Status == store.Running:
		x.tell(store.HintNotification)
	case c.Status == store.Pending:
		x.tell(store.HintClaim)
	}
	if c.Ends() && c.Before.Status == store.Running { // its owner lost the lease
		if c.Before.Owner.Valid {
			if _, err := x.exec(qTerminatedInsert, key(c.Before.Owner.UUID), key(run), c.Before.Epoch.Number(), micros(o.Now)); err != nil {
				return err
			}
		}
		if err := writeEvent(x, run, store.EventLeaseLost, o.Now); err != nil {
			return err
		}
	}
	if c.Status >= store.Paused && c.Status != c.Before.Status {
		return writeEvent(x, run, store.EventOf(c.Status), o.Now)
	}
	return nil
}

// freeze gives a paused run the time back for which it was paused.
func freeze(x session, run uuid.UUID, since, until time.Time) error {
	if _, err := x.exec(qOrderFreezeRun, micros(until), shardOf(run), key(run)); err != nil {
		return err
	}
	for _, q := range []query{qOrderFreezeSteps, qOrderFreezeStarts} {
		if _, err := x.exec(q, micros(until), micros(since), shardOf(run), key(run)); err != nil {
			return err
		}
	}
	return nil
}
