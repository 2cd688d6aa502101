package postgres

import (
	"context"
	"maps"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	// The stores of one server share one view of its presence locks. They use a view for presenceViewTTL or, if that is longer, for
	// presenceViewTTLPerWorker times the number of workers of a schema, at most for maxPresenceViewTTL. So with many processes, each of them
	// queries the locks less often, and all together about as often as one.
	presenceViewTTL          = 100 * time.Millisecond
	presenceViewTTLPerWorker = 40 * time.Millisecond
	maxPresenceViewTTL       = 2 * time.Second
	// presenceReadTimeout bounds a query of the locks, together with the wait for the query of another store.
	presenceReadTimeout = 5 * time.Second
	// maxPeersAge is how long the result of a query for dead workers is used while no lock disappears.
	maxPeersAge = 30 * time.Second
	// peersSettleTime is how long after a lock has appeared or disappeared each store queries by itself. For 2 s after its lock was
	// taken, presence_dead_workers.sql returns nobody.
	peersSettleTime = 3 * time.Second
)

// sharedPresenceView is the view that the stores of OpenSchema share of the presence locks of all workers of the server. It costs at most one
// query in each presenceViewTTL, however many schemas there are. Each store queries the workers of its schema only when a lock has disappeared
// or appeared.
type sharedPresenceView struct {
	readSemaphore    chan struct{} // held during a query and for access to the fields below; it is a channel, so that a caller stops waiting when its context ends
	locks            string
	serverStartedAt  time.Time // of the server
	seenAt           time.Time
	changes          uint64 // how often a lock has disappeared or appeared
	changedAt        time.Time
	otherLiveWorkers atomic.Int32 // live workers of the schema that was queried last, without the caller
}

// deadWorkersView is the latest result of a store's query for dead workers.
type deadWorkersView struct {
	self    uuid.UUID
	peers   store.DeadWorkersResult
	at      time.Time
	changes uint64 // sharedPresenceView.changes at the time of the query
}

// refreshIfOld queries the locks if the view is too old. It returns how often locks have disappeared or appeared, and when one last
// did.
func (v *sharedPresenceView) refreshIfOld(ctx context.Context, s *database) (changes uint64, changedAt time.Time, err error) {
	ctx, cancel := context.WithTimeout(ctx, presenceReadTimeout)
	defer cancel()
	select {
	case v.readSemaphore <- struct{}{}:
		defer func() { <-v.readSemaphore }()
	case <-ctx.Done():
		return 0, time.Time{}, s.wrapError(ctx, "look at the locks", ctx.Err())
	}
	if time.Since(v.seenAt) < max(presenceViewTTL, min(time.Duration(v.otherLiveWorkers.Load()+1)*presenceViewTTLPerWorker, maxPresenceViewTTL)) {
		return v.changes, v.changedAt, nil
	}
	var locks string
	var started time.Time
	err = s.runBatch(ctx, s.enginePool, "look at the locks", func(batch *pgx.Batch) { batch.Queue(s.statements.heldLocks) }, func(res statementResults) error {
		return eachRow(res, func(rows pgx.Rows) error { return rows.Scan(&locks, (*timeValue)(&started)) })
	})
	if err != nil {
		return 0, time.Time{}, err
	}
	v.seenAt = time.Now()
	if locks != v.locks || !started.Equal(v.serverStartedAt) {
		v.locks, v.serverStartedAt, v.changes, v.changedAt = locks, started, v.changes+1, v.seenAt
	}
	return v.changes, v.changedAt, nil
}

// cachedDeadWorkers returns the latest result of a query for dead workers, if nothing has happened since then that could change it.
func (s *database) cachedDeadWorkers(ctx context.Context, self uuid.UUID) (view deadWorkersView, valid bool, err error) {
	changes, changedAt, err := s.presenceView.refreshIfOld(ctx, s)
	if err != nil {
		return deadWorkersView{}, false, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	view = s.peers[self]
	if view.changes == changes && view.at.Sub(changedAt) > peersSettleTime && len(view.peers.Dead) == 0 && time.Since(view.at) < maxPeersAge {
		return view, true, nil
	}
	return deadWorkersView{self: self, changes: changes, at: time.Now()}, false, nil
}

// cacheDeadWorkers keeps the result of a query.
func (s *database) cacheDeadWorkers(view deadWorkersView) {
	s.presenceView.otherLiveWorkers.Store(int32(view.peers.LiveCount))
	s.mu.Lock()
	defer s.mu.Unlock()
	maps.DeleteFunc(s.peers, func(_ uuid.UUID, old deadWorkersView) bool { return view.at.Sub(old.at) > 2*maxPeersAge }) // removes the views of workers that have ended
	s.peers[view.self] = view
}
