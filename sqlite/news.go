package sqlite

import (
	"context"
	"database/sql/driver"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// News implements store.Store. It looks on a reader first, so that only a run that was
// woken takes the write lock.
func (s *Store) News(ctx context.Context, worker uuid.UUID, held []store.Lease) (store.News, error) {
	if len(held) == 0 {
		return store.News{}, nil
	}
	known := make(map[uuid.UUID]store.Lease, len(held))
	for _, l := range held {
		known[l.Run] = l
	}
	var news store.News
	var woken []store.Lease
	err := s.read(ctx, "news", func(x session) error {
		if err := newsEnded(ctx, x, worker, held, &news); err != nil {
			return err
		}
		return x.each(qNews, func(v []driver.Value) error {
			c := columns{values: v}
			a := store.Asked{Run: c.id(), Epoch: store.EpochOf(c.int()), Control: store.Bits(c.int())}
			stirred := c.int() != 0
			// A run that its worker does not know of yet, being claimed just now, keeps its mark.
			if l, ok := known[a.Run]; !ok || l.Epoch != a.Epoch {
				return c.err
			}
			if a.Control != 0 {
				news.Asked = append(news.Asked, a)
			}
			if stirred {
				woken = append(woken, known[a.Run])
			}
			return c.err
		}, key(worker))
	})
	if err != nil || len(woken) == 0 {
		return news, err
	}
	err = s.write(ctx, "news", func(x session) error {
		for i, l := range woken {
			if i%checkEvery == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			err := x.each(qNewsClear, func(v []driver.Value) error { // no row: it left meanwhile
				c := columns{values: v}
				news.Woken = append(news.Woken, l.Run)
				if deadline := c.time(); !deadline.Equal(l.Deadline) {
					l.Deadline = deadline
					news.Deadlines = append(news.Deadlines, l)
				}
				return c.err
			}, shardOf(l.Run), key(l.Run), l.Epoch.Number(), key(worker))
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return store.News{}, err
	}
	return news, nil
}

// newsEnded finds the runs that were ended under their owner. It looks at each only if the
// worker owns fewer than it holds.
func newsEnded(ctx context.Context, x session, worker uuid.UUID, held []store.Lease, news *store.News) error {
	owned := 0
	err := x.each(qNewsHeld, func(v []driver.Value) error {
		c := columns{values: v}
		owned = int(c.int())
		return c.err
	}, key(worker))
	if err != nil || owned >= len(held) {
		return err
	}
	for i, l := range held {
		if i%checkEvery == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		err := x.each(qNewsEnded, func([]driver.Value) error {
			news.Ended = append(news.Ended, l)
			return nil
		}, shardOf(l.Run), key(l.Run), l.Epoch.Number())
		if err != nil {
			return err
		}
	}
	return nil
}
