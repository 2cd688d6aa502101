package sqlite

import (
	"path/filepath"
	"testing"

	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/storetest"
)

func TestConformance(t *testing.T) {
	t.Parallel()
	storetest.Run(t, func(t *testing.T) store.Store { return openBeside(t, filepath.Join(t.TempDir(), "durable.db")) })
}

func TestConformancePair(t *testing.T) {
	t.Parallel()
	storetest.RunPair(t, func(t *testing.T) (a, b store.Store) {
		path := filepath.Join(t.TempDir(), "durable.db")
		return openBeside(t, path), openBeside(t, path)
	})
}
