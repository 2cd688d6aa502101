package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// strayCheckInterval is the age at which the known lanes of strays are read anew.
const strayCheckInterval = time.Second

// strayLanes are the lanes of the gate store.GateFree. In a queue with a row, their runs are strays.
type strayLanes struct {
	mu      sync.Mutex
	byQueue map[string][]store.ClaimLane
	since   time.Time
}

func (l *strayLanes) old() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.since) > strayCheckInterval
}

func (l *strayLanes) of(queue string) []store.ClaimLane {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byQueue[queue]
}

// allLanes returns the lanes with runs that have a wake time.
func allLanes(ctx context.Context, x executor) (all []liveLane, err error) {
	for after := store.FirstLane; ; {
		l, ok, err := nextLane(x, after)
		if err != nil || !ok {
			return all, err
		}
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		after = l.lane
		all = append(all, l)
	}
}

// strayLanes returns the lanes of the queue with runs that no admission has seen.
func (s *database) strayLanes(ctx context.Context, x executor, queue string) (strays []store.ClaimLane, err error) {
	if s.strays.old() {
		all, err := allLanes(ctx, x)
		if err != nil {
			return nil, err
		}
		s.strays.set(all)
	}
	for _, l := range s.strays.of(queue) {
		next, ok, err := nextLane(x, l-1)
		if err != nil {
			return nil, err
		}
		if ok && next.lane == l {
			strays = append(strays, l)
		}
	}
	return strays, nil
}

// set replaces the known lanes.
func (l *strayLanes) set(all []liveLane) {
	byQueue := make(map[string][]store.ClaimLane)
	for i := range all {
		if all[i].lane.Gate() == store.GateFree {
			byQueue[all[i].queue] = append(byQueue[all[i].queue], all[i].lane)
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byQueue, l.since = byQueue, time.Now()
}
