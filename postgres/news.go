package postgres

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// News implements store.Store.
func (s *Store) News(ctx context.Context, worker uuid.UUID, held []store.Lease) (store.News, error) {
	var news store.News
	if len(held) == 0 {
		return news, nil
	}
	err := s.once(ctx, s.engine, "look for news", func(batch *pgx.Batch) {
		batch.Queue(s.sql.news, leaseColumns(held, worker)...)
	}, func(res results) error {
		return each(res, func(rows pgx.Rows) error {
			var asked store.Asked
			var woken bool
			if err := rows.Scan((*uuidValue)(&asked.Run), (*epochValue)(&asked.Epoch), (*int16)(&asked.Control), &woken); err != nil {
				return err
			}
			if asked.Control != 0 {
				news.Asked = append(news.Asked, asked)
			}
			if woken {
				news.Woken = append(news.Woken, asked.Run)
			}
			return nil
		})
	})
	if err != nil {
		return store.News{}, err
	}
	return news, nil
}
