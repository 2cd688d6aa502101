package sqlite

import (
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

// Everything at once, on two stores of one file: each run is claimed once, and each
// step is written once.
func TestConcurrentCalls(t *testing.T) {
	first := openTest(t)
	stores := []*database{first, openAt(t, first.path)}
	const runs, workers = 200, 8
	batch := &store.Batch{}
	for range runs {
		batch.Starts = append(batch.Starts, newPending(""))
	}
	commit(t, first, batch)
	var mu sync.Mutex
	claimed := map[uuid.UUID]int{}
	refused := 0
	var all sync.WaitGroup
	for i := range workers {
		s := stores[i%len(stores)]
		all.Go(func() {
			q := query1(now())
			q.Limit = 7
			for {
				claims, err := s.Claim(t.Context(), q)
				if err != nil {
					t.Error(err)
					return
				}
				if len(claims.Runs) == 0 {
					return
				}
				beat := store.Heartbeat{Worker: store.Worker{ID: q.Worker}, LeaseUntil: q.LeaseUntil}
				batch := &store.Batch{}
				for _, c := range claims.Runs {
					batch.Steps = append(batch.Steps, newStep(c.Run.UUID, "own"), newStep(c.Run.UUID, "second"))
					beat.Leases = append(beat.Leases, store.Lease{Run: c.Run.UUID, Epoch: c.Run.Epoch})
				}
				if err := s.Commit(t.Context(), batch); err != nil {
					t.Error(err)
				}
				if pulse, err := s.RenewLeases(t.Context(), beat); err != nil || len(pulse.LostRuns) > 0 {
					t.Error(pulse, err)
				}
				mu.Lock()
				for _, c := range claims.Runs {
					claimed[c.Run.UUID]++
				}
				for _, w := range batch.Steps {
					if w.Outcome != store.Written {
						refused++
					}
				}
				mu.Unlock()
			}
		})
	}
	all.Wait()
	if len(claimed) != runs || refused != 0 {
		t.Fatal(len(claimed), refused)
	}
	for id, n := range claimed {
		if n != 1 {
			t.Error(id, "was claimed", n, "times")
		}
	}
}
