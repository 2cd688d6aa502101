package postgres

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Store keeps runs in one schema of a PostgreSQL database, for durable.New. [Open] and [New] return a Store. A Store is safe for concurrent
// use.
type Store struct {
	storeForEngine
}

// storeForEngine has the methods that the engine calls. They are not for users, so Store does not declare
// them itself.
type storeForEngine interface {
	store.Store
	store.ValueSharer
	store.HeartbeatSharer
}

// Open connects to the database at url, which is a PostgreSQL URL or a key=value string, applies the missing migrations, and returns the
// store. Close the store after the engine's Run has returned.
//
// Open returns
//
//   - an error if the server is older than PostgreSQL 15, or the schema is newer than this code.
//   - an [*UntrustedOwnerError] if a role that is not trusted owns the schema.
//   - an [*AccessError] if the server refuses the password, the role or the database.
//   - durable.ErrInvalidConfig if url is empty or cannot be parsed, an option is invalid, or the encoding of the database is not UTF-8.
//   - durable.ErrUnavailable if no server can be reached at the host and the port.
func Open(ctx context.Context, url string, opts ...Option) (*Store, error) {
	db, err := openDatabase(ctx, url, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// New returns a store of the database to which pool connects, and applies the missing migrations. The store opens a few connections of its
// own with the configuration of the pool. The store uses the given pool for transactional steps only. Close the store first, then the pool.
// New returns the errors of [Open].
func New(pool *pgxpool.Pool, opts ...Option) (*Store, error) {
	db, err := newDatabase(pool, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// Name returns "postgres".
func (s *Store) Name() string { return s.storeForEngine.Name() }

// Close waits for calls in progress, and closes the connections that the store has opened. A second call of Close has no effect.
// Close returns durable.ErrInvalidConfig if s is nil or empty.
func (s *Store) Close() error {
	if s == nil || s.storeForEngine == nil {
		return fmt.Errorf("postgres: close the store: %w: the *Store is nil or empty: close what Open or New returned, once its error was checked", durable.ErrInvalidConfig)
	}
	return s.storeForEngine.Close()
}
