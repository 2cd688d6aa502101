package durabletest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// observedStore wraps the store of one engine. It observes whether the engine calls the database and when the next run
// is due, and it fails all calls once the process has crashed. Methods that it does not define go straight to the
// store.
type observedStore struct {
	store.Store
	process *simulatedProcess // nil: the process never dies

	activeCalls atomic.Int64  // calls that have not returned
	writeCalls  atomic.Uint64 // calls that may have changed the database
	holdsInARow atomic.Int64  // holds that do not count as crashes, since the last other commit

	mu               sync.Mutex
	latestClaimBegun uint64 // number of the latest claim that has begun
	latestClaimEnded uint64 // number of the latest claim that has ended
	nextDue          time.Time
	firstClaim       chan struct{} // closed when the first claim begins
	scheduleQueries  queryProgress
	startKeyQueries  queryProgress // the same for keys of starts with a start key
}

func newObservedStore(s store.Store, f *simulatedProcess) *observedStore {
	return &observedStore{Store: s, process: f, firstClaim: make(chan struct{})}
}

// WrappedStore implements engine.HookedStore.
func (s *observedStore) WrappedStore() store.Store { return s.Store }

// callUnlessDead executes one call of the store, unless the process has crashed.
func (s *observedStore) callUnlessDead(do func() error) error {
	s.activeCalls.Add(1)
	defer s.activeCalls.Add(-1)
	if s.process.isDead() {
		return errProcessCrashed
	}
	return do()
}

// executeWrite does what callUnlessDead does, for a durable write. The process may crash at such a write.
func (s *observedStore) executeWrite(what string, do func() error) error {
	return s.callUnlessDead(func() error {
		defer s.writeCalls.Add(1)
		return s.process.executeWrite(what, do)
	})
}

// Commit implements store.Store.
func (s *observedStore) Commit(ctx context.Context, b *store.Batch) error {
	return s.executeWrite(describeBatch(b), func() error {
		err := s.Store.Commit(ctx, b)
		if err == nil {
			s.process.noteFinishedSteps(b)
			s.countConsecutiveHolds(b)
		}
		return err
	})
}

// countConsecutiveHolds counts the commits in a row that do nothing but hold runs because of a cause outside of the run, such as a queue without
// settings. The engine tries such a run again for ever, so without this count a test that waits for the run would never end.
func (s *observedStore) countConsecutiveHolds(b *store.Batch) {
	if len(b.OwnershipEnds) < b.Len() || slices.ContainsFunc(b.OwnershipEnds, func(w *store.OwnershipEnd) bool { return !w.HoldsRun || !w.NotCountedAsCrash }) {
		s.holdsInARow.Store(0)
		return
	}
	s.holdsInARow.Add(1)
}

// SetTags implements store.Store.
func (s *observedStore) SetTags(ctx context.Context, run store.UUID, tags []store.Tag, epoch store.Epoch, by store.ActorAndReason) (found bool, err error) {
	err = s.executeWrite("tags", func() error {
		found, err = s.Store.SetTags(ctx, run, tags, epoch, by)
		return err
	})
	return found, err
}

// ControlRuns implements store.Store.
func (s *observedStore) ControlRuns(ctx context.Context, o *store.ControlRequest) error {
	return s.executeWrite("a pause, resume or cancel", func() error { return s.Store.ControlRuns(ctx, o) })
}

// FenceRun implements store.RepairStore.
func (s *observedStore) FenceRun(ctx context.Context, f *store.FenceRequest) error {
	return s.executeWrite("the fence of a repair", func() error { return s.Store.FenceRun(ctx, f) })
}

// ForkRun implements store.RepairStore.
func (s *observedStore) ForkRun(ctx context.Context, f *store.ForkRequest) error {
	return s.executeWrite("a fork", func() error { return s.Store.ForkRun(ctx, f) })
}

// ApplyRepair implements store.RepairStore.
func (s *observedStore) ApplyRepair(ctx context.Context, r *store.RepairRequest) error {
	return s.executeWrite(r.Verb, func() error {
		err := s.Store.ApplyRepair(ctx, r)
		if err == nil {
			s.process.forgetStepsDroppedByRepair(r)
		}
		return err
	})
}

