package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// QuietWorker implements store.Store.
func (s *database) QuietWorker(ctx context.Context, c store.QuietWorkerRequest) (found bool, err error) {
	err = s.readDurably(s.roundTripOnEnginePool(ctx), "change a worker", func(batch *pgx.Batch) {
		batch.Queue(s.statements.workerQuiet, pgUUID(c.Worker), !c.Resume, c.LastChange().Text())
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			found = true
			return rows.Scan(nil)
		})
	})
	return found, err
}
