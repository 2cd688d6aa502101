package postgres

import (
	"hash/fnv"
	"io"
	"testing"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/storetest"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// places bounds the databases that the suite has open at the same time, however many tests `go test` runs
// in parallel: a store opens up to eleven connections.
var places = make(chan struct{}, 8)

// lend reserves a place for one test until all its other cleanups are done.
func lend(t *testing.T) {
	t.Helper()
	select {
	case places <- struct{}{}:
		t.Cleanup(func() { <-places })
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
}

// lendSchema returns the name of a schema that the suite may have used before. What the suite does goes through a store,
// so it changes rows only.
func lendSchema(t *testing.T) string {
	t.Helper()
	return pgtest.LendSchema(t, "migration", "secret")
}

// modeOf chooses one of pgx's modes by the test's name, always the same one.
func modeOf(t *testing.T) string {
	h := fnv.New32a()
	_, _ = io.WriteString(h, t.Name())
	return modes[int(h.Sum32()%uint32(len(modes)))]
}

// The suite has the rights of a worker and no others. With all tests (see testsize), it is executed in
// each of pgx's modes; otherwise each of its tests is executed in one of them.
func TestConformance(t *testing.T) {
	if !testsize.All() {
		storetest.Run(t, func(t *testing.T) store.Store {
			lend(t)
			return openAsWorker(t, modeOf(t), lendSchema(t))
		})
		return
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store {
				lend(t)
				return openAsWorker(t, mode, lendSchema(t))
			})
		})
	}
}

// A single step is written by a statement of its own. This test uses the one for many steps instead.
func TestConformanceOfMany(t *testing.T) {
	storetest.Run(t, func(t *testing.T) store.Store {
		if h := fnv.New32a(); !testsize.All() {
			if _, _ = io.WriteString(h, t.Name()); h.Sum32()%10 != 0 {
				t.Skipf("one test of ten, unless %s=all", testsize.Variable)
			}
		}
		lend(t)
		s := openAsWorker(t, "cache_statement", lendSchema(t))
		s.sql.stepInsertOne = ""
		return s
	})
}

func TestConformancePair(t *testing.T) {
	if !testsize.All() {
		storetest.RunPair(t, func(t *testing.T) (a, b store.Store) {
			lend(t)
			schema, mode := lendSchema(t), modeOf(t)
			return openAsWorker(t, mode, schema), openAsWorker(t, mode, schema)
		})
		return
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			storetest.RunPair(t, func(t *testing.T) (a, b store.Store) {
				lend(t)
				schema := lendSchema(t)
				return openAsWorker(t, mode, schema), openAsWorker(t, mode, schema)
			})
		})
	}
}
