package durabletest

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/sqlite"
)

// databaseTemplate creates empty SQLite databases. It keeps the file of the first one and copies it, because copying is
// faster than creating the tables.
type databaseTemplate struct{ file []byte }

// openCopy creates a database in a temporary folder. The returned function closes and removes it.
func (m *databaseTemplate) openCopy() (s store.Store, remove func() error, err error) {
	dir, err := os.MkdirTemp("", "durabletest")
	if err != nil {
		return nil, nil, err
	}
	path := filepath.Join(dir, "durable.db")
	if m.file == nil {
		err = m.createEmpty(path)
	} else {
		err = os.WriteFile(path, m.file, 0o600)
	}
	if err == nil {
		s, err = sqlite.Open(path, sqlite.Synchronous(sqlite.Normal))
	}
	if err != nil {
		return nil, nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, func() error { return errors.Join(s.Close(), os.RemoveAll(dir)) }, nil
}

// createEmpty creates an empty database at path and keeps the content of its file.
func (m *databaseTemplate) createEmpty(path string) error {
	s, err := sqlite.Open(path, sqlite.Synchronous(sqlite.Normal))
	if err != nil {
		return err
	}
	if err := s.Close(); err != nil {
		return err
	}
	m.file, err = os.ReadFile(path)
	return err
}
