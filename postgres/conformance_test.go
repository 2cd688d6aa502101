package postgres

import (
	"hash/fnv"
	"io"
	"path"
	"slices"
	"testing"

	"github.com/seed8ec063be/durable/internal/pgtest"
	"github.com/seed8ec063be/durable/internal/store"
	"github.com/seed8ec063be/durable/internal/store/storetest"
	"github.com/seed8ec063be/durable/internal/testsize"
)

// places bounds the databases that the suite has open at the same time, however many tests `go test` runs
// in parallel: a store opens up to eleven connections.
var places = make(chan struct{}, 8)

// reserve reserves a place for one test until all its other cleanups are done.
func reserve(t *testing.T) {
	t.Helper()
	select {
	case places <- struct{}{}:
		t.Cleanup(func() { <-places })
	case <-t.Context().Done():
		t.Fatal(t.Context().Err())
	}
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
	l := newLender(t)
	if !testsize.IsFull() {
		storetest.Run(t, func(t *testing.T) store.Store { return l.lend(t, modeOf(t), 1)[0] })
		return
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			storetest.Run(t, func(t *testing.T) store.Store { return l.lend(t, mode, 1)[0] })
		})
	}
}

// A single start, step or end is written by a statement of its own. This test uses those for many items instead.
func TestConformanceOfMany(t *testing.T) {
	l := newLender(t)
	storetest.Run(t, func(t *testing.T) store.Store {
		if h := fnv.New32a(); !testsize.IsFull() {
			if _, _ = io.WriteString(h, t.Name()); h.Sum32()%10 != 0 {
				t.Skipf("one test of ten, unless %s=all", testsize.Variable)
			}
		}
		s := l.lend(t, "cache_statement", 1)[0]
		s.statements.stepInsertOne = ""
		return s
	})
}

// needFacts are the cases of presence locks and notifications.
var needFacts = []string{
	"news_crosses_over", "a_dead_worker's_runs_are_hinted_at", "one_handle_attends_for_two_workers", "the_living_are_not_dead",
	"attending_ends_with_its_context", "a_hint_crosses_over",
}

func TestConformancePair(t *testing.T) {
	l := newLender(t)
	if !testsize.IsFull() {
		storetest.RunPair(t, func(t *testing.T) (a, b store.Store) {
			if slices.Contains(needFacts, path.Base(t.Name())) {
				pgtest.NeedLocalFacts(t)
			}
			lent := l.lend(t, modeOf(t), 2)
			return lent[0], lent[1]
		})
		return
	}
	for _, mode := range modes {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			storetest.RunPair(t, func(t *testing.T) (a, b store.Store) {
				if slices.Contains(needFacts, path.Base(t.Name())) {
					pgtest.NeedLocalFacts(t)
				}
				lent := l.lend(t, mode, 2)
				return lent[0], lent[1]
			})
		})
	}
}
