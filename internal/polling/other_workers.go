// Package polling decides how often a worker polls the database, from what the worker knows of the other workers.
//
// Every worker of a database polls for the same things, so with many workers each of them polls less often, and all of them
// together as often as before. That needs working notifications: without them, each worker finds only by its polls what the others
// are too busy to take.
package polling

import (
	"sync/atomic"
	"time"

	"github.com/seed8ec063be/durable/internal/store"
)

const (
	// maxPollFactor is how many times less often a worker of a large fleet polls than a lone one, for what any worker may do.
	maxPollFactor = 10
	// maxClaimPollFactor is the same for claims, because not every worker may execute the same workflows.
	maxClaimPollFactor = 5
	// maxSiblingPollFactor is how many times less often a worker polls, at most, that has siblings on many other schemas of the server.
	maxSiblingPollFactor = 60
	// A worker checks its neighbours siblingCheckInterval less often for each sibling, up to maxSiblingCheckInterval: they use what one
	// of them has seen.
	siblingCheckInterval    = 2 * time.Millisecond
	maxSiblingCheckInterval = 300 * time.Millisecond
	// A worker checks its neighbours every neighbourCheckInterval for each worker that lives, so that many workers together check
	// each of them about as often as few do.
	neighbourCheckInterval    = 40 * time.Millisecond
	maxNeighbourCheckInterval = 2 * time.Second
	// A worker without neighbours checks every loneWorkerCheckInterval whether another one has appeared and died.
	loneWorkerCheckInterval = 250 * time.Millisecond
	// After a notification that a run may be claimable, each idle worker waits hintDelayPerWorker for each worker of the fleet, at most
	// maxHintDelayPerWorker, for the one before it. The first usually takes the run.
	hintDelayPerWorker    = 100 * time.Microsecond
	maxHintDelayPerWorker = 4 * time.Millisecond
	// FirstWorkerRotationInterval is how long the same worker is the first. It is short, so that one worker does not take all runs of a moment.
	FirstWorkerRotationInterval = 10 * time.Millisecond
)

// OtherWorkers is what a worker knows of the other workers of its database. All methods may be called concurrently.
type OtherWorkers struct {
	listening    atomic.Bool  // notifications arrive
	liveCount    atomic.Int32 // live workers, without this one
	lowerIDCount atomic.Int32 // how many of them have a lower ID
	siblingCount atomic.Int32 // see store.DeadWorkersResult.WorkersSharingConns
}

// SetListening records whether notifications arrive.
func (f *OtherWorkers) SetListening(listening bool) { f.listening.Store(listening) }

// RecordPeers records the result of a check for dead workers.
func (f *OtherWorkers) RecordPeers(p *store.DeadWorkersResult) {
	f.liveCount.Store(int32(p.LiveCount))
	f.lowerIDCount.Store(int32(p.LiveWithLowerIDCount))
	f.siblingCount.Store(int32(p.WorkersSharingConns))
}

// PollInterval returns the interval of a poll that a lone worker makes once in d, and that any worker may make.
func (f *OtherWorkers) PollInterval(d time.Duration) time.Duration {
	return f.pollIntervalForWorkers(d, 1)
}

// pollIntervalForWorkers does the same for a poll that one worker makes for several of the fleet.
func (f *OtherWorkers) pollIntervalForWorkers(d time.Duration, workers int) time.Duration {
	if !f.listening.Load() {
		return d
	}
	others := max(0, int(f.liveCount.Load())+1-workers)
	return max(f.pollIntervalSharedWithSiblings(d), min(d*time.Duration(others+1)/2, maxPollFactor*d))
}

// pollIntervalSharedWithSiblings returns the interval of a poll that a lone worker makes once in d, so that all siblings together poll as often.
func (f *OtherWorkers) pollIntervalSharedWithSiblings(d time.Duration) time.Duration {
	return d * time.Duration(min(f.siblingCount.Load()+1, maxSiblingPollFactor))
}

// ClaimPollInterval returns the longest wait between two claims, which a lone worker makes once in poll. The next run of the worker's
// workflows is due at the given time; zero: never. If such a run is executed anywhere, its lease ends soon, and the poll is that of a lone
// worker: the run may begin to wait for a short time, and its own worker may be too busy to take it then. workers is for how many workers
// one claims.
func (f *OtherWorkers) ClaimPollInterval(poll, lease time.Duration, now, due time.Time, workers int) time.Duration {
	if !due.IsZero() && due.Sub(now) <= max(lease, maxClaimPollFactor*poll) {
		return poll
	}
	interval := f.pollIntervalForWorkers(poll, workers)
	if !f.listening.Load() {
		return interval
	}
	return min(interval, max(maxClaimPollFactor*poll, f.pollIntervalSharedWithSiblings(poll)))
}

// DeadWorkerCheckInterval returns the time between two checks for dead workers, at least shortest.
func (f *OtherWorkers) DeadWorkerCheckInterval(shortest time.Duration) time.Duration {
	n, siblings := time.Duration(f.liveCount.Load()+1), time.Duration(f.siblingCount.Load())
	if n == 1 {
		shortest = max(shortest, loneWorkerCheckInterval)
	}
	return max(shortest, min(n*neighbourCheckInterval, maxNeighbourCheckInterval), min(siblings*siblingCheckInterval, maxSiblingCheckInterval))
}

// ClaimDelayAfterNotification returns how long this worker waits before it claims after a notification for all workers. The order of the workers is
// that of their IDs, from another one on in each FirstWorkerRotationInterval.
func (f *OtherWorkers) ClaimDelayAfterNotification(now time.Time) time.Duration {
	n := int64(f.liveCount.Load() + 1)
	turn := (int64(f.lowerIDCount.Load()) + now.UnixNano()/int64(FirstWorkerRotationInterval)) % n
	return time.Duration(turn) * min(time.Duration(n)*hintDelayPerWorker, maxHintDelayPerWorker)
}
