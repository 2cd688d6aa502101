package sqlite

import (
	"context"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	// maxWorkersAge is how long the list of workers is reused while the folder of their files does not change.
	maxWorkersAge = 2 * time.Second
	// workersSettleTime is how long after a change of the folder each call reads the workers again, because a new worker may lock its
	// file before or after it is in the registry.
	workersSettleTime = 2 * time.Second
)

// knownWorkers are the workers that DeadWorkers has read. An idle process calls DeadWorkers four to eight times a second, and the locks of
// the workers' files show without a query whether a known worker has died.
type knownWorkers struct {
	mu            sync.Mutex
	ids           []uuid.UUID
	readAt        time.Time
	folderModTime time.Time // when the folder of the workers' files was changed
	changedAt     time.Time // when this process noticed the change
}

// DeadWorkers implements store.Store. A worker is dead if its file exists and nobody holds the lock on it.
func (s *database) DeadWorkers(ctx context.Context, self uuid.UUID, known []uuid.UUID) (store.DeadWorkersResult, error) {
	ids, fresh, err := s.workerIDs(ctx, false)
	if err != nil {
		return store.DeadWorkersResult{}, err
	}
	dead := s.deadAmong(ids, self)
	if !fresh && len(dead) > 0 {
		if ids, _, err = s.workerIDs(ctx, true); err != nil {
			return store.DeadWorkersResult{}, err
		}
		dead = s.deadAmong(ids, self)
	}
	peers := store.DeadWorkersResult{Dead: dead}
	for _, id := range ids {
		if id != self && !slices.Contains(known, id) {
			peers.LiveCount++
			if store.CompareUUIDsByShard(id, self) < 0 {
				peers.LiveWithLowerIDCount++
			}
		}
	}
	return peers, nil
}

// deadAmong returns the dead workers among the given ones. It skips self, whose lock this process holds.
func (s *database) deadAmong(workers []uuid.UUID, self uuid.UUID) (dead []uuid.UUID) {
	for _, id := range workers {
		if id != self && s.workerLocks.isDead(id) {
			dead = append(dead, id)
		}
	}
	return dead
}

// workerIDs returns the workers of the registry, and reports whether it has read them now. It reads them if always is true, or if
// they may have changed.
func (s *database) workerIDs(ctx context.Context, always bool) (ids []uuid.UUID, fresh bool, err error) {
	w := &s.knownWorkers
	w.mu.Lock()
	defer w.mu.Unlock()
	var folder time.Time // zero: there is none, or it cannot be read
	if info, err := os.Stat(s.workerLocks.folder); err == nil {
		folder = info.ModTime()
	}
	now := time.Now()
	if w.changedAt.IsZero() || !folder.Equal(w.folderModTime) {
		w.folderModTime, w.changedAt = folder, now
	}
	if !always && now.Sub(w.changedAt) > workersSettleTime && now.Sub(w.readAt) < maxWorkersAge && !s.closed.Load() {
		return w.ids, false, nil
	}
	workers, err := s.Workers(ctx)
	if err != nil {
		return nil, false, err
	}
	ids = make([]uuid.UUID, len(workers))
	for i := range workers {
		ids[i] = workers[i].ID
	}
	w.ids, w.readAt = ids, now
	return ids, true, nil
}
