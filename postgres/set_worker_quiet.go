package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

// SetWorkerQuiet implements store.Store.
func (s *database) SetWorkerQuiet(ctx context.Context, c store.SetWorkerQuietRequest) (found bool, err error) {
	err = s.runAndAwaitStandbys(s.roundTripFuncOnEnginePool(ctx), "change a worker", func(batch *pgx.Batch) {
		batch.Queue(s.statements.workerSetQuiet, pgUUID(c.Worker), !c.Resume, c.OperatorChange().EncodeJSON())
	}, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error {
			found = true
			return rows.Scan(nil)
		})
	})
	return found, err
}