// DeleteTrees implements store.RetentionStore.
func (s *observedStore) DeleteTrees(ctx context.Context, d *store.DeleteTreesRequest) error {
	return s.executeWrite("a deletion", func() error { return s.Store.DeleteTrees(ctx, d) })
}

// Claim implements store.Store.
func (s *observedStore) Claim(ctx context.Context, q store.ClaimQuery) (claims store.ClaimResult, err error) {
	s.mu.Lock()
	s.latestClaimBegun++
	number := s.latestClaimBegun
	if number == 1 {
		close(s.firstClaim)
	}
	s.mu.Unlock()
	err = s.callUnlessDead(func() error {
		claims, err = s.Store.Claim(ctx, q)
		if len(claims.Runs) > 0 || err != nil {
			s.writeCalls.Add(1)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if err == nil && number > s.latestClaimEnded {
			s.latestClaimEnded, s.nextDue = number, claims.NextDue
		}
		return err
	})
	return claims, err
}

// RenewLeases implements store.Store.
func (s *observedStore) RenewLeases(ctx context.Context, h store.Heartbeat) (result store.RenewResult, err error) {
	err = s.callUnlessDead(func() error {
		result, err = s.Store.RenewLeases(ctx, h)
		return err
	})
	return result, err
}

// EndLeases implements store.Store.
func (s *observedStore) EndLeases(ctx context.Context, workers []store.UUID, q store.ClaimQuery) (n int, err error) {
	err = s.callUnlessDead(func() error {
		s.writeCalls.Add(1)
		n, err = s.Store.EndLeases(ctx, workers, q)
		return err
	})
	return n, err
}

// OwnedRunChanges implements store.Store.
func (s *observedStore) OwnedRunChanges(ctx context.Context, worker store.UUID, held []store.Lease) (changes store.OwnedRunChanges, err error) {
	err = s.callUnlessDead(func() error {
		changes, err = s.Store.OwnedRunChanges(ctx, worker, held)
		return err
	})
	return changes, err
}

// GetRuns implements store.Store.
func (s *observedStore) GetRuns(ctx context.Context, refs []store.RunRef) (runs []*store.Run, err error) {
	err = s.callUnlessDead(func() error {
		runs, err = s.Store.GetRuns(ctx, refs)
		return err
	})
	return runs, err
}

// GetRunsSelectingPayloads implements store.Store.
func (s *observedStore) GetRunsSelectingPayloads(ctx context.Context, refs []store.RunRef, with store.PayloadSelection) (runs []*store.Run, err error) {
	err = s.callUnlessDead(func() error {
		runs, err = s.Store.GetRunsSelectingPayloads(ctx, refs, with)
		return err
	})
	return runs, err
}

// Statuses implements store.Store.
func (s *observedStore) Statuses(ctx context.Context, runs []store.UUID) (statuses []store.Status, err error) {
	err = s.callUnlessDead(func() error {
		statuses, err = s.Store.Statuses(ctx, runs)
		return err
	})
	return statuses, err
}

// History implements store.Store.
func (s *observedStore) History(ctx context.Context, run store.UUID) (steps []store.Step, err error) {
	err = s.callUnlessDead(func() error {
		steps, err = s.Store.History(ctx, run)
		return err
	})
	return steps, err
}

// DeadWorkers implements store.Store. The clock does not wait for its end.
func (s *observedStore) DeadWorkers(ctx context.Context, self store.UUID, known []store.UUID) (store.DeadWorkersResult, error) {
	if s.process.isDead() {
		return store.DeadWorkersResult{}, errProcessCrashed
	}
	return s.Store.DeadWorkers(ctx, self, known)
}

// Listen implements store.Store. It lasts until the engine stops, so the clock does not wait for it.
func (s *observedStore) Listen(ctx context.Context, worker store.UUID, onHint func(store.WakeHint)) error {
	if s.process.isDead() {
		return errProcessCrashed
	}
	return s.Store.Listen(ctx, worker, onHint)
}

// claimProgress returns the number of the latest claim that has begun, the number of the latest claim that has ended, and the
// time at which the next run is due according to the claim that has ended.
func (s *observedStore) claimProgress() (begun, ended uint64, next time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.latestClaimBegun, s.latestClaimEnded, s.nextDue
}
