package sqlite

import (
	"database/sql"
	"fmt"

	"github.com/seed8ec063be/durable"
	"github.com/seed8ec063be/durable/internal/store"
)

// Store keeps runs in an SQLite file, for durable.New. Create a Store with [Open]. A Store is safe for concurrent use.
type Store struct {
	storeForEngine
}

// storeForEngine has the methods that the engine calls. They are not for users, so they are no methods of Store's own.
type storeForEngine interface {
	store.Store
	store.SerialCommitter
	store.ValueSharer
	Writer() *sql.DB
}

// Open opens the file at path and applies missing migrations. If the file does not exist, Open creates it; its folder must exist. Open uses
// the path as it is: no character in the path is special. Open refuses a path that begins with postgres://, postgresql:// or file:. Close
// the store after the engine's Run has returned.
//
// Open returns an [*OpenError] if the file cannot be used, and durable.ErrSchema if its schema is newer than this code.
func Open(path string, opts ...Option) (*Store, error) {
	db, err := openDatabase(path, opts...)
	if err != nil {
		return nil, err
	}
	return &Store{db}, nil
}

// Name returns "sqlite".
func (s *Store) Name() string { return s.storeForEngine.Name() }

// Close closes the file. Calls that are under way when Close is called finish; later calls return durable.ErrClosed. A second call of Close
// has no effect. Close returns durable.ErrInvalidConfig if s is nil or empty.
func (s *Store) Close() error {
	if s == nil || s.storeForEngine == nil {
		return fmt.Errorf("sqlite: close the store: %w: the *Store is nil or empty: close what Open returned, once its error was checked", durable.ErrInvalidConfig)
	}
	return s.storeForEngine.Close()
}

// Writer returns the database handle with the single connection that writes to the file, for your own transactions. A transaction that
// begins on the Writer is IMMEDIATE, and excludes every other write of this store until it ends. Transactions and single statements on the
// Writer wait at most [BusyTimeout] for other processes that write.
func (s *Store) Writer() *sql.DB { return s.storeForEngine.Writer() }
