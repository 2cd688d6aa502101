package postgres

import (
	"context"

	"github.com/jackc/pgx/v5"
)

// roundTripFunc sends statements in one round trip: in a transaction of their own, or in the caller's.
type roundTripFunc func(what string, fill func(*pgx.Batch), read func(statementResults) error) error

// roundTripFuncOnEnginePool returns a roundTripFunc that uses a new transaction, whose snapshot sees the writes that caused a
// conflict.
func (s *database) roundTripFuncOnEnginePool(ctx context.Context) roundTripFunc {
	return func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		return s.runBatch(ctx, s.enginePool, what, fill, read)
	}
}

// roundTripFuncInTx returns a roundTripFunc that uses a given transaction. Each call is one round trip.
func (s *database) roundTripFuncInTx(ctx context.Context, tx pgx.Tx) roundTripFunc {
	return func(what string, fill func(*pgx.Batch), read func(statementResults) error) error {
		var batch pgx.Batch
		fill(&batch)
		return s.wrapError(ctx, what, readAndClose(tx.SendBatch(ctx, &batch), read))
	}
}
