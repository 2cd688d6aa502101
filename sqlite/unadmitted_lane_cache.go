package sqlite

import (
	"context"
	"sync"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

// unadmittedLaneCache holds the lanes with store.AdmissionNotNeeded, by queue. In a queue with a row, the runs of these lanes are strays.
type unadmittedLaneCache struct {
	mu      sync.Mutex
	byQueue map[string][]store.ClaimLane
	readAt  time.Time
}

// isDueForRead reports whether the lanes were read so long ago that they are to be read again.
func (l *unadmittedLaneCache) isDueForRead() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return time.Since(l.readAt) > store.StrayCheckInterval
}

func (l *unadmittedLaneCache) lanesOfQueue(queue string) []store.ClaimLane {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.byQueue[queue]
}

// lanesWithUnadmittedRuns returns the lanes of the queue with runs that no admission has seen.
func (s *database) lanesWithUnadmittedRuns(ctx context.Context, x executor, queue string) (strays []store.ClaimLane, err error) {
	if s.unadmittedLaneCache.isDueForRead() {
		byQueue, err := readUnadmittedLanes(ctx, x)
		if err != nil {
			return nil, err
		}
		s.unadmittedLaneCache.setLanes(byQueue)
	}
	for _, l := range s.unadmittedLaneCache.lanesOfQueue(queue) {
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

// readUnadmittedLanes returns the lanes with store.AdmissionNotNeeded that have a run with a wake time, by queue.
func readUnadmittedLanes(ctx context.Context, x executor) (map[string][]store.ClaimLane, error) {
	byQueue := make(map[string][]store.ClaimLane)
	for l, err := range lanesWithWakeTime(ctx, x) {
		if err != nil {
			return nil, err
		}
		if l.lane.Admission() == store.AdmissionNotNeeded {
			byQueue[l.queue] = append(byQueue[l.queue], l.lane)
		}
	}
	return byQueue, nil
}

// setLanes replaces the known lanes.
func (l *unadmittedLaneCache) setLanes(byQueue map[string][]store.ClaimLane) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byQueue, l.readAt = byQueue, time.Now()
}
