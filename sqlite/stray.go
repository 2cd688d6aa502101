package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// strayLanes are the lanes of the gate store.GateFree. In a queue with a row, their runs are strays.
type strayLanes struct {
	mu      sync.Mutex
	byQueue map[string][]store.ClaimLane
	since   time.Time
}

func (l *strayLanes) isOld() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.since) > store.StrayCheckInterval
}

func (l *strayLanes) ofQueue(queue string) []store.ClaimLane {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byQueue[queue]
}

// strayLanes returns the lanes of the queue with runs that no admission has seen.
func (s *database) strayLanes(ctx context.Context, x executor, queue string) (strays []store.ClaimLane, err error) {
	if s.strays.isOld() {
		byQueue := make(map[string][]store.ClaimLane)
		for l, err := range lanes(ctx, x) {
			if err != nil {
				return nil, err
			}
			if l.lane.Gate() == store.GateFree {
				byQueue[l.queue] = append(byQueue[l.queue], l.lane)
			}
		}
		s.strays.setLanes(byQueue)
	}
	for _, l := range s.strays.ofQueue(queue) {
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

// setLanes replaces the known lanes.
func (l *strayLanes) setLanes(byQueue map[string][]store.ClaimLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byQueue, l.since = byQueue, time.Now()
}
