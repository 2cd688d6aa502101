package sqlite

import (
	"context"
	"crypto/rand"
	"database/sql/driver"
)

// tokenKeySize is the size of the key in bytes.
const tokenKeySize = 32

// TokenSigningKey implements store.Store.
func (s *database) TokenSigningKey(ctx context.Context) (key []byte, err error) {
	const what = "read the key of tokens"
	read := func(x executor) error {
		return x.query(qTokenSigningKey, func(v []driver.Value) error {
			c := columnReader{values: v}
			key = c.bytes()
			return c.err
		})
	}
	if err = s.withReadConn(ctx, what, read); err != nil || key != nil {
		return key, err
	}
	fresh := make([]byte, tokenKeySize)
	_, _ = rand.Read(fresh) // crypto/rand.Read never fails
	err = s.withWriteTx(ctx, what, func(x executor) error {
		if _, err := x.exec(qTokenSigningKeyInsert, fresh); err != nil {
			return err
		}
		return read(x) // another process may have been faster
	})
	return key, err
}
