package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetAwaitedChildEnds implements store.Store.
func (s *database) SetAwaitedChildEnds(ctx context.Context, w *store.SetAwaitedChildEndsRequest) error {
	w.Outcome, w.CountedEnds = store.Fenced, 0
	return s.runBatch(ctx, s.enginePool, "await ends of children", func(batch *pgx.Batch) {
		batch.Queue(s.statements.childEndsSetAwaitedCount, store.ShardOf(w.Run), pgUUID(w.Run), w.Epoch.EncodeInt64(), w.Name, int32(w.EndsToAwait))
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			w.Outcome = store.Written
			return rows.Scan(&w.CountedEnds)
		})
	})
}
