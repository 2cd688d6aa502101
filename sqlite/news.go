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
	epochs := make(map[uuid.UUID]store.Epoch, len(held))
	for _, l := range held {
		epochs[l.Run] = l.Epoch
	}
	var news store.News
	var woken []store.Lease
	err := s.read(ctx, "news", func(x session) error {
		return x.each(qNews, func(v []driver.Value) error {
			c := columns{values: v}
			a := store.Asked{Run: c.id(), Epoch: store.EpochOf(c.int()), Control: store.Bits(c.int())}
			stirred := c.int() != 0
			// A run that its worker does not know of yet, being claimed just now, keeps its mark.
			if epoch, ok := epochs[a.Run]; !ok || epoch != a.Epoch {
				return c.err
			}
			if a.Control != 0 {
				news.Asked = append(news.Asked, a)
			}
			if stirred {
				woken = append(woken, store.Lease{Run: a.Run, Epoch: a.Epoch})
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
			n, err := x.exec(qNewsClear, shardOf(l.Run), key(l.Run), l.Epoch.Number(), key(worker))
			if err != nil {
				return err
			}
			if n == 1 { // else it left meanwhile
				news.Woken = append(news.Woken, l.Run)
			}
		}
		return nil
	})
	if err != nil {
		return store.News{}, err
	}
	return news, nil
}
