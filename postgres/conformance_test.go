package postgres

import (
	"testing"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/storetest"
)

// places bounds how many databases the suite has open at once, however many tests go
// test runs in parallel: a store takes up to eleven connections.
var places = make(chan struct{}, 8)

// lend is a place for one test, given back when all else of the test is.
func lend(t *testing.T) {
	t.Helper()
	select {
	case places <- struct{}{}:
		t.Cleanup(func() { <-places })
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// The suite has a worker's rights, and no others.
func TestConformance(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store {
				lend(t)
				return openAsWorker(t, mode, pgtest.Schema(t))
			})
		})
	}
}

// What is written for a single step has a statement of its own: here the one for many does it.
func TestConformanceOfMany(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		lend(t)
		s := openAsWorker(t, "cache_statement", pgtest.Schema(t))
		s.sql.stepInsertOne = s.sql.stepInsert
		return s
	})
}

func TestConformancePair(t *testing.T) {
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			storetest.RunPair(t, func(t *testing.T) (a, b store.Store) {
				lend(t)
				schema := pgtest.Schema(t)
				return openAsWorker(t, mode, schema), openAsWorker(t, mode, schema)
			})
		})
	}
}
