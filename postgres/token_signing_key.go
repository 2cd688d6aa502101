package postgres

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// tokenKeySize is the size of a key in bytes.
const tokenKeySize = 32

// TokenSigningKey implements store.Store.
func (s *database) TokenSigningKey(ctx context.Context) ([]byte, error) {
	const what = "read the key of tokens"
	key, err := s.readTokenSigningKey(ctx, what)
	if err == nil && key == nil {
		fresh := make([]byte, tokenKeySize)
		_, _ = rand.Read(fresh) // it never fails
		err = s.runBatch(ctx, s.enginePool, "keep a key for tokens", func(batch *pgx.Batch) { batch.Queue(s.statements.tokenSigningKeyInsert, fresh) },
			func(res statementResults) error { return readRowCount(res, 1, nil) })
		if err == nil {
			key, err = s.readTokenSigningKey(ctx, what)
		}
	}
	if hasSQLState(err, "42501") {
		return nil, fmt.Errorf("%w: grant the role what schema.Grants lists for a worker or an operator", err)
	}
	return key, err
}

// readTokenSigningKey reads the key. It returns nil if there is none.
func (s *database) readTokenSigningKey(ctx context.Context, what string) (key []byte, err error) {
	err = s.runBatch(ctx, s.enginePool, what, func(batch *pgx.Batch) { batch.Queue(s.statements.tokenSigningKey) },
		func(res statementResults) error {
			return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&key) })
		})
	return key, err
}
